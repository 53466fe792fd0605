//! Refusals in the API server's own words (kube-apiserver v1.36; `k8s.io/apimachinery/pkg/api/errors/errors.go`, and
//! where `k8s.io/apiserver` calls it). `harness/runner/tests/answers` compares them with a real one.

mod kinds;
#[cfg(test)]
mod tests;
mod words;

use crate::body::{self, Body};
use http::{HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Value, json};
use spiritlevel_model::{
    RequestInfo,
    fault::{Action, Bodies, Refuser},
};

/// What a refusal is to say, as far as somebody has told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    pub(crate) status: u16,
    pub(crate) reason: Option<&'a str>,
    pub(crate) retry_after: Option<u32>,
    pub(crate) message: Option<&'a str>,
    pub(crate) by: Option<Refuser>,
    pub(crate) named: Option<&'a str>,
}

/// A refusal to be made, and the request that it is for.
pub(crate) struct Refusal<'a> {
    pub(crate) told: Told<'a>,
    pub(crate) method: &'a Method,
    pub(crate) info: &'a RequestInfo,
    pub(crate) bodies: &'a Bodies,
    /// The user that the request speaks for, where its token tells.
    pub(crate) user: Option<&'a str>,
}

/// What the API server says.
struct Words {
    message: String,
    reason: String,
    details: Option<Value>,
    /// `metadata.continue`.
    token: Option<String>,
    form: Form,
}

/// How it says it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A `Status`.
    Status,
    /// A `Status`, from before the request reached its handler: `nosniff`.
    Early,
    /// The message alone (`net/http`'s `Error`).
    Plain,
    /// A `Status` without kind, called text (`k8s.io/apiserver/pkg/server/filters/timeout.go`).
    Timeout,
}

// === impl Told ===

impl<'a> Told<'a> {
    /// Only a status: everything else as usual.
    pub(crate) fn status(status: u16) -> Self {
        Self { status, reason: None, retry_after: None, message: None, by: None, named: None }
    }

    /// With these words.
    pub(crate) fn message(status: u16, message: &'a str) -> Self {
        Self { message: Some(message), ..Self::status(status) }
    }

    /// As a fault tells.
    pub(crate) fn of(action: &'a Action) -> Option<Self> {
        let Action::Reject { status, reason, retry_after, message, by, named } = action else { return None };
        let (reason, message, named) = (reason.as_deref(), message.as_deref(), named.as_deref());
        Some(Self { status: *status, reason, retry_after: *retry_after, message, by: *by, named })
    }
}

// === impl Refusal ===

impl Refusal<'_> {
    /// As HTTP, as the API server sends it.
    pub(crate) fn response(&self) -> Response<Body> {
        let words = self.words();
        let (media_type, text) = match words.form {
            Form::Status | Form::Early => ("application/json", self.status(&words).to_string()),
            Form::Plain => ("text/plain; charset=utf-8", words.message.clone()),
            Form::Timeout => {
                let mut status = self.status(&words);
                if let Some(fields) = status.as_object_mut() {
                    fields.retain(|key, _| key != "kind" && key != "apiVersion");
                }
                ("text/plain; charset=utf-8", status.to_string())
            }
        };
        let mut response = Response::new(body::whole(text + "\n"));
        *response.status_mut() = StatusCode::from_u16(self.told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if matches!(words.form, Form::Plain | Form::Early) {
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        if let Some(seconds) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// As `metav1.Status`.
    fn status(&self, words: &Words) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": words.message,
        });
        if let Some(token) = &words.token {
            status["metadata"]["continue"] = token.clone().into();
        }
        if !words.reason.is_empty() {
            status["reason"] = words.reason.clone().into();
        }
        if let Some(details) = &words.details {
            status["details"] = details.clone();
        }
        status["code"] = self.told.status.into();
        status
    }

    /// Without being told: too many requests and a server that shuts down ask for a second. A disruption budget does not
    /// know when.
    fn retry_after(&self) -> Option<u32> {
        let usual = matches!((self.told.status, self.told.by), (429 | 503, None)).then_some(1);
        self.told.retry_after.or(usual)
    }
}

/// An ERROR event with 410 inside a stream, as a line.
pub(crate) fn expired_event(info: &RequestInfo) -> Vec<u8> {
    let version = info.query.get("resourceVersion").map(String::as_str).filter(|v| !v.is_empty());
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": words::too_old(version), "reason": "Expired", "code": 410,
    });
    let mut line = json!({"type": "ERROR", "object": status}).to_string().into_bytes();
    line.push(b'\n');
    line
}
