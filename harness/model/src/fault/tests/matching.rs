//! Which requests and events the rarer actions mean, and when.

use super::*;
use crate::Revision;

fn armed(yaml: serde_json::Value) -> RuleSet {
    let fault = fault(yaml);
    let mut rules = RuleSet::new(std::slice::from_ref(&fault)).unwrap();
    rules.arm(&fault.name);
    rules
}

#[test]
fn an_action_meets_only_requests_that_it_means_something_for() {
    let list = PODS;
    let watch = &format!("{PODS}?watch=true&resourceVersion=5");
    let one = &format!("{PODS}/p");
    for (action, expected) in [
        (json!({"emptyList": {}}), [true, false, false, false]),
        (json!({"holdWatchStart": {"until": {"elapsed": "1s"}}}), [false, true, false, false]),
        (json!({"shortWatch": {"timeout": "5s"}}), [false, true, false, false]),
        (json!({"discoveryFailure": {"group": "db.example.com"}}), [false, false, false, true]),
        (json!({"denyVerb": {}}), [true, true, true, true]),
        (json!({"throttle": {"perSecond": 1}}), [true, true, true, true]),
        (json!({"withholdBookmarks": {}}), [false, false, false, false]),
    ] {
        let mut rules = armed(json!({"name": "f", "do": action.clone()}));
        let urls = [list, watch, one, "/apis/db.example.com/v1"];
        let met = urls.map(|url| ask(&mut rules, 1, "operator/0", "GET", url).is_some());
        // Once is enough for `emptyList`; everything else here lasts.
        assert_eq!(met, expected, "{action}");
    }
    let mut rules = armed(json!({"name": "f", "do": {"discoveryFailure": {"group": "db.example.com"}}}));
    for (url, met) in [
        ("/apis", true),
        ("/apis/db.example.com", true),
        ("/apis/apps/v1", false),
        ("/api", false),
        ("/apis/db.example.com/v1/namespaces/a/postgresclusters", false),
    ] {
        assert_eq!(ask(&mut rules, 1, "operator/0", "GET", url).is_some(), met, "{url}");
    }
}

#[test]
fn what_lasts_fires_until_it_is_healed_and_the_rest_once() {
    for (action, times) in [
        (json!({"denyVerb": {}}), 3),
        (json!({"throttle": {"perSecond": 1}}), 3),
        (json!({"emptyList": {}}), 1),
        (json!({"goaway": {}}), 1),
        (json!({"expireToken": {}}), 1),
        (json!({"rotateToken": {}}), 1),
    ] {
        let mut rules = armed(json!({"name": "f", "do": action.clone()}));
        for id in 1..=3 {
            ask(&mut rules, id, "operator/0", "GET", PODS);
        }
        assert_eq!(rules.fired("f"), times, "{action}");
    }
}

#[test]
fn a_watch_is_shortened_by_its_own_parameter() {
    let mut rules = armed(json!({"name": "f", "do": {"shortWatch": {"timeout": "5s"}}}));
    let (actor, info) = (Actor::operator(0), RequestInfo::classify("GET", &format!("{PODS}?watch=true")));
    let x = Exchange { id: RequestId(1), actor: &actor, user_agent: None, info: &info, bodies: &Bodies::default() };
    let firing = rules.on_request(&x).0.unwrap();
    assert_eq!(firing.rewrite, [("timeoutSeconds".to_owned(), Some("5".to_owned()))]);
}

#[test]
fn nothing_matches_before_what_comes_first() {
    let mut rules = armed(json!({
        "name": "f", "match": {"verb": "create", "resource": "pods", "after": {"fired": "other"}}, "do": {"mark": {}}
    }));
    assert_eq!(rules.awaited().len(), 1);
    assert_eq!(ask(&mut rules, 1, "operator/0", "POST", PODS), None);
    rules.open("f");
    assert!(rules.awaited().is_empty());
    assert_eq!(ask(&mut rules, 2, "operator/0", "POST", PODS).as_deref(), Some("f"), "what came before does not count");
    rules.arm("f");
    assert_eq!(ask(&mut rules, 3, "operator/0", "POST", PODS), None, "armed anew, it waits anew");
}

#[test]
fn a_change_is_matched_by_what_it_would_make_of_what_is_there() {
    let yaml = json!({
        "name": "f", "match": {"verb": "patch", "resource": "pods", "times": 9,
            "body": "object.spec.replicas > 1", "diff": "object.spec.replicas < old.spec.replicas"},
        "do": {"mark": {}}
    });
    let url = format!("{PODS}/p");
    for (stored, outcome, expected) in [
        (Some(3), Some(2), true),
        (Some(2), Some(3), false),
        (Some(3), Some(1), false),
        (None, Some(2), false),
        (Some(3), None, false),
    ] {
        let mut rules = armed(yaml.clone());
        let of = |n: Option<i64>| n.map(|n| json!({"spec": {"replicas": n}}));
        // The patch itself says nothing of this.
        let bodies = Bodies {
            json: Some(json!([{"op": "remove", "path": "/x"}])),
            stored: of(stored),
            outcome: of(outcome),
            ..Bodies::default()
        };
        let met = ask_with(&mut rules, 1, "operator/0", "PATCH", &url, &bodies).is_some();
        assert_eq!(met, expected, "{stored:?} to {outcome:?}");
    }
}

#[test]
fn the_outcome_is_asked_for_only_where_it_decides() {
    let rules = |after: bool| {
        let mut yaml = json!({"name": "f", "match": {"resource": "pods", "body": "true"}, "do": {"mark": {}}});
        if after {
            yaml["match"]["after"] = json!({"step": "later"});
        }
        armed(yaml)
    };
    let asks = |rules: &RuleSet, method: &str, url: &str| {
        let (actor, info) = (Actor::operator(0), RequestInfo::classify(method, url));
        let bodies = Bodies::default();
        let x = Exchange { id: RequestId(1), actor: &actor, user_agent: None, info: &info, bodies: &bodies };
        rules.asks_for_outcome(&x)
    };
    assert!(asks(&rules(false), "POST", PODS));
    assert!(!asks(&rules(false), "GET", PODS), "a read makes nothing");
    assert!(!asks(&rules(false), "POST", "/api/v1/namespaces/a/configmaps"), "another resource");
    assert!(!asks(&rules(true), "POST", PODS), "not yet");
    assert!(!asks(&armed(json!({"name": "f", "do": {"mark": {}}})), "POST", PODS), "nobody looks at it");
}

#[test]
fn bookmarks_vanish_but_for_the_one_that_ends_the_initial_events() {
    let mut rules = armed(json!({"name": "f", "match": {"resource": "pods"}, "do": {"withholdBookmarks": {}}}));
    let s = stream(1);
    let mut fate = |object: serde_json::Value, kind| {
        let f = Frame { kind, object: &object, uid: None, namespace: None, name: None, revision: Some(Revision(9)) };
        rules.on_frame(&s, &f).0
    };
    let end = json!({"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}});
    assert_eq!(fate(json!({"metadata": {}}), FrameType::Bookmark), FrameFate::Drop { fault: "f".into() });
    assert_eq!(fate(end, FrameType::Bookmark), FrameFate::Deliver);
    assert_eq!(fate(json!({"metadata": {}}), FrameType::Bookmark), FrameFate::Drop { fault: "f".into() });
    assert_eq!(fate(json!({"metadata": {}}), FrameType::Modified), FrameFate::Deliver);
}

#[test]
fn one_event_comes_twice() {
    let mut rules = armed(json!({
        "name": "f", "match": {"resource": "pods"}, "do": {"duplicateEvents": {"types": ["DELETED"]}}
    }));
    let s = stream(1);
    assert_eq!(event(&mut rules, &s, FrameType::Added, "x"), FrameFate::Deliver);
    assert_eq!(event(&mut rules, &s, FrameType::Deleted, "x"), FrameFate::Duplicate { fault: "f".into() });
    assert_eq!(event(&mut rules, &s, FrameType::Deleted, "x"), FrameFate::Deliver);
}
