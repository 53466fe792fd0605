//! Refusals in the API server's own words (`k8s.io/apimachinery/pkg/api/errors/errors.go`, and where kube-apiserver
//! calls it).

use crate::body::{self, Body};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use spiritlevel_model::{RequestInfo, Verb};

/// Whom a forged apply conflict names, and over which field: one that every object of a user may have.
const OTHER: &str = "kubectl-edit";
const FIELD: &str = ".metadata.labels.app";

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
            "Conflict" if self.apply => {
                let cause = json!({"reason": "FieldManagerConflict", "message": format!("conflict with {OTHER:?}"), "field": FIELD});
                details["causes"] = json!([cause]);
            }
            "Conflict" | "AlreadyExists" | "NotFound" | "Forbidden" | "Invalid" | "ServerTimeout"
            | "MethodNotAllowed" => {
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
            // An apply conflicts by fields (`…/managedfields/internal/conflict.go`).
            "Conflict" if self.apply => format!("Apply failed with 1 conflict: conflict with {OTHER:?}: {FIELD}"),
            "Conflict" => format!(
                "Operation cannot be fulfilled on {resource} {name:?}: the object has been modified; \
                 please apply your changes to the latest version and try again"
            ),
            "AlreadyExists" => format!("{resource} {name:?} already exists"),
            // An API group or a URL that is not served is answered without a name.
            "NotFound" if self.info.resource.is_none() || name.is_empty() => {
                "the server could not find the requested resource".into()
            }
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
                format!(
                    "The {} operation against {resource} could not be completed at this time, please try again.",
                    self.info.verb
                )
            }
            "ServiceUnavailable" => "the server is currently unable to handle the request".into(),
            "Timeout" => {
                "Timeout: request did not complete within requested timeout - context deadline exceeded".into()
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(method: &str, url: &str, status: u16, reason: Option<&str>) -> Value {
        let info = RequestInfo::classify(method, url);
        let name = info.name.clone().or((method == "POST").then(|| "x".into()));
        let user = Some("system:anonymous");
        Refusal {
            status,
            reason,
            retry_after: None,
            message: None,
            info: &info,
            name: name.as_deref(),
            user,
            apply: false,
        }
        .status()
    }

    /// The expectations are answers of kube-apiserver v1.36.3 to such requests.
    #[test]
    fn refusals_are_word_for_word_those_of_the_api_server() {
        const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
        for (method, url, status, reason, message, details) in [
            (
                "POST",
                CONFIGMAPS,
                409,
                Some("AlreadyExists"),
                r#"configmaps "x" already exists"#,
                json!({"name": "x", "kind": "configmaps"}),
            ),
            (
                "PUT",
                "/api/v1/namespaces/default/configmaps/x",
                409,
                None,
                "Operation cannot be fulfilled on configmaps \"x\": the object has been modified; please apply your changes to the \
                 latest version and try again",
                json!({"name": "x", "kind": "configmaps"}),
            ),
            (
                "GET",
                "/apis/apps/v1/namespaces/default/statefulsets/nope",
                404,
                None,
                r#"statefulsets.apps "nope" not found"#,
                json!({"name": "nope", "group": "apps", "kind": "statefulsets"}),
            ),
            ("GET", CONFIGMAPS, 401, None, "Unauthorized", Value::Null),
            (
                "PUT",
                "/apis/apps/v1/namespaces/default/statefulsets/s/status",
                403,
                None,
                "statefulsets.apps \"s\" is forbidden: User \"system:anonymous\" cannot update resource \"statefulsets/status\" in \
                 API group \"apps\" in the namespace \"default\"",
                json!({"name": "s", "group": "apps", "kind": "statefulsets"}),
            ),
            (
                "GET",
                "/api/v1/nodes",
                403,
                None,
                "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
                json!({"kind": "nodes"}),
            ),
            (
                "GET",
                "/metrics",
                403,
                None,
                r#"forbidden: User "system:anonymous" cannot get path "/metrics""#,
                Value::Null,
            ),
            (
                "GET",
                CONFIGMAPS,
                504,
                None,
                "Timeout: request did not complete within requested timeout - context deadline exceeded",
                Value::Null,
            ),
            (
                "GET",
                "/api/v1/pods?watch=true&resourceVersion=5",
                410,
                None,
                "too old resource version: 5 (6)",
                Value::Null,
            ),
            (
                "GET",
                CONFIGMAPS,
                429,
                None,
                "Too many requests, please try again later.",
                json!({"retryAfterSeconds": 1}),
            ),
            (
                "GET",
                CONFIGMAPS,
                500,
                None,
                "Internal error occurred: etcdserver: request timed out",
                json!({"causes": [{"message": "etcdserver: request timed out"}]}),
            ),
        ] {
            let refusal = refuse(method, url, status, reason);
            assert_eq!(refusal["message"], message, "{method} {url}");
            assert_eq!(refusal["details"], details, "{method} {url}");
            assert_eq!(refusal["code"], status);
            assert_eq!(refusal["reason"], reason.unwrap_or(usual_reason(status)));
        }
    }

    #[test]
    fn an_apply_conflicts_by_field() {
        let info = RequestInfo::classify("PATCH", "/api/v1/namespaces/a/configmaps/x");
        let refusal = Refusal {
            status: 409,
            reason: None,
            retry_after: None,
            message: None,
            info: &info,
            name: Some("x"),
            user: None,
            apply: true,
        };
        let status = refusal.status();
        assert_eq!(
            status["message"],
            r#"Apply failed with 1 conflict: conflict with "kubectl-edit": .metadata.labels.app"#
        );
        assert_eq!(status["details"]["causes"][0]["reason"], "FieldManagerConflict");
        assert!(status["details"]["name"].is_null());
    }

    #[test]
    fn too_many_requests_say_when_to_come_back() {
        let info = RequestInfo::classify("GET", "/api/v1/pods");
        for (given, expected) in [(None, "1"), (Some(7), "7")] {
            let refusal = Refusal {
                status: 429,
                reason: None,
                retry_after: given,
                message: None,
                info: &info,
                name: None,
                user: None,
                apply: false,
            };
            assert_eq!(refusal.response().headers()["retry-after"], expected);
        }
    }
}
