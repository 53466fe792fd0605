use super::*;

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// As a fault tells, to a request with this body.
fn refuse(method: &str, url: &str, body: &Value, reject: &Value) -> (Response<Body>, Value) {
    let info = RequestInfo::classify(method, url);
    let bodies = crate::bodies::read(&info, Some("application/json"), body.to_string().as_bytes());
    let action: Action = serde_json::from_value(json!({"reject": reject})).unwrap();
    let (told, method) = (Told::of(&action).unwrap(), method.parse().unwrap());
    let refusal = Refusal { told, method: &method, info: &info, bodies: &bodies, user: Some("nobody") };
    let words = refusal.words();
    (refusal.response(), refusal.status(&words))
}

/// What cannot be compared with a real API server (`harness/runner/tests/answers`), or only up to what varies.
#[test]
fn refusals_say_what_the_request_and_the_refuser_are() {
    let named = json!({"metadata": {"name": "x"}});
    for (method, url, reject, message, details) in [
        // Seen of v1.36.3, with such a webhook.
        (
            "POST",
            CONFIGMAPS,
            json!({"status": 403, "by": "webhook", "named": "check.example.com"}),
            r#"admission webhook "check.example.com" denied the request: Forbidden"#,
            Value::Null,
        ),
        (
            "POST",
            CONFIGMAPS,
            json!({"status": 400, "by": "webhook", "named": "check.example.com"}),
            r#"admission webhook "check.example.com" denied the request without explanation"#,
            Value::Null,
        ),
        // From the source (`errors.go`, `NewServerTimeout`).
        (
            "GET",
            "/apis/apps/v1/namespaces/default/statefulsets/s",
            json!({"status": 500, "reason": "ServerTimeout", "retryAfter": 3}),
            "The get operation against statefulsets.apps could not be completed at this time, please try again.",
            json!({"name": "get", "group": "apps", "kind": "statefulsets", "retryAfterSeconds": 3}),
        ),
        ("GET", CONFIGMAPS, json!({"status": 500}), "etcdserver: request timed out", Value::Null),
        (
            "GET",
            CONFIGMAPS,
            json!({"status": 500, "reason": "InternalError", "message": "Internal error occurred: no"}),
            "Internal error occurred: no",
            json!({"causes": [{"message": "no"}]}),
        ),
        // `waitgroup.go`.
        ("GET", CONFIGMAPS, json!({"status": 503}), "apiserver is shutting down", Value::Null),
        // `cacher.go`.
        (
            "GET",
            CONFIGMAPS,
            json!({"status": 429, "reason": "TooManyRequests"}),
            "storage is (re)initializing",
            json!({"retryAfterSeconds": 1}),
        ),
        (
            "POST",
            "/apis/apps/v1/namespaces/default/statefulsets",
            json!({"status": 403, "by": "quota"}),
            "statefulsets.apps \"x\" is forbidden: exceeded quota: quota, requested: count/statefulsets.apps=1, used: \
             count/statefulsets.apps=0, limited: count/statefulsets.apps=0",
            json!({"name": "x", "group": "apps", "kind": "statefulsets"}),
        ),
        (
            "GET",
            "/api/v1/pods",
            json!({"status": 418}),
            "the server rejected our request with the status code 418",
            Value::Null,
        ),
    ] {
        let (response, status) = refuse(method, url, &named, &reject);
        assert_eq!(status["message"], message, "{method} {url} {reject}");
        assert_eq!(status["details"], details, "{method} {url} {reject}");
        assert_eq!(status["code"], reject["status"]);
        assert_eq!(Value::from(response.status().as_u16()), reject["status"]);
    }
}

#[test]
fn who_asks_to_come_back_says_when() {
    for (reject, expected) in [
        (json!({"status": 429}), Some("1")),
        (json!({"status": 429, "retryAfter": 7}), Some("7")),
        (json!({"status": 429, "by": "budget"}), None),
        (json!({"status": 429, "by": "budget", "retryAfter": 10}), Some("10")),
        (json!({"status": 503}), Some("1")),
        (json!({"status": 500}), None),
    ] {
        let (response, _) = refuse("GET", CONFIGMAPS, &Value::Null, &reject);
        let given = response.headers().get("retry-after").map(|v| v.to_str().unwrap());
        assert_eq!(given, expected, "{reject}");
    }
}

#[test]
fn an_apply_conflicts_by_field() {
    let info = RequestInfo::classify("PATCH", "/api/v1/namespaces/a/configmaps/x");
    let bodies = Bodies { apply: true, ..Bodies::default() };
    let refusal = Refusal { told: Told::status(409), method: &Method::PATCH, info: &info, bodies: &bodies, user: None };
    let status = refusal.status(&refusal.words());
    assert_eq!(
        status["message"],
        r#"Apply failed with 1 conflict: conflict with "kubectl-edit": .metadata.labels.app"#
    );
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert!(status["details"]["name"].is_null());
}

#[test]
fn kinds_are_made_from_resources() {
    for (resource, kind) in
        [("pods", "Pod"), ("statefulsets", "StatefulSet"), ("widgets", "Widget"), ("ingresses", "Ingress")]
    {
        assert_eq!(kinds::kind_of(&spiritlevel_model::ResourceKey::new("", resource)), kind);
    }
}
