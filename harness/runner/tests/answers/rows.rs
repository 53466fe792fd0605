//! The rows, by status.

use crate::ground::{Ask, CONFIGMAPS, Ground, HOME, Outcome, Row, WIDGETS, Who};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A row from an async function.
macro_rules! rows {
    ($($row:ident),* $(,)?) => {
        vec![$((stringify!($row), (|ground| Box::pin($row(ground))) as Row)),*]
    };
}

/// All rows.
pub(crate) fn all() -> Vec<(&'static str, Row)> {
    rows![
        bad_request,
        unauthorized,
        forbidden_by_rbac,
        not_found,
        not_served,
        method_not_allowed,
        not_acceptable,
        conflict,
        conflict_of_precondition,
        conflict_of_apply,
        already_exists,
        expired_list,
        expired_watch,
        too_large,
        unsupported_media_type,
        invalid,
        held_by_disruption_budget,
        webhook_that_cannot_be_called,
        timeout,
        // What it limits, later rows cannot make.
        forbidden_by_quota,
    ]
}

fn configmap(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn widget(name: &str, size: u8) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}})
}

fn old(mut object: Value) -> Value {
    object["metadata"]["resourceVersion"] = "1".into();
    object
}

fn get(url: impl Into<String>) -> Ask {
    Ask::new("GET", url, &Value::Null)
}

/// Takes the digits out of the message.
fn without_numbers(essence: &mut Value) {
    let message = essence.pointer_mut("/body/message");
    if let Some(Value::String(message)) = message {
        message.retain(|c| !c.is_ascii_digit());
    }
}

async fn bad_request(ground: &Ground) -> Outcome {
    for (method, url) in
        [("POST", CONFIGMAPS.to_owned()), ("POST", WIDGETS.to_owned()), ("PATCH", format!("{CONFIGMAPS}/x"))]
    {
        let mut ask = Ask::new(method, url, &Value::Null);
        if method == "PATCH" {
            ask.body = " ".into();
        }
        ground.same(&ask, &json!({"status": 400})).await?;
    }
    Ok(())
}

async fn unauthorized(ground: &Ground) -> Outcome {
    for url in [CONFIGMAPS, "/api", "/apis/example.com/v1"] {
        ground.same(&get(url).by(Who::Stranger), &json!({"status": 401})).await?;
    }
    Ok(())
}

async fn forbidden_by_rbac(ground: &Ground) -> Outcome {
    let status = format!("{WIDGETS}/w/status");
    let statefulsets = "/apis/apps/v1/namespaces/answers/statefulsets";
    for (method, url, body) in [
        ("GET", format!("{CONFIGMAPS}/x"), Value::Null),
        ("GET", CONFIGMAPS.into(), Value::Null),
        ("GET", format!("{CONFIGMAPS}?fieldSelector=metadata.name=x"), Value::Null),
        ("GET", "/api/v1/configmaps".into(), Value::Null),
        ("GET", "/api/v1/nodes/n".into(), Value::Null),
        ("GET", "/api/v1/namespaces/answers".into(), Value::Null),
        ("POST", CONFIGMAPS.into(), configmap("x")),
        ("POST", "/api/v1/namespaces".into(), json!({"metadata": {"name": "other"}})),
        ("PUT", status, widget("w", 1)),
        ("PATCH", format!("{WIDGETS}/w"), json!({})),
        ("DELETE", statefulsets.into(), Value::Null),
        ("DELETE", format!("{statefulsets}/s"), Value::Null),
        ("POST", format!("{HOME}/pods/p/eviction"), json!({"metadata": {"name": "p"}})),
        ("GET", "/metrics".into(), Value::Null),
        ("POST", "/metrics".into(), Value::Null),
    ] {
        ground.same(&Ask::new(method, url, &body).by(Who::Nobody), &json!({"status": 403})).await?;
    }
    // A watch that is refused is not opened.
    let watch = get("/api/v1/configmaps?watch=1").by(Who::Nobody);
    ground.same(&watch, &json!({"status": 403, "by": "rbac"})).await
}

async fn forbidden_by_quota(ground: &Ground) -> Outcome {
    let quota =
        json!({"metadata": {"name": "few"}, "spec": {"hard": {"secrets": "0", "count/widgets.example.com": "0"}}});
    let quotas = format!("{HOME}/resourcequotas");
    ground.done("POST", &quotas, &quota).await?;
    let reject = json!({"status": 403, "by": "quota", "named": "few"});
    let secret = json!({"metadata": {"name": "s"}, "data": {}});
    // Until its controller has filled in the status, the quota is unknown and the words are others: a dry run tells.
    let asks = [Ask::new("POST", format!("{HOME}/secrets"), &secret), Ask::new("POST", WIDGETS, &widget("counted", 1))];
    for ask in &asks {
        let known = format!("{}?dryRun=All", ask.url);
        let known = Ask { url: known, ..ask.clone() };
        loop {
            let real = ground.until_refused(&known, 403).await?;
            if real.text.contains("exceeded quota") {
                break;
            }
            tokio::task::yield_now().await;
        }
        // How much is used, the proxy does not know.
        let blur = |essence: &mut Value| {
            if let Some(Value::String(message)) = essence.pointer_mut("/body/message") {
                message.retain(|c| !c.is_ascii_digit());
            }
        };
        ground.alike(ask, &reject, blur).await?;
    }
    ground.done("DELETE", &format!("{quotas}/few"), &Value::Null).await?;
    Ok(())
}

async fn not_found(ground: &Ground) -> Outcome {
    for (method, url, body) in [
        ("GET", format!("{CONFIGMAPS}/none"), Value::Null),
        ("DELETE", format!("{CONFIGMAPS}/none"), Value::Null),
        ("PUT", format!("{CONFIGMAPS}/none"), configmap("none")),
        ("PATCH", format!("{CONFIGMAPS}/none"), json!({})),
        ("GET", format!("{WIDGETS}/none"), Value::Null),
        ("PUT", format!("{WIDGETS}/none/status"), old(widget("none", 1))),
        ("GET", "/apis/apps/v1/namespaces/answers/things".into(), Value::Null),
    ] {
        ground.same(&Ask::new(method, url, &body), &json!({"status": 404})).await?;
    }
    Ok(())
}

async fn not_served(ground: &Ground) -> Outcome {
    let group = "/apis/nowhere.example.com/v1";
    for url in ["/nowhere".into(), group.into(), format!("{group}/namespaces/answers/things")] {
        ground.same(&get(url), &json!({"status": 404})).await?;
    }
    let one = get(format!("{group}/namespaces/answers/things/x"));
    ground.same(&one, &json!({"status": 404, "by": "path"})).await
}

async fn method_not_allowed(ground: &Ground) -> Outcome {
    for (method, url) in
        [("PUT", CONFIGMAPS.to_owned()), ("PATCH", format!("{HOME}/pods/p/eviction")), ("POST", "/version".into())]
    {
        ground.same(&Ask::new(method, url, &json!({})), &json!({"status": 405})).await?;
    }
    Ok(())
}

async fn not_acceptable(ground: &Ground) -> Outcome {
    ground.same(&Ask { accept: "text/html", ..get(CONFIGMAPS) }, &json!({"status": 406})).await
}

async fn conflict(ground: &Ground) -> Outcome {
    ground.done("POST", WIDGETS, &widget("w", 1)).await?;
    for (method, url, body) in [
        ("PUT", format!("{CONFIGMAPS}/x"), old(configmap("x"))),
        ("PATCH", format!("{CONFIGMAPS}/x"), json!({"metadata": {"resourceVersion": "1"}})),
        ("PUT", format!("{WIDGETS}/w"), old(widget("w", 2))),
        ("PUT", format!("{WIDGETS}/w/status"), old(widget("w", 2))),
    ] {
        ground.same(&Ask::new(method, url, &body), &json!({"status": 409})).await?;
    }
    Ok(())
}

async fn conflict_of_precondition(ground: &Ground) -> Outcome {
    let careful = json!({"preconditions": {"resourceVersion": "1"}});
    for url in [format!("{CONFIGMAPS}/x"), format!("{WIDGETS}/w")] {
        // Which version is stored, the proxy does not know.
        ground.alike(&Ask::new("DELETE", url, &careful), &json!({"status": 409}), without_numbers).await?;
    }
    Ok(())
}

async fn conflict_of_apply(ground: &Ground) -> Outcome {
    let labelled = |value: &str| {
        let mut object = configmap("applied");
        object["metadata"]["labels"] = json!({"app": value});
        object
    };
    let apply = |manager: &str, value: &str| {
        let url = format!("{CONFIGMAPS}/applied?fieldManager={manager}");
        Ask { content_type: "application/apply-patch+yaml", ..Ask::new("PATCH", url, &labelled(value)) }
    };
    ground.really(&apply("kubectl-edit", "a")).await?;
    ground.same(&apply("other", "b"), &json!({"status": 409})).await
}

async fn already_exists(ground: &Ground) -> Outcome {
    let reject = json!({"status": 409, "reason": "AlreadyExists"});
    ground.same(&Ask::new("POST", CONFIGMAPS, &configmap("x")), &reject).await?;
    ground.same(&Ask::new("POST", WIDGETS, &widget("w", 1)), &reject).await
}

/// Of events: they have no watch cache, which would know the past for longer than etcd does.
async fn expired_list(ground: &Ground) -> Outcome {
    let events = format!("{HOME}/events");
    let event =
        |name: &str| json!({"metadata": {"name": name}, "involvedObject": {"namespace": "answers"}, "reason": "Row"});
    for name in ["a", "b"] {
        ground.done("POST", &events, &event(name)).await?;
    }
    let first = ground.done("GET", &format!("{events}?limit=1"), &Value::Null).await?;
    let of = |list: &Value, key: &str| list["metadata"][key].as_str().unwrap_or_default().to_owned();
    let (token, revision) = (of(&first, "continue"), of(&first, "resourceVersion"));
    ground.done("POST", &events, &event("c")).await?;
    let now = ground.done("GET", &events, &Value::Null).await?;
    ground.compact(&of(&now, "resourceVersion")).await?;
    let exact = get(format!("{events}?resourceVersion={revision}&resourceVersionMatch=Exact"));
    ground.same(&exact, &json!({"status": 410})).await?;
    // The order of the fields in a token does not matter.
    let decoded = |essence: &mut Value| {
        let Some(token) = essence.pointer_mut("/body/metadata/continue") else { return };
        let bytes = token.as_str().and_then(|t| BASE64_URL_SAFE_NO_PAD.decode(t).ok()).unwrap_or_default();
        *token = serde_json::from_slice(&bytes).unwrap_or_default();
    };
    ground.alike(&get(format!("{events}?limit=1&continue={token}")), &json!({"status": 410}), decoded).await
}

async fn expired_watch(ground: &Ground) -> Outcome {
    // The cache of a kind that came later than the store's first versions: that of ConfigMaps may know them all.
    let watch = get(format!("{WIDGETS}?watch=true&resourceVersion=1&timeoutSeconds=1"));
    // Which version is the oldest, the proxy does not know.
    let blur = |essence: &mut Value| {
        if let Some(Value::String(message)) = essence.pointer_mut("/body/object/message") {
            message.retain(|c| !c.is_ascii_digit());
        }
    };
    ground.alike(&watch, &json!({"status": 410}), blur).await
}

async fn too_large(ground: &Ground) -> Outcome {
    for url in [CONFIGMAPS, WIDGETS] {
        let ask = Ask { body: "x".repeat(3 * 1024 * 1024 + 1), ..Ask::new("POST", url, &Value::Null) };
        ground.same(&ask, &json!({"status": 413})).await?;
    }
    Ok(())
}

async fn unsupported_media_type(ground: &Ground) -> Outcome {
    for (method, url, content_type) in [
        ("POST", CONFIGMAPS.to_owned(), "text/plain"),
        ("POST", WIDGETS.into(), "text/plain"),
        ("PATCH", format!("{CONFIGMAPS}/x"), "text/plain"),
        ("PATCH", format!("{WIDGETS}/w"), "application/strategic-merge-patch+json"),
    ] {
        let ask = Ask { content_type, ..Ask::new(method, url, &json!({})) };
        ground.same(&ask, &json!({"status": 415})).await?;
    }
    Ok(())
}

/// Which field is wrong, and how, only validation knows.
async fn invalid(ground: &Ground) -> Outcome {
    let same_place = |essence: &mut Value| {
        if let Some(Value::String(message)) = essence.pointer_mut("/body/message") {
            message.truncate(message.find(" is invalid: ").unwrap_or_default());
        }
        if let Some(causes) = essence.pointer_mut("/body/details/causes").and_then(Value::as_array_mut) {
            for cause in causes {
                *cause = json!(cause.as_object().map(|c| c.keys().cloned().collect::<Vec<_>>()));
            }
        }
    };
    for (url, body) in [(CONFIGMAPS, configmap("No_Name")), (WIDGETS, widget("large", 9))] {
        ground.alike(&Ask::new("POST", url, &body), &json!({"status": 422}), same_place).await?;
    }
    Ok(())
}

async fn held_by_disruption_budget(ground: &Ground) -> Outcome {
    let pod = json!({
        "metadata": {"name": "p", "labels": {"held": "yes"}},
        "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
    });
    let budget = json!({
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"held": "yes"}}},
    });
    // Without its account, admission refuses pods; a controller may have been faster.
    let account = json!({"metadata": {"name": "default"}});
    ground.really(&Ask::new("POST", format!("{HOME}/serviceaccounts"), &account)).await?;
    ground.done("POST", &format!("{HOME}/pods"), &pod).await?;
    let budgets = "/apis/policy/v1/namespaces/answers/poddisruptionbudgets";
    ground.done("POST", budgets, &budget).await?;
    let evict = Ask::new("POST", format!("{HOME}/pods/p/eviction?dryRun=All"), &json!({"metadata": {"name": "p"}}));
    // Until its controller has counted the pod.
    loop {
        let real = ground.until_refused(&evict, 429).await?;
        if real.text.contains("has 1 currently") {
            break;
        }
        tokio::task::yield_now().await;
    }
    ground.same(&evict, &json!({"status": 429, "by": "budget", "named": "all"})).await
}

async fn webhook_that_cannot_be_called(ground: &Ground) -> Outcome {
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let hook = json!({"metadata": {"name": "gone"}, "webhooks": [{
        "name": "gone.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["limitranges"]}],
        "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
    }]});
    ground.done("POST", hooks, &hook).await?;
    let ask = Ask::new(
        "POST",
        format!("{HOME}/limitranges?dryRun=All"),
        &json!({"metadata": {"name": "l"}, "spec": {"limits": []}}),
    );
    // Where the webhook would have been, and why it is not there, varies.
    let up_to_the_url = |essence: &mut Value| {
        for place in ["/body/message", "/body/details/causes/0/message"] {
            if let Some(Value::String(message)) = essence.pointer_mut(place) {
                message.truncate(message.find("Post ").unwrap_or_default());
            }
        }
    };
    let outcome =
        ground.alike(&ask, &json!({"status": 500, "by": "webhook", "named": "gone.example.com"}), up_to_the_url).await;
    ground.done("DELETE", &format!("{hooks}/gone"), &Value::Null).await?;
    outcome
}

async fn timeout(ground: &Ground) -> Outcome {
    ground.same(&get(format!("{CONFIGMAPS}?timeout=1ns")), &json!({"status": 504})).await?;
    ground
        .same(&Ask::new("POST", format!("{CONFIGMAPS}?timeout=1ns"), &configmap("late")), &json!({"status": 504}))
        .await
}
