//! Webhooks of an operator inside the cluster: their configurations as the project ships them, which send the API server to
//! this run's operator, with this run's objects only.

use super::{RUN, placed};
use crate::{Error, api::Objects};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use spiritlevel_cluster::ServingCertificate;
use spiritlevel_model::Meta;
use std::collections::BTreeSet;

/// The kinds, with their resources.
const KINDS: [(&str, &str); 2] = [
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

/// Where the webhooks of a run are.
pub(super) struct Home<'a> {
    /// The operator's own namespace, with its Service.
    pub(super) system: &'a str,
    /// The namespace of the subjects, which names the run.
    pub(super) namespace: &'a str,
    /// Whether other runs are on this control plane at the same time.
    pub(super) shared: bool,
}

/// Whether an object configures webhooks.
pub(super) fn configures(document: &Value) -> bool {
    KINDS.iter().any(|(kind, _)| document["kind"] == *kind)
}

/// The Secret with the certificate for all that these configurations call, and what they must trust.
pub(super) fn certificate(secret: &str, configurations: &[&Value], home: &Home<'_>) -> Result<(Value, String), Error> {
    let services: BTreeSet<&str> = configurations
        .iter()
        .flat_map(|c| c["webhooks"].as_array().into_iter().flatten())
        .filter_map(|w| w["clientConfig"]["service"]["name"].as_str())
        .collect();
    let names = services.iter().flat_map(|name| {
        let system = home.system;
        [format!("{name}.{system}.svc"), format!("{name}.{system}.svc.cluster.local"), format!("{name}.{system}")]
    });
    let made = ServingCertificate::generate(names.collect())?;
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.ca},
    });
    Ok((placed(&object, home.system), STANDARD.encode(made.ca)))
}

/// A configuration for this run. A shared control plane has one for each run, under a name of its own, for its own namespaces.
pub(super) fn of_run(configuration: &Value, ca_bundle: Option<&str>, home: &Home<'_>) -> Value {
    let mut made = configuration.clone();
    made["metadata"]["labels"][RUN] = json!(home.namespace);
    if home.shared {
        made["metadata"]["name"] = json!(format!("{}-{}", made.name().unwrap_or("webhooks"), home.namespace));
    }
    for webhook in made["webhooks"].as_array_mut().into_iter().flatten() {
        if webhook["clientConfig"]["service"].is_object() {
            webhook["clientConfig"]["service"]["namespace"] = json!(home.system);
            if let Some(ca) = ca_bundle {
                webhook["clientConfig"]["caBundle"] = json!(ca);
            }
        }
        if home.shared {
            webhook["namespaceSelector"]["matchLabels"][RUN] = json!(home.namespace);
        }
    }
    made
}

/// Takes the configurations of a run away: with their operator gone, nothing could be deleted any more.
pub(crate) async fn remove(objects: &Objects<'_>, namespace: &str) -> Result<(), Error> {
    for (_, resource) in KINDS {
        let url = format!("/apis/admissionregistration.k8s.io/v1/{resource}?labelSelector={RUN}%3D{namespace}");
        objects.delete(&url, None).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration() -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "shop"},
            "webhooks": [
                {"name": "a.example.com", "clientConfig": {"service": {"name": "webhook", "namespace": "theirs", "path": "/a"}},
                 "namespaceSelector": {"matchLabels": {"own": "yes"}}},
                {"name": "b.example.com", "clientConfig": {"url": "https://elsewhere.example.com", "caBundle": "theirs"}},
            ],
        })
    }

    #[test]
    fn a_shared_control_plane_asks_for_this_runs_objects_only() {
        let home = Home { system: "a-system", namespace: "a", shared: true };
        let made = of_run(&configuration(), Some("Y2E="), &home);
        assert_eq!(made.name(), Some("shop-a"));
        assert_eq!(made["metadata"]["labels"][RUN], "a");
        let [first, second] = made["webhooks"].as_array().unwrap().as_slice() else { panic!("there are two") };
        let service = json!({"name": "webhook", "namespace": "a-system", "path": "/a"});
        assert_eq!(first["clientConfig"], json!({"service": service, "caBundle": "Y2E="}));
        assert_eq!(first["namespaceSelector"]["matchLabels"], json!({"own": "yes", RUN: "a"}));
        assert_eq!(second["clientConfig"], configuration()["webhooks"][1]["clientConfig"], "it is no Service");
        assert_eq!(second["namespaceSelector"]["matchLabels"], json!({RUN: "a"}));
    }

    #[test]
    fn alone_a_configuration_keeps_its_name() {
        let home = Home { system: "a-system", namespace: "a", shared: false };
        let made = of_run(&configuration(), None, &home);
        assert_eq!(made.name(), Some("shop"));
        assert_eq!(made["webhooks"][0]["namespaceSelector"], configuration()["webhooks"][0]["namespaceSelector"]);
        assert_eq!(made["webhooks"][0]["clientConfig"]["service"]["namespace"], "a-system");
    }

    #[test]
    fn the_certificate_is_a_secret_for_the_service() {
        let home = Home { system: "a-system", namespace: "a", shared: false };
        let (secret, ca) = certificate("webhook-cert", &[&configuration()], &home).unwrap();
        assert_eq!((secret.name(), secret.namespace()), (Some("webhook-cert"), Some("a-system")));
        assert!(secret["stringData"]["tls.key"].as_str().unwrap().contains("PRIVATE KEY"));
        assert_eq!(STANDARD.encode(secret["stringData"]["ca.crt"].as_str().unwrap()), ca);
        assert!(configures(&configuration()) && !configures(&secret));
    }
}
