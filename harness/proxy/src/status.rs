//! Refusals in the API server's own words (`k8s.io/apimachinery/pkg/api/errors/errors.go`, and where kube-apiserver
//! calls it).

use crate::body::{self, Body};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use spiritlevel_model::{RequestInfo, Verb};

/// A refusal to be made.
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    pub(crate) reason: Option<&'a str>,
    pub(crate) retry_after: Option<u32>,
    pub(crate) message: Option<&'a str>,
    pub(crate) info: &'a RequestInfo,
    /// The object's name, from the URL or the body.
    pub(crate) name: Option<&'a str>,
    /// The user that the request speaks for, where its token tells.
    pub(crate) user: Option<&'a str>,
    pub(crate) apply: bool,
}

impl Refusal<'_> {
    /// As HTTP, as the API server sends it.
    pub(crate) fn response(&self) -> Response<Body> {
        let retry_after = self.retry_after();
        let mut response = Response::new(body::whole(self.status().to_string() + "\n"));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// As `metav1.Status`.
    pub(crate) fn status(&self) -> Value {
        let reason = self.reason.unwrap_or_else(|| usual_reason(self.status));
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message.map_or_else(|| self.words(reason), Into::into),
        });
        if !reason.is_empty() {
            status["reason"] = reason.into();
        }
        if let Some(details) = self.details(reason) {
            status["details"] = details;
        }
        status["code"] = self.status.into();
        status
    }

    fn retry_after(&self) -> Option<u32> {
        // A 429 without Retry-After is none that the API server sends.
        self.retry_after.or((self.status == 429).then_some(1))
    }

    fn resource(&self) -> String {
        self.info.resource.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    fn details(&self, reason: &str) -> Option<Value> {
        let mut details = json!({});
        match reason {
            "InternalError" => {
                let cause = self.words(reason);
                let cause = cause.strip_prefix("Internal error occurred: ").unwrap_or_default();
                details["causes"] = json!([{ "message": self.message.unwrap_or(cause) }]);
            }
            "Conflict" if self.apply => {}
            "Conflict" | "AlreadyExists" | "NotFound" | "Forbidden" | "Invalid" | "ServerTimeout" | "MethodNotAllowed" => {
                if let Some(name) = self.name {
                    details["name"] = name.into();
                }
                if let Some(resource) = &self.info.resource {
                    if !resource.group.is_empty() {
                        details["group"] = resource.group.clone().into();
                    }
                    details["kind"] = resource.resource.clone().into();
                }
            }
            _ => {}
        }
        if let Some(seconds) = self.retry_after() {
            details["retryAfterSeconds"] = seconds.into();
        }
        let says_something = details.as_object().is_some_and(|d| !d.is_empty());
        says_something.then_some(details)
    }

    fn words(&self, reason: &str) -> String {
        let resource = self.resource();
        let name = self.name.unwrap_or_default();
        let version = self.info.query.get("resourceVersion").map(String::as_str).filter(|v| !v.is_empty());
        match reason {
            "Conflict" => format!(
                "Operation cannot be fulfilled on {resource} {name:?}: the object has been modified; \
                 please apply your changes to the latest version and try again"
            ),
            "AlreadyExists" => format!("{resource} {name:?} already exists"),
            // An API group or a URL that is not served is answered without a name.
            "NotFound" if self.info.resource.is_none() || name.is_empty() => "the server could not find the requested resource".into(),
            "NotFound" => format!("{resource} {name:?} not found"),
            "Unauthorized" => "Unauthorized".into(),
            "Forbidden" => self.forbidden(),
            "Expired" if self.info.verb == Verb::List => {
                "The provided continue parameter is too old to display a consistent list result.".into()
            }
            "Expired" => too_old(version),
            "Gone" => "the resource is gone".into(),
            "TooManyRequests" => "Too many requests, please try again later.".into(),
            "InternalError" => "Internal error occurred: etcdserver: request timed out".into(),
            "ServerTimeout" => {
                format!("The {} operation against {resource} could not be completed at this time, please try again.", self.info.verb)
            }
            "ServiceUnavailable" => "the server is currently unable to handle the request".into(),
            "Timeout" => "Timeout: request did not complete within requested timeout - context deadline exceeded".into(),
            "Invalid" => format!("{resource} {name:?} is invalid"),
            _ => format!("the server rejected our request with the status code {}", self.status),
        }
    }

    /// As RBAC refuses (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`).
    fn forbidden(&self) -> String {
        let user = self.user.unwrap_or("system:anonymous");
        let Some(resource) = &self.info.resource else {
            let verb = self.info.verb;
            let verb = if verb == Verb::Other { "get" } else { verb.as_str() };
            return format!("forbidden: User {user:?} cannot {verb} path {:?}", self.info.path);
        };
        let what = match &self.info.subresource {
            Some(sub) => format!("{}/{sub}", resource.resource),
            None => resource.resource.clone(),
        };
        let whose = match self.name {
            Some(name) => format!("{resource} {name:?}"),
            None => resource.to_string(),
        };
        let place = match &self.info.namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".into(),
        };
        format!(
            "{whose} is forbidden: User {user:?} cannot {} resource {what:?} in API group {:?} {place}",
            self.info.verb, resource.group
        )
    }
}

/// An ERROR event with 410 inside a stream, as a line.
pub(crate) fn expired_event(info: &RequestInfo) -> Vec<u8> {
    let version = info.query.get("resourceVersion").map(String::as_str).filter(|v| !v.is_empty());
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": too_old(version), "reason": "Expired", "code": 410,
    });
    let mut line = json!({"type": "ERROR", "object": status}).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// As the watch cache says it, with the oldest version that it has.
fn too_old(version: Option<&str>) -> String {
    let version = version.and_then(|v| v.parse::<u64>().ok()).unwrap_or(1);
    format!("too old resource version: {version} ({})", version + 1)
}

fn usual_reason(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}
