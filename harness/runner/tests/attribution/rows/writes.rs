//! Creating and changing objects, whole or by their subresources; and requests that store nothing.

use crate::{
    ground::HOME,
    row::{
        ADDED,
        By::{Actor, Nobody, This},
        MODIFIED, Outcome, Row, url,
    },
};
use serde_json::{Value, json};

const APPLY: &str = "application/apply-patch+yaml";

pub(crate) fn config(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

fn widget(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"replicas": replicas}})
}

pub(crate) async fn create(row: &Row<'_>) -> Outcome {
    let made = row.send("operator/0", "POST", &url("configmaps", ""), &config("created", "a")).await?;
    let again = row.send("user", "POST", &url("configmaps", ""), &config("created", "b")).await?;
    row.answered(again, 409)?;
    row.made("configmaps/created", &[(ADDED, This(made))]).await
}

pub(crate) async fn create_with_generated_name(row: &Row<'_>) -> Outcome {
    let body = json!({"metadata": {"generateName": "generated-"}});
    let first = row.send("operator/0", "POST", &url("configmaps", ""), &body).await?;
    let second = row.send("user", "POST", &url("configmaps", ""), &body).await?;
    for sent in [first, second] {
        let name = {
            let live = row.ground.guest.recorder.live();
            let write = live.ledger.write(sent.id).ok_or("it is no write")?;
            write.answer.as_ref().and_then(|(_, a)| a.object.as_ref()?.name.clone()).ok_or("there is no name")?
        };
        row.made(&format!("configmaps/{name}"), &[(ADDED, This(sent))]).await?;
    }
    Ok(())
}

pub(crate) async fn update(row: &Row<'_>) -> Outcome {
    let at = url("configmaps", "updated");
    let a = row.send("user", "POST", &url("configmaps", ""), &config("updated", "a")).await?;
    let b = row.send("operator/0", "PUT", &at, &config("updated", "b")).await?;
    let same = row.send("harness/probe", "PUT", &at, &config("updated", "b")).await?;
    let seen = row.until("configmaps/updated", |made| made.len() >= 2).await?;
    let mut careful = seen[1].object.clone();
    let same_with_version = row.send("harness/drift", "PUT", &at, &careful).await?;
    careful["data"]["key"] = json!("c");
    let c = row.send("harness/drift", "PUT", &at, &careful).await?;
    let conflict = row.send("operator/0", "PUT", &at, &careful).await?;
    for (sent, status) in [(b, 200), (same, 200), (same_with_version, 200), (c, 200), (conflict, 409)] {
        row.answered(sent, status)?;
    }
    row.made("configmaps/updated", &[(ADDED, This(a)), (MODIFIED, This(b)), (MODIFIED, This(c))]).await
}

pub(crate) async fn merge_and_json_patch(row: &Row<'_>) -> Outcome {
    let at = url("configmaps", "patched");
    let json_patch = "application/json-patch+json";
    let a = row.send("user", "POST", &url("configmaps", ""), &config("patched", "a")).await?;
    let merge = json!({"data": {"key": "b"}});
    let b = row.send("operator/0", "PATCH", &at, &merge).await?;
    let same = row.send("harness/drift", "PATCH", &at, &merge).await?;
    row.answered(same, 200)?;
    let replace = json!([{"op": "replace", "path": "/data/key", "value": "c"}]);
    let c = row.send_as("harness/probe", "PATCH", &at, json_patch, &replace).await?;
    let same = row.send_as("operator/0", "PATCH", &at, json_patch, &replace).await?;
    row.answered(same, 200)?;
    row.made("configmaps/patched", &[(ADDED, This(a)), (MODIFIED, This(b)), (MODIFIED, This(c))]).await
}

pub(crate) async fn strategic_patch(row: &Row<'_>) -> Outcome {
    let at = url("services", "strategic");
    let strategic = "application/strategic-merge-patch+json";
    let service = json!({"metadata": {"name": "strategic"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    let a = row.send("operator/0", "POST", &url("services", ""), &service).await?;
    let patch = json!({"spec": {"ports": [{"port": 81, "name": "b"}, {"port": 80, "name": "a"}]}});
    let b = row.send_as("user", "PATCH", &at, strategic, &patch).await?;
    let same = row.send_as("operator/0", "PATCH", &at, strategic, &patch).await?;
    row.answered(same, 200)?;
    row.made("services/strategic", &[(ADDED, This(a)), (MODIFIED, This(b))]).await
}

pub(crate) async fn apply(row: &Row<'_>) -> Outcome {
    let at = |manager: &str| format!("{}?fieldManager={manager}&force=true", url("configmaps", "applied"));
    let a = row.send_as("operator/0", "PATCH", &at("a"), APPLY, &config("applied", "a")).await?;
    row.answered(a, 201)?;
    let same = row.send_as("operator/0", "PATCH", &at("a"), APPLY, &config("applied", "a")).await?;
    row.answered(same, 200)?;
    let b = row.send_as("user", "PATCH", &at("b"), APPLY, &config("applied", "b")).await?;
    // Nothing but the managers changes.
    let shared = row.send_as("harness/drift", "PATCH", &at("c"), APPLY, &config("applied", "b")).await?;
    let same = row.send_as("harness/drift", "PATCH", &at("c"), APPLY, &config("applied", "b")).await?;
    row.answered(same, 200)?;
    let lives = [(ADDED, This(a)), (MODIFIED, This(b)), (MODIFIED, This(shared))];
    row.made("configmaps/applied", &lives).await
}

pub(crate) async fn status_of_custom_resource(row: &Row<'_>) -> Outcome {
    let at = url("widgets.example.com", "w");
    let a = row.send("user", "POST", &url("widgets.example.com", ""), &widget("w", 1)).await?;
    let status = json!({"status": {"ready": 1}});
    let b = row.send("operator/0", "PATCH", &format!("{at}/status"), &status).await?;
    let same = row.send("operator/0", "PATCH", &format!("{at}/status"), &status).await?;
    row.answered(same, 200)?;
    // The main resource ignores the status.
    let ignored = row.send("harness/drift", "PATCH", &at, &json!({"status": {"ready": 7}})).await?;
    row.answered(ignored, 200)?;
    let seen = row.until("widgets.example.com/w", |made| made.len() >= 2).await?;
    let mut object = seen[1].object.clone();
    object["status"]["ready"] = json!(2);
    let c = row.send("operator/0", "PUT", &format!("{at}/status"), &object).await?;
    let d = row.send("user", "PATCH", &at, &json!({"spec": {"replicas": 2}})).await?;
    row.made(
        "widgets.example.com/w",
        &[(ADDED, This(a)), (MODIFIED, This(b)), (MODIFIED, This(c)), (MODIFIED, This(d))],
    )
    .await
}

pub(crate) async fn status_of_built_in(row: &Row<'_>) -> Outcome {
    let at = url("services", "with-status");
    let service = json!({"metadata": {"name": "with-status"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    let a = row.send("user", "POST", &url("services", ""), &service).await?;
    let condition = json!({"type": "Fine", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"conditions": [condition]}});
    let b = row.send("operator/0", "PATCH", &format!("{at}/status"), &status).await?;
    let same = row.send("user", "PATCH", &format!("{at}/status"), &status).await?;
    row.answered(same, 200)?;
    row.made("services/with-status", &[(ADDED, This(a)), (MODIFIED, This(b))]).await
}

pub(crate) async fn scale(row: &Row<'_>) -> Outcome {
    let at = url("widgets.example.com", "scaled");
    let a = row.send("user", "POST", &url("widgets.example.com", ""), &widget("scaled", 1)).await?;
    let b = row.send("operator/0", "PATCH", &format!("{at}/scale"), &json!({"spec": {"replicas": 3}})).await?;
    let same = row.send("user", "PATCH", &format!("{at}/scale"), &json!({"spec": {"replicas": 3}})).await?;
    row.answered(same, 200)?;
    row.made("widgets.example.com/scaled", &[(ADDED, This(a)), (MODIFIED, This(b))]).await
}

pub(crate) async fn nothing_stored(row: &Row<'_>) -> Outcome {
    let at = url("configmaps", "untouched");
    let a = row.send("user", "POST", &url("configmaps", ""), &config("untouched", "a")).await?;
    let token =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let patch = json!({"data": {"key": "b"}});
    let asked = [
        row.send("operator/0", "POST", &format!("{}/token", url("serviceaccounts", "default")), &token).await?,
        row.send("operator/0", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await?,
        row.send("operator/0", "POST", &format!("{}?dryRun=All", url("configmaps", "")), &config("dry", "a")).await?,
    ];
    let dry = row.send("operator/0", "PATCH", &format!("{at}?dryRun=All"), &patch).await?;
    for (sent, status) in asked.into_iter().zip([201; 3]).chain([(dry, 200)]) {
        row.answered(sent, status)?;
    }
    let b = row.send("user", "PATCH", &at, &patch).await?;
    row.made("configmaps/untouched", &[(ADDED, This(a)), (MODIFIED, This(b))]).await?;
    row.made("configmaps/dry", &[]).await
}

/// Quota admission counts what is made: the API server's own write, on no listener.
pub(crate) async fn side_effects_of_the_api_server(row: &Row<'_>) -> Outcome {
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/widgets.example.com": "100"}}});
    let at = url("resourcequotas", "q");
    let a = row.send("operator/0", "POST", &url("resourcequotas", ""), &quota).await?;
    let used = |object: &Value| {
        object["status"]["used"]["count/widgets.example.com"].as_str().and_then(|n| n.parse::<u64>().ok())
    };
    let made = row.until("resourcequotas/q", |made| made.last().is_some_and(|m| used(&m.object).is_some())).await?;
    let counted = made.len();
    let before = used(&made[counted - 1].object);
    let more = row.send("operator/0", "POST", &url("widgets.example.com", ""), &widget("counted", 0)).await?;
    row.until("resourcequotas/q", |made| made.len() > counted).await?;
    // Somebody who changes nothing is not its author either.
    row.send("operator/0", "PATCH", &at, &json!({"spec": {"hard": {"count/widgets.example.com": "100"}}})).await?;
    row.made("widgets.example.com/counted", &[(ADDED, This(more))]).await?;
    let made = row.until("resourcequotas/q", |made| made.len() > counted).await?;
    if used(&made[counted].object) <= before {
        return Err(format!("{HOME}: the quota does not count").into());
    }
    row.made("resourcequotas/q", &[(ADDED, This(a)), (MODIFIED, Actor("resourcequota-controller")), (MODIFIED, Nobody)])
        .await
}
