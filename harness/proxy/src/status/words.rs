//! What the API server says, by status, reason and who refuses.

use super::{Form, Refusal, Words, kinds::kind_of};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use spiritlevel_model::{ResourceKey, Verb, fault::Refuser};

/// Whom a forged apply conflict names, and over which field: one that every object of a user may have.
const OTHER: &str = "kubectl-edit";
const FIELD: &str = ".metadata.labels.app";
/// What webhooks, quotas and budgets are called that nobody named.
const WEBHOOK: &str = "policy.example.com";
const QUOTA: &str = "quota";
const BUDGET: &str = "pdb";

const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";
const NO_SUCH_RESOURCE: &str = "the server could not find the requested resource";
const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent list result. You can \
                            start a new list without the continue parameter, or use the continue token in this response \
                            to retrieve the remainder of the results. Continuing with the provided token results in an \
                            inconsistent list - objects that were created, modified, or deleted between the time the \
                            first chunk was returned and now may show up in the list.";

impl Refusal<'_> {
    /// The message that was told comes instead of the usual one.
    pub(super) fn words(&self) -> Words {
        let mut words = self.usual_words();
        if let Some(message) = self.told.message {
            message.clone_into(&mut words.message);
            if words.reason == "InternalError" {
                let cause = message.strip_prefix("Internal error occurred: ").unwrap_or(message);
                words.details = Some(json!({"causes": [{"message": cause}]}));
            }
        }
        // Only where the API server says it in the body too.
        if words.form == Form::Status
            && let Some(seconds) = self.retry_after()
        {
            words.details.get_or_insert_with(|| json!({}))["retryAfterSeconds"] = seconds.into();
        }
        words
    }

    fn usual_words(&self) -> Words {
        let reason = self.told.reason.unwrap_or_else(|| usual_reason(self.told.status));
        match (self.told.by, reason) {
            (Some(Refuser::Webhook), _) => self.by_webhook(),
            (Some(Refuser::Quota), _) => self.by_quota(),
            (Some(Refuser::Budget), _) => self.by_budget(),
            (Some(Refuser::Path), _) => plain("404 page not found"),
            (_, "Forbidden") => self.by_rbac(),
            (_, "NotFound") => self.not_found(),
            (_, "Conflict") => self.conflict(),
            (_, "AlreadyExists") => about(reason, format!("{} already exists", self.object()), self.details()),
            (_, "Expired") => self.expired(),
            (_, "TooManyRequests") if self.told.reason.is_none() => plain("Too many requests, please try again later."),
            // A watch cache that is not ready (`…/storage/cacher/cacher.go`).
            (_, "TooManyRequests") => said(reason, "storage is (re)initializing"),
            // What is no error of the API's is told as it is (`…/handlers/responsewriters/status.go`).
            (_, "") if self.told.status == 500 => said("", "etcdserver: request timed out"),
            (_, "InternalError") => internal("etcdserver: request timed out"),
            (_, "ServerTimeout") => self.server_timeout(),
            // `…/server/filters/waitgroup.go`.
            (_, "ServiceUnavailable") => Words { form: Form::Early, ..said(reason, "apiserver is shutting down") },
            (_, "Timeout") => Words {
                form: Form::Timeout,
                ..about(reason, "Timeout: request did not complete within the allotted timeout".into(), json!({}))
            },
            (_, "Invalid") => self.invalid(),
            (_, "Unauthorized") => said(reason, "Unauthorized"),
            (_, "MethodNotAllowed") => {
                about(reason, "the server does not allow this method on the requested resource".into(), json!({}))
            }
            (_, "NotAcceptable") => {
                let media = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
                let streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
                let message = format!("406: Not Acceptable\n\nAvailable representations: {media}, {streams}");
                about(reason, message, json!({}))
            }
            (_, "UnsupportedMediaType") => self.unsupported_media_type(),
            (_, "RequestEntityTooLarge") => said(reason, "Request entity too large: limit is 3145728"),
            (_, "BadRequest") => self.bad_request(),
            (_, reason) => {
                said(reason, &format!("the server rejected our request with the status code {}", self.told.status))
            }
        }
    }

    /// `k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go`; 500 where it cannot be called.
    fn by_webhook(&self) -> Words {
        let name = self.told.named.unwrap_or(WEBHOOK);
        if self.told.status == 500 {
            let url = "https://webhook.default.svc:443/validate?timeout=10s";
            return internal(&format!(
                "failed calling webhook {name:?}: failed to call webhook: Post {url:?}: context deadline exceeded"
            ));
        }
        // One that says nothing is answered with 400, without a reason.
        let usual = if self.told.status == 400 { "" } else { usual_reason(self.told.status) };
        let reason = self.told.reason.unwrap_or(usual);
        let explained = if reason.is_empty() { " without explanation".into() } else { format!(": {reason}") };
        said(reason, &format!("admission webhook {name:?} denied the request{explained}"))
    }

    /// `k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go`.
    fn by_quota(&self) -> Words {
        let quota = self.told.named.unwrap_or(QUOTA);
        let counted = self.info.resource.as_ref().map(counted_as).unwrap_or_default();
        let message = format!(
            "{} is forbidden: exceeded quota: {quota}, requested: {counted}=1, used: {counted}=0, limited: {counted}=0",
            self.object()
        );
        about("Forbidden", message, self.details())
    }

    /// To an eviction (`pkg/registry/core/pod/storage/eviction.go`). A budget that is not up to date says when to come
    /// back, one that is does not.
    fn by_budget(&self) -> Words {
        let budget = self.told.named.unwrap_or(BUDGET);
        let why = match self.told.retry_after {
            Some(_) => format!("The disruption budget {budget} is still being processed by the server."),
            None => format!("The disruption budget {budget} needs 1 healthy pods and has 1 currently"),
        };
        let causes = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        about("TooManyRequests", message.into(), causes)
    }

    /// `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`. The request's body has not been read yet.
    fn by_rbac(&self) -> Words {
        let user = self.user.unwrap_or("system:anonymous");
        let Some(resource) = &self.info.resource else {
            let verb = self.method.as_str().to_lowercase();
            let message = format!("forbidden: User {user:?} cannot {verb} path {:?}", self.info.path);
            return Words { form: Form::Early, ..about("Forbidden", message, json!({})) };
        };
        let is_new = self.info.verb == Verb::Create && self.info.subresource.is_none();
        let name = match self.info.verb {
            Verb::Create if is_new => None,
            Verb::List | Verb::Watch => self.selected_name(),
            _ => self.info.name.as_deref(),
        };
        let what = match &self.info.subresource {
            Some(sub) => format!("{}/{sub}", resource.resource),
            None => resource.resource.clone(),
        };
        let whose = match name {
            Some(name) => format!("{resource} {name:?}"),
            None => resource.to_string(),
        };
        let namespace = self.info.namespace.as_ref().filter(|_| !(is_new && is_namespaces(resource)));
        let place = match namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".into(),
        };
        let message = format!(
            "{whose} is forbidden: User {user:?} cannot {} resource {what:?} in API group {:?} {place}",
            self.info.verb, resource.group
        );
        Words { form: Form::Early, ..about("Forbidden", message, of(name, resource, &resource.resource)) }
    }

    /// An API group that is not there is a matter of the mux, a resource that is not of a built-in group's.
    fn not_found(&self) -> Words {
        match &self.info.resource {
            Some(_) if self.name().is_some() => {
                about("NotFound", format!("{} not found", self.object()), self.details())
            }
            Some(resource) if is_built_in(resource) => about("NotFound", NO_SUCH_RESOURCE.into(), json!({})),
            _ => plain("404 page not found"),
        }
    }

    fn conflict(&self) -> Words {
        // An apply conflicts by fields (`…/managedfields/internal/conflict.go`).
        if self.bodies.apply {
            let cause = format!("conflict with {OTHER:?}");
            let message = format!("Apply failed with 1 conflict: {cause}: {FIELD}");
            let causes = json!([{"reason": "FieldManagerConflict", "message": cause, "field": FIELD}]);
            return about("Conflict", message, json!({"causes": causes}));
        }
        let (Verb::Delete, Some(version), Some(resource)) =
            (self.info.verb, &self.bodies.resource_version, &self.info.resource)
        else {
            let message = format!("Operation cannot be fulfilled on {}: {MODIFIED}", self.object());
            return about("Conflict", message, self.details());
        };
        // A precondition is told of the kind (`k8s.io/apiserver/pkg/registry/rest/delete.go`).
        let (name, kind) = (self.name(), self.kind());
        let stored = version.parse::<u64>().map_or(1, |v| v + 1);
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: the ResourceVersion in the precondition ({version}) does not match \
             the ResourceVersion in record ({stored}). The object might have been modified",
            qualified(&kind, resource),
            name.unwrap_or_default()
        );
        about("Conflict", message, of(name, resource, &kind))
    }

    fn expired(&self) -> Words {
        let given = |key: &str| self.info.query.get(key).map(String::as_str).filter(|v| !v.is_empty());
        match (self.info.verb, given("continue")) {
            (Verb::List, Some(token)) => Words { token: from_here_on(token), ..said("Expired", INCONSISTENT) },
            (Verb::List, None) => said("Expired", "The resourceVersion for the provided list is too old."),
            _ => said("Expired", &too_old(given("resourceVersion"))),
        }
    }

    /// The operation comes where a name would.
    fn server_timeout(&self) -> Words {
        let (verb, resource) = (self.info.verb.as_str(), self.info.resource.clone());
        let what = resource.as_ref().map(ToString::to_string).unwrap_or_default();
        let message =
            format!("The {verb} operation against {what} could not be completed at this time, please try again.");
        let details = resource.map_or_else(|| json!({}), |r| of(Some(verb), &r, &r.resource));
        about("ServerTimeout", message, details)
    }

    fn invalid(&self) -> Words {
        let Some(resource) = &self.info.resource else { return said("Invalid", "the request is invalid") };
        let (name, kind) = (self.name(), self.kind());
        let why = "Forbidden: may not be changed";
        let message = format!("{} {:?} is invalid: spec: {why}", qualified(&kind, resource), name.unwrap_or_default());
        let mut details = of(name, resource, &kind);
        details["causes"] = json!([{"reason": "FieldValueForbidden", "message": why, "field": "spec"}]);
        about("Invalid", message, details)
    }

    fn unsupported_media_type(&self) -> Words {
        let accepted = match (self.info.verb, &self.info.resource) {
            (Verb::Patch, Some(resource)) if is_built_in(resource) => {
                return about("UnsupportedMediaType", "415: Unsupported Media Type".into(), json!({}));
            }
            (Verb::Patch, _) => {
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            }
            _ => "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        };
        let message = "the body of the request was in an unknown format - accepted media types include";
        said("UnsupportedMediaType", &format!("{message}: {accepted}"))
    }

    /// As of a body that never came.
    fn bad_request(&self) -> Words {
        let nothing = "unexpected end of JSON input";
        match self.info.verb {
            Verb::Patch => said("BadRequest", &format!("error decoding patch: {nothing}")),
            _ => said(
                "BadRequest",
                &format!(
                    "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: \
                     {nothing} (<empty>)",
                    self.kind()
                ),
            ),
        }
    }

    /// From the URL or the body; made up where the API server would have done so.
    fn name(&self) -> Option<&str> {
        self.info.name.as_deref().or(self.bodies.name.as_deref())
    }

    /// `metadata.name=…` as the only field that is selected.
    fn selected_name(&self) -> Option<&str> {
        self.info.query.get("fieldSelector")?.strip_prefix("metadata.name=").filter(|name| !name.contains(','))
    }

    /// The resource and the name.
    fn object(&self) -> String {
        let resource = self.info.resource.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{resource} {:?}", self.made_up_name())
    }

    fn details(&self) -> Value {
        let name = Some(self.made_up_name()).filter(|n| !n.is_empty());
        let resource = self.info.resource.as_ref();
        resource.map_or_else(|| json!({}), |r| of(name.as_deref(), r, &r.resource))
    }

    fn made_up_name(&self) -> String {
        // Five letters, as `k8s.io/apiserver/pkg/storage/names/generate.go` adds.
        let generated = self.bodies.generate_name.as_ref().map(|prefix| format!("{prefix}x7k2q"));
        self.name().map(Into::into).or(generated).unwrap_or_default()
    }

    fn kind(&self) -> String {
        let told =
            self.bodies.json.as_ref().and_then(|body| body["kind"].as_str()).filter(|kind| *kind != "DeleteOptions");
        let guess = || self.info.resource.as_ref().map(kind_of).unwrap_or_default();
        told.map_or_else(guess, Into::into)
    }
}

/// As the watch cache says it, with the oldest version that it has.
pub(super) fn too_old(version: Option<&str>) -> String {
    let version = version.and_then(|v| v.parse::<u64>().ok()).unwrap_or(1);
    format!("too old resource version: {version} ({})", version + 1)
}

/// The token for what is left of a list, whatever has changed (`k8s.io/apiserver/pkg/storage/continue.go`).
fn from_here_on(token: &str) -> Option<String> {
    let mut place: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    *place.get_mut("rv")? = (-1).into();
    Some(BASE64_URL_SAFE_NO_PAD.encode(place.to_string()))
}

/// Some kinds have had a name in quotas before there was `count/`.
fn counted_as(resource: &ResourceKey) -> String {
    const OLD: [&str; 7] = [
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    ];
    if resource.group.is_empty() && OLD.contains(&resource.resource.as_str()) {
        return resource.resource.clone();
    }
    format!("count/{resource}")
}

fn is_namespaces(resource: &ResourceKey) -> bool {
    resource.group.is_empty() && resource.resource == "namespaces"
}

fn is_built_in(resource: &ResourceKey) -> bool {
    !resource.group.contains('.') || resource.group.ends_with(".k8s.io")
}

fn qualified(kind: &str, resource: &ResourceKey) -> String {
    if resource.group.is_empty() { kind.to_owned() } else { format!("{kind}.{}", resource.group) }
}

fn of(name: Option<&str>, resource: &ResourceKey, kind: &str) -> Value {
    let mut details = json!({});
    if let Some(name) = name {
        details["name"] = name.into();
    }
    if !resource.group.is_empty() {
        details["group"] = resource.group.clone().into();
    }
    details["kind"] = kind.into();
    details
}

fn said(reason: &str, message: &str) -> Words {
    Words { message: message.into(), reason: reason.into(), details: None, token: None, form: Form::Status }
}

fn about(reason: &str, message: String, details: Value) -> Words {
    Words { message, reason: reason.into(), details: Some(details), token: None, form: Form::Status }
}

fn plain(message: &str) -> Words {
    Words { form: Form::Plain, ..said("", message) }
}

fn internal(cause: &str) -> Words {
    about("InternalError", format!("Internal error occurred: {cause}"), json!({"causes": [{"message": cause}]}))
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
        503 => "ServiceUnavailable",
        504 => "Timeout",
        // 500: what has a reason says so.
        _ => "",
    }
}
