mod matching;
mod past;

use super::*;
use crate::{Actor, RequestId, RequestInfo, StreamId, Uid};
use serde_json::json;

fn fault(yaml: serde_json::Value) -> Fault {
    serde_json::from_value(yaml).unwrap()
}

fn ask(rules: &mut RuleSet, id: u64, actor: &str, method: &str, url: &str) -> Option<String> {
    ask_with(rules, id, actor, method, url, &Bodies::default())
}

fn ask_with(rules: &mut RuleSet, id: u64, actor: &str, method: &str, url: &str, bodies: &Bodies) -> Option<String> {
    let (actor, info) = (Actor(actor.into()), RequestInfo::classify(method, url));
    let x = Exchange { id: RequestId(id), actor: &actor, user_agent: None, info: &info, bodies };
    rules.on_request(&x).0.map(|f| f.fault)
}

const PODS: &str = "/api/v1/namespaces/a/pods";

#[test]
fn nth_counts_per_actor_and_fires_once() {
    let mut rules = RuleSet::new(&[fault(json!({
        "name": "second", "match": {"verb": "create", "resource": "pods", "nth": 2}, "do": {"crash": {}}
    }))])
    .unwrap();
    assert_eq!(ask(&mut rules, 1, "operator/0", "POST", PODS), None, "not armed yet");
    rules.arm("second");
    let seen: Vec<bool> = [
        ("operator/0", "POST", PODS),
        ("operator/1", "POST", PODS),
        ("user", "POST", PODS),
        ("operator/0", "GET", PODS),
        ("operator/0", "POST", "/api/v1/namespaces/a/pods/p/eviction"),
        ("operator/0", "POST", PODS),
        ("operator/0", "POST", PODS),
    ]
    .into_iter()
    .enumerate()
    .map(|(i, (actor, method, url))| ask(&mut rules, i as u64, actor, method, url).is_some())
    .collect();
    assert_eq!(seen, [false, false, false, false, false, true, false]);
}

#[test]
fn the_first_rule_wins_and_later_ones_count_on() {
    let named = |name: &str, nth: u64| {
        fault(json!({"name": name, "match": {"verb": "create", "resource": "pods", "nth": nth}, "do": {"mark": {}}}))
    };
    let mut rules = RuleSet::new(&[named("a", 1), named("b", 2)]).unwrap();
    rules.arm("a");
    rules.arm("b");
    assert_eq!(ask(&mut rules, 1, "operator/0", "POST", PODS).as_deref(), Some("a"));
    assert_eq!(ask(&mut rules, 2, "operator/0", "POST", PODS).as_deref(), Some("b"));
}

#[test]
fn a_conflict_needs_a_request_that_can_conflict() {
    let mut rules = RuleSet::new(&[fault(json!({"name": "c", "do": {"conflict": {}}}))]).unwrap();
    rules.arm("c");
    let url = "/api/v1/namespaces/a/configmaps/x";
    let blind = Bodies::default();
    assert_eq!(ask_with(&mut rules, 1, "operator/0", "PATCH", url, &blind), None);
    assert_eq!(ask_with(&mut rules, 2, "operator/0", "DELETE", url, &blind), None);
    let forced = Bodies { apply: true, ..Bodies::default() };
    assert_eq!(ask_with(&mut rules, 3, "operator/0", "PATCH", &format!("{url}?force=true"), &forced), None);
    let this_one = Bodies { uid: Some(Uid("u-1".into())), ..Bodies::default() };
    assert_eq!(ask_with(&mut rules, 4, "operator/0", "DELETE", url, &this_one), None);
    let careful = Bodies { resource_version: Some("5".into()), ..Bodies::default() };
    for (id, method, url, bodies) in [
        (5, "PUT", url, &careful),
        (6, "DELETE", url, &careful),
        (7, "PATCH", url, &Bodies { apply: true, ..Bodies::default() }),
        (8, "PATCH", &format!("{url}?force=true"), &Bodies { apply: true, ..careful.clone() }),
    ] {
        let mut rules = RuleSet::new(&[fault(json!({"name": "c", "do": {"conflict": {}}}))]).unwrap();
        rules.arm("c");
        assert_eq!(ask_with(&mut rules, id, "operator/0", method, url, bodies).as_deref(), Some("c"), "{id}");
    }
}

fn stream(id: u64) -> Stream {
    Stream {
        id: StreamId(id),
        request: RequestId(id),
        actor: Actor::operator(0),
        user_agent: None,
        info: RequestInfo::classify("GET", &format!("{PODS}?watch=true&resourceVersion=5")),
    }
}

fn event(rules: &mut RuleSet, s: &Stream, kind: FrameType, name: &str) -> FrameFate {
    let object = json!({"metadata": {"name": name, "namespace": "a", "labels": {"role": name}}});
    let f = Frame { kind, object: &object, uid: None, namespace: Some("a"), name: Some(name), revision: None };
    rules.on_frame(s, &f).0
}

#[test]
fn the_first_match_withholds_the_whole_stream_until_heal() {
    let mut rules = RuleSet::new(&[fault(json!({
        "name": "w", "match": {"resource": "pods"}, "do": {"withholdEvents": {"types": ["DELETED"]}}, "for": "3s"
    }))])
    .unwrap();
    rules.arm("w");
    let s = stream(1);
    let withheld = FrameFate::Withhold { fault: "w".into() };
    assert_eq!(event(&mut rules, &s, FrameType::Added, "x"), FrameFate::Deliver);
    assert_eq!(event(&mut rules, &s, FrameType::Deleted, "x"), withheld);
    assert_eq!(event(&mut rules, &s, FrameType::Added, "y"), withheld);
    assert_eq!(event(&mut rules, &s, FrameType::Bookmark, ""), withheld);
    assert_eq!(rules.heal("w"), [(s.id, CloseWatch::Expire)]);
    rules.expire("w", &s);
    let watch = format!("{PODS}?watch=true&resourceVersion=5");
    assert_eq!(ask(&mut rules, 9, "operator/0", "GET", &watch).as_deref(), Some("w"), "410 for the old place");
    assert_eq!(ask(&mut rules, 10, "operator/0", "GET", &watch).as_deref(), Some("w"), "however often it asks");
    assert_eq!(ask(&mut rules, 11, "operator/0", "GET", PODS), None);
    assert_eq!(ask(&mut rules, 12, "operator/0", "GET", &watch), None, "a list gave the client a new place");
}

#[test]
fn one_event_is_dropped_and_the_next_passes() {
    let mut rules = RuleSet::new(&[fault(json!({
        "name": "d", "match": {"resource": "pods", "name": "x*"},
        "do": {"dropEvents": {"types": ["MODIFIED"], "where": "object.metadata.labels.role == 'x1'"}}
    }))])
    .unwrap();
    rules.arm("d");
    let s = stream(1);
    assert_eq!(event(&mut rules, &s, FrameType::Modified, "y1"), FrameFate::Deliver);
    assert_eq!(event(&mut rules, &s, FrameType::Modified, "x2"), FrameFate::Deliver);
    assert_eq!(event(&mut rules, &s, FrameType::Modified, "x1"), FrameFate::Drop { fault: "d".into() });
    assert_eq!(event(&mut rules, &s, FrameType::Modified, "x1"), FrameFate::Deliver);
}

#[test]
fn legality_follows_from_status_reason_and_verb() {
    for (yaml, expected) in [
        (json!({"name": "f", "do": {"reject": {"status": 500}}}), Legality::Always),
        (json!({"name": "f", "match": {"verb": "update"}, "do": {"reject": {"status": 409}}}), Legality::Always),
        (
            json!({"name": "f", "match": {"verb": "create"}, "do": {"reject": {"status": 409, "reason": "AlreadyExists"}}}),
            Legality::Never,
        ),
        (json!({"name": "f", "match": {"verb": "get"}, "do": {"reject": {"status": 404}}}), Legality::Never),
        (json!({"name": "f", "match": {"verb": "list"}, "do": {"reject": {"status": 410}}}), Legality::Never),
        (json!({"name": "f", "match": {"verb": "watch"}, "do": {"reject": {"status": 410}}}), Legality::Always),
        (json!({"name": "f", "do": {"dropEvents": {}}}), Legality::Never),
        (json!({"name": "f", "do": {"withholdEvents": {}}}), Legality::Always),
    ] {
        assert_eq!(fault(yaml.clone()).legality(), expected, "{yaml}");
    }
}
