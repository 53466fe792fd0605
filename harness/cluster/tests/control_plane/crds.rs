//! CRDs: installed once by content, refused with the API server's words, found by discovery.

use libtest_mimic::Trial;
use serde_json::{Value, json};
use spiritlevel_cluster::{Cluster, Error, Identity, LocalOptions, crds, discovery};

use crate::{
    start,
    support::{Outcome, ensure, trial},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("crds/are_installed_once_and_discovered", installed),
        trial("crds/an_invalid_one_is_refused_with_its_name_and_the_reason", invalid),
    ]
}

async fn installed() -> Outcome {
    let cluster = start(LocalOptions::default()).await?;
    let client = cluster.client(Identity::Harness)?;
    let first = crds::install(&client, vec![bubble(), shelf()]).await?;
    let again = crds::install(&client, vec![bubble()]).await?;
    ensure(first[0] == again[0] && first[0].name == "bubbles.level.example.com", &again)?;

    let mut changed = bubble();
    changed["spec"]["names"]["shortNames"] = json!(["bu"]);
    let error = crds::install(&client, vec![changed]).await.err().ok_or("another content was accepted")?;
    ensure(matches!(&error, Error::CrdDiffers { name } if name == "bubbles.level.example.com"), error)?;

    let kinds = discovery::kinds(&client).await?;
    let named = |plural: &str| kinds.iter().filter(|kind| kind.plural == plural).collect::<Vec<_>>();
    let bubbles = named("bubbles");
    ensure(bubbles.len() == 1 && bubbles[0].version == "v1" && bubbles[0].namespaced, bubbles)?;
    ensure(!named("shelves")[0].namespaced, named("shelves"))?;
    let stateful_sets = named("statefulsets");
    ensure(stateful_sets.len() == 1 && stateful_sets[0].api_version() == "apps/v1", &stateful_sets)?;
    ensure(stateful_sets[0].can("watch"), stateful_sets)?;
    ensure(kinds.iter().all(|kind| !kind.plural.contains('/')), &kinds)?;
    let events = named("events");
    ensure(events.len() == 2 && events.iter().filter(|kind| kind.is_second_name()).count() == 1, events)?;
    cluster.stop().await?;
    Ok(())
}

async fn invalid() -> Outcome {
    let cluster = start(LocalOptions::default()).await?;
    let client = cluster.client(Identity::Harness)?;
    let mut unstructural = bubble();
    unstructural["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "text"});
    let error = crds::install(&client, vec![unstructural]).await.err().ok_or("it was accepted")?;
    let text = error.to_string();
    ensure(matches!(error, Error::CrdInvalid { .. }), &text)?;
    ensure(text.contains("bubbles.level.example.com") && text.contains("openAPIV3Schema.properties[spec].type"), text)?;
    cluster.stop().await?;
    Ok(())
}

/// Namespaced, two versions, with requirements that a sample has to meet.
pub(crate) fn bubble() -> Value {
    let schema = json!({"openAPIV3Schema": {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size", "tint"],
                "properties": {
                    "size": {"type": "integer", "minimum": 2},
                    "tint": {"type": "string", "enum": ["green", "amber"]},
                },
            },
        },
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bubbles.level.example.com", "creationTimestamp": null},
        "spec": {
            "group": "level.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Bubble", "plural": "bubbles", "singular": "bubble"},
            "versions": [
                {"name": "v1beta1", "served": true, "storage": false, "schema": schema},
                {"name": "v1", "served": true, "storage": true, "schema": schema},
            ],
        },
        // As generators write it; no valid status.
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": null},
    })
}

/// Cluster-scoped.
pub(crate) fn shelf() -> Value {
    simple("Cluster", "Shelf", "shelves", json!({"type": "object"}))
}

/// Of which no sample can be guessed.
pub(crate) fn unguessable() -> Value {
    let spec = json!({
        "type": "object", "required": ["code"],
        "properties": {"code": {"type": "string", "pattern": "^[0-9]{4}-[a-f]{2}$"}},
    });
    simple("Namespaced", "Lock", "locks", json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}}))
}

fn simple(scope: &str, kind: &str, plural: &str, schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.level.example.com")},
        "spec": {
            "group": "level.example.com",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}
