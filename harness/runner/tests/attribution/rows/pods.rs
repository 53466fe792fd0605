//! Pods and their claims: what is bound, evicted, ended in two steps and made again under the same name.

use crate::row::{ADDED, DELETED, MODIFIED, Made, Outcome, Row, Sent, url};
use serde_json::{Value, json};
use spiritlevel_cluster::kubelet_stub::NODE;
use spiritlevel_model::attribution::Claim;
use std::error::Error;

const STUB: &str = "kubelet-stub";

async fn pod(row: &Row<'_>, name: &str, labels: Value) -> Result<Sent, Box<dyn Error>> {
    let pod = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example/main:1"}], "terminationGracePeriodSeconds": 5},
    });
    let sent = row.send("user", "POST", &url("pods", ""), &pod).await?;
    row.answered(sent, 201)?;
    Ok(sent)
}

/// A pod that nobody schedules; the stub has said so in its status.
async fn idle_pod(row: &Row<'_>, name: &str) -> Result<Sent, Box<dyn Error>> {
    let object = format!("pods/{name}");
    let before = row.life(&object).len();
    let sent = pod(row, name, json!({"bound": "by-hand"})).await?;
    row.until(&object, |made| made.len() > before + 1).await?;
    Ok(sent)
}

fn is_ready(made: &[Made]) -> bool {
    let conditions = made.last().map(|m| m.object["status"]["conditions"].clone()).unwrap_or_default();
    conditions.as_array().into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn is_over(made: &[Made]) -> bool {
    made.last().is_some_and(|m| m.kind == DELETED)
}

/// The claims of a pod's end: from the first version that is terminating on.
fn end(made: &[Made]) -> Vec<String> {
    let ends = made.iter().skip_while(|m| m.object["metadata"]["deletionTimestamp"].is_null() && m.kind != DELETED);
    ends.map(|m| format!("{:?} {}", m.kind, m.actor.as_deref().unwrap_or("nobody"))).collect()
}

fn ended(made: &[Made], first: &str) -> Outcome {
    let end = end(made);
    let stub_or_last = end.iter().skip(1).all(|e| e == "Modified kubelet-stub" || e == "Deleted kubelet-stub");
    let right = end.first().is_some_and(|e| e == first) && end.len() > 1 && stub_or_last;
    if right { Ok(()) } else { Err(format!("the pod ended by {end:?}").into()) }
}

pub(crate) async fn graceful(row: &Row<'_>) -> Outcome {
    pod(row, "graceful", json!({})).await?;
    row.until("pods/graceful", is_ready).await?;
    let gone = row.send("operator/0", "DELETE", &url("pods", "graceful"), &Value::Null).await?;
    row.answered(gone, 200)?;
    row.authors("pods/graceful", is_over, &["user", STUB, "operator/0"]).await?;
    row.makes(gone, "pods/graceful", &[MODIFIED])?;
    ended(&row.life("pods/graceful"), "Modified operator/0")
}

pub(crate) async fn binding(row: &Row<'_>) -> Outcome {
    let a = idle_pod(row, "bound").await?;
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bound"},
                         "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}});
    let b = row.send("operator/0", "POST", &url("pods", "bound/binding"), &binding).await?;
    row.answered(b, 201)?;
    let again = row.send("harness/drift", "POST", &url("pods", "bound/binding"), &binding).await?;
    row.answered(again, 409)?;
    let is_bound = |made: &[Made]| made.iter().any(|m| m.object["spec"]["nodeName"].is_string());
    row.authors("pods/bound", is_bound, &["user", "operator/0", STUB]).await?;
    row.makes(a, "pods/bound", &[ADDED])?;
    row.makes(b, "pods/bound", &[MODIFIED])
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

pub(crate) async fn eviction_of_a_running_pod(row: &Row<'_>) -> Outcome {
    pod(row, "evicted", json!({})).await?;
    row.until("pods/evicted", is_ready).await?;
    let gone = row.send("operator/0", "POST", &url("pods", "evicted/eviction"), &eviction("evicted")).await?;
    row.answered(gone, 201)?;
    row.authors("pods/evicted", is_over, &["user", STUB, "operator/0"]).await?;
    // The condition, then the mark.
    row.makes(gone, "pods/evicted", &[MODIFIED, MODIFIED])?;
    ended(&row.life("pods/evicted"), "Modified operator/0")
}

/// It is on no node: nobody has to end it.
pub(crate) async fn eviction_of_a_pending_pod(row: &Row<'_>) -> Outcome {
    let a = idle_pod(row, "pending").await?;
    let gone = row.send("operator/0", "POST", &url("pods", "pending/eviction"), &eviction("pending")).await?;
    row.answered(gone, 201)?;
    row.authors("pods/pending", is_over, &["user", "operator/0", STUB]).await?;
    row.makes(a, "pods/pending", &[ADDED])?;
    row.makes(gone, "pods/pending", &[MODIFIED, MODIFIED, DELETED])
}

/// A status write on a terminating pod without finalizers does not end it.
pub(crate) async fn status_of_a_terminating_pod(row: &Row<'_>) -> Outcome {
    idle_pod(row, "terminating").await?;
    let at = url("pods", "terminating");
    let binding = json!({"metadata": {"name": "terminating"}, "target": {"kind": "Node", "name": NODE}});
    row.send("harness/arrange", "POST", &format!("{at}/binding"), &binding).await?;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    row.send("harness/arrange", "PATCH", &at, &held).await?;
    let d = row.send("user", "DELETE", &at, &Value::Null).await?;
    let e = row.send("operator/0", "PATCH", &format!("{at}/status"), &json!({"status": {"message": "going"}})).await?;
    row.answered(e, 200)?;
    let free = json!({"metadata": {"finalizers": null}});
    row.send("harness/drift", "PATCH", &at, &free).await?;
    // Whoever comes last ends it: the one who frees it, or the stub.
    row.authors("pods/terminating", is_over, &["user", "harness/arrange", "harness/drift", "operator/0", STUB]).await?;
    row.makes(d, "pods/terminating", &[MODIFIED])?;
    row.makes(e, "pods/terminating", &[MODIFIED])?;
    let made = row.life("pods/terminating");
    let last = made.last().and_then(|m| m.actor.as_deref());
    if matches!(last, Some(STUB | "harness/drift")) { Ok(()) } else { Err(format!("{last:?} ended it").into()) }
}

/// Evictions and bindings name no uid: what happened to a predecessor of the same name is not claimed again.
pub(crate) async fn same_name_again(row: &Row<'_>) -> Outcome {
    let at = url("pods", "again");
    let binding = json!({"metadata": {"name": "again"}, "target": {"kind": "Node", "name": NODE}});
    let now = json!({"gracePeriodSeconds": 0});
    let mut sent = Vec::new();
    for (round, who) in ["operator/0", "harness/drift"].into_iter().enumerate() {
        let a = idle_pod(row, "again").await?;
        let b = row.send(who, "POST", &format!("{at}/binding"), &binding).await?;
        row.answered(b, 201)?;
        let c = row.send(who, "DELETE", &at, &now).await?;
        row.answered(c, 200)?;
        sent.push((a, b, c));
        row.until("pods/again", |made| made.iter().filter(|m| m.kind == DELETED).count() > round).await?;
    }
    row.authors("pods/again", is_over, &["user", "operator/0", "harness/drift", STUB]).await?;
    for (a, b, c) in sent {
        row.makes(a, "pods/again", &[ADDED])?;
        row.makes(b, "pods/again", &[MODIFIED])?;
        // The end of grace is written down first.
        row.makes(c, "pods/again", &[MODIFIED, DELETED])?;
    }
    Ok(())
}

pub(crate) async fn claim_grows(row: &Row<'_>) -> Outcome {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    row.send("user", "POST", &url("persistentvolumeclaims", ""), &json!({"metadata": {"name": "grows"}, "spec": spec}))
        .await?;
    let bound = |made: &[Made]| made.last().is_some_and(|m| m.object["status"]["phase"] == "Bound");
    row.until("persistentvolumeclaims/grows", bound).await?;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let b = row.send("operator/0", "PATCH", &url("persistentvolumeclaims", "grows"), &larger).await?;
    row.answered(b, 200)?;
    let grown = |made: &[Made]| made.last().is_some_and(|m| m.object["status"]["capacity"]["storage"] == "2Gi");
    let made = row.until("persistentvolumeclaims/grows", grown).await?;
    row.makes(b, "persistentvolumeclaims/grows", &[MODIFIED])?;
    let at = made.iter().position(|m| m.claim == Claim::By(b.id)).ok_or("the patch made no version")?;
    let authors = ["user", "persistent-volume-binder", STUB, "operator/0"];
    row.authors("persistentvolumeclaims/grows", grown, &authors).await?;
    let after = made[at + 1..].iter().all(|m| m.actor.as_deref() == Some(STUB));
    if after && made.len() > at + 1 { Ok(()) } else { Err("the stub did not let it grow".into()) }
}
