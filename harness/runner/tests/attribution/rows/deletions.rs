//! Deletions: at once, in two steps, of many, and those that pull others after them.

use super::writes::config;
use crate::{
    ground::DOOMED,
    row::{
        ADDED,
        By::{Actor, This},
        DELETED, MODIFIED, Made, Outcome, Row, Sent, url,
    },
};
use serde_json::{Value, json};
use spiritlevel_model::attribution::Claim;
use std::error::Error;

fn held(name: &str) -> Value {
    json!({"metadata": {"name": name, "finalizers": ["example.com/hold"]}})
}

async fn make(row: &Row<'_>, body: &Value) -> Result<Sent, Box<dyn Error>> {
    row.send("user", "POST", &url("configmaps", ""), body).await
}

pub(crate) async fn at_once(row: &Row<'_>) -> Outcome {
    let a = make(row, &config("deleted", "a")).await?;
    let b = row.send("operator/0", "DELETE", &url("configmaps", "deleted"), &Value::Null).await?;
    let again = row.send("user", "DELETE", &url("configmaps", "deleted"), &Value::Null).await?;
    row.answered(again, 404)?;
    row.made("configmaps/deleted", &[(ADDED, This(a)), (DELETED, This(b))]).await?;
    // Kinds that are answered with the object that is gone.
    for (resource, spec) in
        [("serviceaccounts", Value::Null), ("services", json!({"clusterIP": "None", "ports": [{"port": 80}]}))]
    {
        let a = row
            .send("user", "POST", &url(resource, ""), &json!({"metadata": {"name": "deleted"}, "spec": spec}))
            .await?;
        let b = row.send("operator/0", "DELETE", &url(resource, "deleted"), &Value::Null).await?;
        row.answered(b, 200)?;
        row.made(&format!("{resource}/deleted"), &[(ADDED, This(a)), (DELETED, This(b))]).await?;
    }
    Ok(())
}

pub(crate) async fn refused(row: &Row<'_>) -> Outcome {
    let a = make(row, &config("kept", "a")).await?;
    let wrong = json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}});
    let conflict = row.send("operator/0", "DELETE", &url("configmaps", "kept"), &wrong).await?;
    row.answered(conflict, 409)?;
    let b = row.send("user", "DELETE", &url("configmaps", "kept"), &Value::Null).await?;
    row.made("configmaps/kept", &[(ADDED, This(a)), (DELETED, This(b))]).await
}

/// A dry run may be asked for in the body of a DELETE.
pub(crate) async fn dry(row: &Row<'_>) -> Outcome {
    let a = make(row, &config("dry-deleted", "a")).await?;
    let at = url("configmaps", "dry-deleted");
    let dry = row.send("operator/0", "DELETE", &at, &json!({"dryRun": ["All"]})).await?;
    row.answered(dry, 200)?;
    let b = row.send("user", "DELETE", &at, &Value::Null).await?;
    row.made("configmaps/dry-deleted", &[(ADDED, This(a)), (DELETED, This(b))]).await
}

pub(crate) async fn last_finalizer_by_patch(row: &Row<'_>) -> Outcome {
    let at = url("configmaps", "held-1");
    let a = make(row, &held("held-1")).await?;
    let b = row.send("user", "DELETE", &at, &Value::Null).await?;
    // Of an object that is terminating already.
    let again = row.send("harness/drift", "DELETE", &at, &Value::Null).await?;
    row.answered(again, 200)?;
    let c = row.send("harness/touch", "PATCH", &at, &json!({"metadata": {"annotations": {"touched": "1"}}})).await?;
    let d = row.send("operator/0", "PATCH", &at, &json!({"metadata": {"finalizers": null}})).await?;
    let late = row.send("user", "PATCH", &at, &json!({"metadata": {"finalizers": null}})).await?;
    row.answered(late, 404)?;
    row.made("configmaps/held-1", &[(ADDED, This(a)), (MODIFIED, This(b)), (MODIFIED, This(c)), (DELETED, This(d))])
        .await
}

pub(crate) async fn last_finalizer_by_update(row: &Row<'_>) -> Outcome {
    let at = url("configmaps", "held-2");
    let a = make(row, &held("held-2")).await?;
    let b = row.send("user", "DELETE", &at, &json!({"propagationPolicy": "Background"})).await?;
    let made = row.until("configmaps/held-2", |made| made.len() == 2).await?;
    let mut object = made[1].object.clone();
    object["metadata"]["finalizers"] = json!([]);
    let c = row.send("operator/0", "PUT", &at, &object).await?;
    row.answered(c, 200)?;
    row.made("configmaps/held-2", &[(ADDED, This(a)), (MODIFIED, This(b)), (DELETED, This(c))]).await
}

pub(crate) async fn collection(row: &Row<'_>) -> Outcome {
    let labelled = |name: &str| json!({"metadata": {"name": name, "labels": {"many": "yes"}}});
    let a = make(row, &labelled("many-1")).await?;
    let b = make(row, &labelled("many-2")).await?;
    let mut slow = held("many-3");
    slow["metadata"]["labels"] = json!({"many": "yes"});
    let c = make(row, &slow).await?;
    let all = format!("{}?labelSelector=many%3Dyes", url("configmaps", ""));
    let gone = row.send("operator/0", "DELETE", &all, &Value::Null).await?;
    row.answered(gone, 200)?;
    let freed =
        row.send("user", "PATCH", &url("configmaps", "many-3"), &json!({"metadata": {"finalizers": null}})).await?;
    row.made("configmaps/many-1", &[(ADDED, This(a)), (DELETED, This(gone))]).await?;
    row.made("configmaps/many-2", &[(ADDED, This(b)), (DELETED, This(gone))]).await?;
    row.made("configmaps/many-3", &[(ADDED, This(c)), (MODIFIED, This(gone)), (DELETED, This(freed))]).await?;
    // A second one, of what was made after the first.
    let d = make(row, &labelled("many-4")).await?;
    let gone = row.send("harness/drift", "DELETE", &all, &Value::Null).await?;
    row.made("configmaps/many-4", &[(ADDED, This(d)), (DELETED, This(gone))]).await
}

/// An owner and its dependent.
async fn family(row: &Row<'_>, name: &str) -> Result<(Sent, Sent), Box<dyn Error>> {
    let a = make(row, &config(name, "a")).await?;
    let made = row.until(&format!("configmaps/{name}"), |made| !made.is_empty()).await?;
    let uid = &made[0].object["metadata"]["uid"];
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true});
    let b = json!({"metadata": {"name": format!("{name}-child"), "ownerReferences": [owner]}});
    let b = row.send("operator/0", "POST", &url("configmaps", ""), &b).await?;
    Ok((a, b))
}

async fn part(row: &Row<'_>, name: &str, policy: &str) -> Result<Sent, Box<dyn Error>> {
    row.send("user", "DELETE", &url("configmaps", name), &json!({"propagationPolicy": policy})).await
}

const COLLECTOR: &str = "garbage-collector";

pub(crate) async fn background(row: &Row<'_>) -> Outcome {
    let (a, b) = family(row, "background").await?;
    let gone = part(row, "background", "Background").await?;
    row.made("configmaps/background", &[(ADDED, This(a)), (DELETED, This(gone))]).await?;
    row.made("configmaps/background-child", &[(ADDED, This(b)), (DELETED, Actor(COLLECTOR))]).await
}

pub(crate) async fn foreground(row: &Row<'_>) -> Outcome {
    let (a, b) = family(row, "foreground").await?;
    let gone = part(row, "foreground", "Foreground").await?;
    row.made("configmaps/foreground", &[(ADDED, This(a)), (MODIFIED, This(gone)), (DELETED, Actor(COLLECTOR))]).await?;
    row.made("configmaps/foreground-child", &[(ADDED, This(b)), (DELETED, Actor(COLLECTOR))]).await
}

pub(crate) async fn orphan(row: &Row<'_>) -> Outcome {
    let (a, b) = family(row, "orphan").await?;
    let gone = part(row, "orphan", "Orphan").await?;
    row.made("configmaps/orphan", &[(ADDED, This(a)), (MODIFIED, This(gone)), (DELETED, Actor(COLLECTOR))]).await?;
    row.made("configmaps/orphan-child", &[(ADDED, This(b)), (MODIFIED, Actor(COLLECTOR))]).await
}

/// A namespace with something in it; the finalizer of its spec is taken by `namespaces/finalize`.
pub(crate) async fn namespace(row: &Row<'_>) -> Outcome {
    let inside = format!("/api/v1/namespaces/{DOOMED}/configmaps");
    let a = row.send("operator/0", "POST", &inside, &config("inside", "a")).await?;
    let at = format!("/api/v1/namespaces/{DOOMED}");
    let gone = row.send("user", "DELETE", &at, &Value::Null).await?;
    let touched =
        row.send("harness/touch", "PATCH", &at, &json!({"metadata": {"annotations": {"touched": "1"}}})).await?;
    row.made("configmaps/inside", &[(ADDED, This(a)), (DELETED, Actor("namespace-controller"))]).await?;
    let object = format!("namespaces/{DOOMED}");
    let is_over = |made: &[Made]| made.last().is_some_and(|m| m.kind == DELETED);
    row.authors(&object, is_over, &["harness/arrange", "user", "harness/touch", "namespace-controller"]).await?;
    row.makes(gone, &object, &[MODIFIED])?;
    row.makes(touched, &object, &[MODIFIED])?;
    let made = row.life(&object);
    match made.last().map(|m| (m.actor.as_deref(), &m.claim)) {
        Some((Some("namespace-controller"), Claim::By(_))) => Ok(()),
        other => Err(format!("it was ended by {other:?}").into()),
    }
}
