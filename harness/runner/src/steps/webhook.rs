//! `webhook`: an admission webhook stands in the way, until heal.

use super::{
    Undo,
    play::{Failure, Play},
};
use crate::Error;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use spiritlevel_model::operation::{FailurePolicy, Webhook, WebhookAction};
use spiritlevel_proxy::{Webhook as Backend, WebhookDoes};

/// Where configurations lie.
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

impl Play<'_> {
    pub(super) async fn webhook(&self, webhook: &Webhook, path: &str) -> Result<(), Failure> {
        // The API server has to reach this machine's loopback.
        self.local()?;
        let does = match webhook.action {
            WebhookAction::Down => WebhookDoes::Down,
            WebhookAction::Slow => WebhookDoes::Slow,
            WebhookAction::WrongCertificate => WebhookDoes::WrongCertificate,
            WebhookAction::Deny => WebhookDoes::Deny,
        };
        let backend = Backend::start(does).await.map_err(Error::from)?;
        let name = format!("{}-{}", self.namespace(), self.stage.writes.next_touch());
        let url = format!("{CONFIGURATIONS}/{name}");
        self.stage.writes.undo_record(&self.stage.recorder, &json!({"step": path, "url": url, "undo": "delete"}));
        let object = configuration(webhook, &name, self.stage.namespaces(), &backend);
        let request = http::Request::post(CONFIGURATIONS)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes());
        let request = request.expect("a constant path is a valid request");
        self.stage.undo().push(Undo::Webhook { url, backend });
        let answer = self.around.lane.clients().webhook.request::<Value>(request).await;
        self.until_seen(&answer.map_err(Error::request("make a webhook configuration"))?).await;
        Ok(())
    }
}

fn configuration(webhook: &Webhook, name: &str, namespaces: &[String], backend: &Backend) -> Value {
    let rule = |resource: &String| {
        let (name, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let resource = if sub.is_empty() { name.to_owned() } else { format!("{name}/{sub}") };
        let operations = if webhook.operations.is_empty() { json!(["CREATE"]) } else { json!(webhook.operations) };
        json!({"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": operations})
    };
    let rules: Vec<Value> = webhook.resources.iter().map(rule).collect();
    let policy = match webhook.failure_policy {
        FailurePolicy::Fail => "Fail",
        FailurePolicy::Ignore => "Ignore",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "scenario.spiritlevel.dev",
            "clientConfig": {"url": backend.url(), "caBundle": STANDARD.encode(backend.ca_pem())},
            "rules": rules,
            "failurePolicy": policy,
            "timeoutSeconds": 1,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {
                "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}],
            },
        }],
    })
}
