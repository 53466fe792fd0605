//! What a correct API server could do, and to which requests.

use super::*;
use Legality::{Always, Never, Some as ForSome};

#[test]
fn every_action_is_as_legal_as_declared() {
    for (action, expected) in [
        (json!({"conflict": {}}), Always),
        (json!({"disconnect": {"as": "timeout504"}}), Always),
        (json!({"delay": {"by": "1s"}}), Always),
        (json!({"hold": {"until": {"elapsed": "1s"}}}), Always),
        (json!({"crash": {}}), Always),
        (json!({"pause": {"for": "1s"}}), Always),
        (json!({"mark": {}}), Always),
        (json!({"throttle": {"perSecond": 1}}), Always),
        (json!({"goaway": {}}), Always),
        (json!({"expireToken": {}}), Always),
        (json!({"rotateToken": {}}), Always),
        (json!({"denyVerb": {}}), Always),
        (json!({"discoveryFailure": {"group": "example.com"}}), Always),
        (json!({"holdWatchStart": {"until": {"elapsed": "1s"}}}), Always),
        (json!({"shortWatch": {"timeout": "1s"}}), Always),
        (json!({"closeWatch": {"as": "error410"}}), Always),
        (json!({"withholdEvents": {}}), Always),
        (json!({"withholdBookmarks": {}}), Always),
        (json!({"delayEvents": {"by": "1s"}}), Always),
        (json!({"partition": {"as": "refuse"}}), Always),
        (json!({"staleView": {"at": {"step": "s"}}}), ForSome),
        (json!({"emptyList": {}}), Never),
        (json!({"dropEvents": {}}), Never),
        (json!({"duplicateEvents": {}}), Never),
        (json!({"replayFromOlder": {"versions": 1}}), Never),
    ] {
        assert_eq!(fault(json!({"name": "f", "do": action})).legality(), expected, "{action}");
    }
}

#[test]
fn a_refusal_is_as_legal_as_its_status_reason_and_verb() {
    for (verb, refusal, expected) in [
        ("get", json!({"status": 401}), Always),
        ("watch", json!({"status": 403}), Always),
        ("get", json!({"status": 403, "by": "rbac"}), Always),
        ("create", json!({"status": 403, "by": "quota"}), Always),
        ("delete", json!({"status": 403, "by": "quota"}), Never),
        ("delete", json!({"status": 403, "by": "webhook"}), Always),
        ("list", json!({"status": 403, "by": "webhook"}), Never),
        ("update", json!({"status": 422, "by": "webhook", "reason": "Invalid"}), Always),
        ("update", json!({"status": 500, "by": "webhook"}), Always),
        ("get", json!({"status": 500, "by": "webhook"}), Never),
        ("create", json!({"status": 429, "by": "budget"}), Always),
        ("delete", json!({"status": 429, "by": "budget"}), Never),
        ("get", json!({"status": 429}), Always),
        ("get", json!({"status": 500}), Always),
        ("get", json!({"status": 500, "reason": "ServerTimeout"}), Always),
        ("get", json!({"status": 502}), Always),
        ("get", json!({"status": 503}), Always),
        ("get", json!({"status": 504}), Always),
        ("get", json!({"status": 504, "reason": "Conflict"}), Never),
        ("get", json!({"status": 501}), Never),
        ("get", json!({"status": 408}), Never),
        ("get", json!({"status": 404}), Never),
        ("get", json!({"status": 404, "by": "path"}), Always),
        ("create", json!({"status": 400}), Never),
        ("create", json!({"status": 405}), Never),
        ("list", json!({"status": 406}), Never),
        ("create", json!({"status": 413}), Never),
        ("create", json!({"status": 415}), Never),
        ("create", json!({"status": 422}), Never),
        ("update", json!({"status": 409}), Always),
        ("patch", json!({"status": 409}), Always),
        ("delete", json!({"status": 409}), Always),
        ("create", json!({"status": 409}), Never),
        ("get", json!({"status": 409}), Never),
        ("create", json!({"status": 409, "reason": "AlreadyExists"}), Never),
        ("update", json!({"status": 409, "reason": "AlreadyExists"}), Never),
        ("watch", json!({"status": 410}), Always),
        ("list", json!({"status": 410}), Never),
        ("get", json!({"status": 410}), Never),
    ] {
        let declared = fault(json!({"name": "f", "match": {"verb": verb}, "do": {"reject": refusal}}));
        assert_eq!(declared.legality(), expected, "{verb} {refusal}");
    }
    // Without a verb: what it is at best.
    assert_eq!(fault(json!({"name": "f", "do": {"reject": {"status": 409}}})).legality(), Always);
    assert_eq!(fault(json!({"name": "f", "do": {"reject": {"status": 404}}})).legality(), Never);
}

#[test]
fn a_refusal_is_as_legal_as_the_request_that_it_meets() {
    const CONFIGMAP: &str = "/api/v1/namespaces/a/configmaps/x";
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/a/widgets";
    let plain = Bodies::default;
    let versioned = || Bodies { resource_version: Some("5".into()), ..plain() };
    let applied = || Bodies { apply: true, ..plain() };
    let named = || Bodies { name: Some("x".into()), ..plain() };
    let generated = || Bodies { generate_name: Some("x-".into()), ..plain() };
    let exists = json!({"status": 409, "reason": "AlreadyExists"});
    let conflict = json!({"status": 409});
    let expired = json!({"status": 410});
    let unserved = json!({"status": 404, "by": "path"});
    let budget = json!({"status": 429, "by": "budget"});
    for (refusal, method, url, bodies, expected) in [
        (&conflict, "PUT", CONFIGMAP, versioned(), Always),
        (&conflict, "PUT", CONFIGMAP, plain(), Never),
        (&conflict, "PATCH", CONFIGMAP, versioned(), Always),
        (&conflict, "PATCH", CONFIGMAP, plain(), Never),
        (&conflict, "PATCH", CONFIGMAP, applied(), Always),
        (&conflict, "PATCH", "/api/v1/namespaces/a/configmaps/x?force=true", applied(), Never),
        (&conflict, "DELETE", CONFIGMAP, versioned(), Always),
        (&conflict, "DELETE", CONFIGMAP, plain(), Never),
        (&conflict, "GET", CONFIGMAP, plain(), Never),
        (&exists, "POST", PODS, named(), Never),
        (&exists, "POST", PODS, generated(), Always),
        (&expired, "GET", "/api/v1/pods?watch=true&resourceVersion=5", plain(), Always),
        (&expired, "GET", "/api/v1/pods?watch=true&resourceVersion=0", plain(), Never),
        (&expired, "GET", "/api/v1/pods?watch=true", plain(), Never),
        (&expired, "GET", "/api/v1/pods", plain(), Never),
        (&expired, "GET", "/api/v1/pods?resourceVersion=5", plain(), Never),
        (&expired, "GET", "/api/v1/pods?limit=5&continue=abc", plain(), Always),
        (&expired, "GET", "/api/v1/pods?resourceVersion=5&resourceVersionMatch=Exact", plain(), Always),
        (&unserved, "GET", WIDGETS, plain(), Always),
        (&unserved, "GET", "/apis/example.com/v1", plain(), Always),
        (&unserved, "GET", "/apis/apps/v1/namespaces/a/statefulsets", plain(), Never),
        (&unserved, "GET", "/apis/rbac.authorization.k8s.io/v1/roles", plain(), Never),
        (&unserved, "GET", PODS, plain(), Never),
        (&budget, "POST", "/api/v1/namespaces/a/pods/p/eviction", named(), Always),
        (&budget, "POST", PODS, named(), Never),
    ] {
        let mut rules = RuleSet::new(&[fault(json!({"name": "f", "do": {"reject": refusal}}))]).unwrap();
        rules.arm("f");
        let (actor, info) = (Actor::operator(0), RequestInfo::classify(method, url));
        let x = Exchange { id: RequestId(1), actor: &actor, user_agent: None, info: &info, bodies: &bodies };
        let fired = rules.on_request(&x).1.into_iter().find_map(|event| match event {
            RuleEvent::Fired { legality, .. } => legality,
            RuleEvent::Matched { .. } => None,
        });
        // A subresource is meant too, since no resource is named.
        assert_eq!(fired, Some(expected), "{refusal} {method} {url}");
    }
}
