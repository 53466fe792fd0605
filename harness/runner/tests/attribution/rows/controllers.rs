//! What the built-in controllers write, by name; and the whole history at the end.

use crate::row::{MODIFIED, Made, Outcome, Row, made, table, url};
use serde_json::{Value, json};
use spiritlevel_model::history::VersionType;
use std::collections::BTreeMap;

const STUB: &str = "kubelet-stub";

fn workload(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
            },
        },
    })
}

fn ready(replicas: u64) -> impl Fn(&[Made]) -> bool {
    move |made| {
        made.last().is_some_and(|m| {
            m.object["status"]["readyReplicas"] == replicas
                && m.object["status"]["observedGeneration"] == m.object["metadata"]["generation"]
        })
    }
}

/// The names of objects of this kind that begin so.
fn names(row: &Row<'_>, resource: &str, prefix: &str) -> Vec<String> {
    let live = row.ground.guest.recorder.live();
    let all = live.world.live().filter(|l| l.resource.to_string() == resource);
    let names = all.filter_map(|l| l.object["metadata"]["name"].as_str().map(String::from));
    names.filter(|n| n.starts_with(prefix)).collect()
}

pub(crate) async fn deployment(row: &Row<'_>) -> Outcome {
    let mut body = workload("dep");
    body["spec"].as_object_mut().ok_or("no spec")?.remove("serviceName");
    row.send("operator/0", "POST", &url("deployments.apps", ""), &body).await?;
    row.until("deployments.apps/dep", ready(1)).await?;
    let scaled =
        row.send("user", "PATCH", &url("deployments.apps", "dep/scale"), &json!({"spec": {"replicas": 2}})).await?;
    row.answered(scaled, 200)?;
    row.authors("deployments.apps/dep", ready(2), &["operator/0", "user", "deployment-controller"]).await?;
    row.makes(scaled, "deployments.apps/dep", &[MODIFIED])?;
    for name in names(row, "replicasets.apps", "dep-") {
        row.authors(&format!("replicasets.apps/{name}"), ready(2), &["deployment-controller", "replicaset-controller"])
            .await?;
    }
    for name in names(row, "pods", "dep-") {
        row.authors(&format!("pods/{name}"), |made| made.len() > 2, &["replicaset-controller", STUB]).await?;
    }
    Ok(())
}

pub(crate) async fn stateful_set(row: &Row<'_>) -> Outcome {
    row.send("operator/0", "POST", &url("statefulsets.apps", ""), &workload("sts")).await?;
    row.authors("statefulsets.apps/sts", ready(1), &["operator/0", "statefulset-controller"]).await?;
    row.authors("pods/sts-0", |made| made.len() > 2, &["statefulset-controller", STUB]).await
}

/// Over all rows: versions that nobody made are the API server's own, and none of several is ambiguous but the raced one.
pub(crate) async fn everything_has_an_author(row: &Row<'_>) -> Outcome {
    let live = row.ground.guest.recorder.live();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (index, seen) in live.ledger.versions().iter().enumerate() {
        if seen.version.kind == VersionType::Found {
            continue;
        }
        let made = made(&live, index, seen);
        *count.entry(made.actor.clone().unwrap_or_else(|| "nobody".into())).or_default() += 1;
        let resource = seen.version.resource.to_string();
        let api_servers_own = matches!(resource.as_str(), "resourcequotas" | "ipaddresses.networking.k8s.io");
        let raced = seen.version.object["metadata"]["name"] == "raced";
        // Our guest does not hear of what others do outside its namespaces.
        let elsewhere = seen.version.object["metadata"]["namespace"].is_null()
            && resource != "persistentvolumes"
            && resource != "namespaces";
        if made.actor.is_none() && !api_servers_own && !raced && !elsewhere {
            wrong.push(made);
        }
    }
    println!("  versions by author: {count:?}");
    if wrong.is_empty() { Ok(()) } else { Err(format!("without an author:\n{}", table(&wrong)).into()) }
}
