//! Clients that are sent back to an older state.

use super::*;
use crate::Revision;

fn request(rules: &mut RuleSet, url: &str) -> (Option<Firing>, Vec<RuleEvent>) {
    let (actor, info) = (Actor::operator(0), RequestInfo::classify("GET", url));
    rules.on_request(&Exchange {
        id: RequestId(1),
        actor: &actor,
        user_agent: None,
        info: &info,
        bodies: &Bodies::default(),
    })
}

fn event_at(rules: &mut RuleSet, s: &Stream, revision: u64, name: &str) -> FrameFate {
    let object = json!({"metadata": {"name": name}});
    let (kind, revision) = (FrameType::Modified, Some(Revision(revision)));
    rules.on_frame(s, &Frame { kind, object: &object, uid: None, namespace: None, name: Some(name), revision }).0
}

#[test]
fn the_last_events_come_again_on_the_next_watch() {
    for (versions, place) in [(1, "8"), (2, "7"), (5, "5")] {
        let mut rules = RuleSet::new(&[fault(json!({
            "name": "f", "match": {"resource": "pods", "name": "last"}, "do": {"replayFromOlder": {"versions": versions}}
        }))])
        .unwrap();
        rules.arm("f");
        let s = stream(1);
        for revision in [6, 7, 8] {
            assert_eq!(event_at(&mut rules, &s, revision, "x"), FrameFate::Deliver);
        }
        let closed = FrameFate::CloseAfter { fault: "f".into(), how: CloseWatch::Clean };
        assert_eq!(event_at(&mut rules, &s, 9, "last"), closed);
        let met = request(&mut rules, &format!("{PODS}?watch=true&resourceVersion=9")).0.unwrap();
        assert_eq!(met.rewrite, [("resourceVersion".to_owned(), Some(place.to_owned()))], "{versions}");
        let again = request(&mut rules, &format!("{PODS}?watch=true&resourceVersion=9")).0;
        assert_eq!(again, None, "once");
    }
}

#[test]
fn a_list_makes_up_for_an_older_place() {
    let mut rules = RuleSet::new(&[fault(json!({
        "name": "f", "match": {"resource": "pods"}, "do": {"replayFromOlder": {"versions": 1}}
    }))])
    .unwrap();
    rules.arm("f");
    event_at(&mut rules, &stream(1), 9, "x");
    assert_eq!(request(&mut rules, PODS).0, None);
    assert_eq!(request(&mut rules, &format!("{PODS}?watch=true&resourceVersion=9")).0, None);
}

#[test]
fn a_stale_view_is_as_legal_as_what_the_client_asks_for() {
    let set = |k: &str, v: &str| (k.to_owned(), Some(v.to_owned()));
    let back = || vec![set("resourceVersion", "50"), set("resourceVersionMatch", "Exact")];
    for (query, rewrite, legality) in [
        ("resourceVersion=0&limit=500", back(), Legality::Some),
        ("", back(), Legality::Never),
        ("resourceVersion=70&resourceVersionMatch=NotOlderThan", back(), Legality::Never),
        ("continue=abc", Vec::new(), Legality::Some),
        ("watch=true&resourceVersion=50", Vec::new(), Legality::Some),
        ("watch=true&resourceVersion=90", vec![set("resourceVersion", "50")], Legality::Never),
        // Told that there is no such thing, it lists.
        ("watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", Vec::new(), Legality::Always),
    ] {
        let mut rules = stale_rules();
        rules.set_moment(&Moment::Step("before".into()), Revision(50));
        let (firing, events) = request(&mut rules, &format!("{PODS}?{query}"));
        let fired = events.iter().find_map(|e| match e {
            RuleEvent::Fired { legality, .. } => Some(*legality),
            RuleEvent::Matched { .. } => None,
        });
        assert_eq!((firing.unwrap().rewrite, fired), (rewrite, Some(Some(legality))), "{query}");
    }
}

fn stale_rules() -> RuleSet {
    let mut rules = RuleSet::new(&[fault(json!({
        "name": "f", "do": {"staleView": {"at": {"step": "before"}, "kinds": ["pods"]}}
    }))])
    .unwrap();
    rules.arm("f");
    rules
}

#[test]
fn a_stale_view_needs_its_moment_and_spares_other_kinds_and_what_cannot_be_old() {
    let mut rules = stale_rules();
    let list = format!("{PODS}?resourceVersion=0");
    assert_eq!(request(&mut rules, &list).0, None, "the moment has not come");
    assert_eq!(event_at(&mut rules, &stream(1), 9, "x"), FrameFate::Deliver);
    rules.set_moment(&Moment::Fired("before".into()), Revision(5));
    assert_eq!(request(&mut rules, &list).0, None, "a fault is no step");
    rules.set_moment(&Moment::Step("before".into()), Revision(50));
    assert!(request(&mut rules, &list).0.is_some());
    let late = FrameFate::Delay { fault: "f".into(), by: None, until: None };
    assert_eq!(event_at(&mut rules, &stream(1), 9, "x"), late);
    for url in [
        "/api/v1/namespaces/a/configmaps?resourceVersion=0".to_owned(),
        format!("{PODS}/p"),
        // It would begin with the state of now, and there is no such thing as beginning with an older one.
        format!("{PODS}?watch=true&resourceVersion=0"),
    ] {
        assert_eq!(request(&mut rules, &url).0, None, "{url}");
    }
    assert!(rules.heal("f").is_empty());
    assert_eq!(request(&mut rules, &list).0, None, "healed");
}
