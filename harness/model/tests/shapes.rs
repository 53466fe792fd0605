//! Every shape of a fault with a single trigger can be said, and fires: what is meant (an object, a verb, an event, a change,
//! the n-th time), what happens then (kill, hold, freeze the view, lose), and on which side of the commit.

mod common;

use common::{folder, lint_files, read};
use serde_json::{Value, json};
use spiritlevel_model::{
    Actor, RequestId, RequestInfo, StreamId,
    fault::{At, Bodies, Exchange, Frame, FrameFate, FrameType, RuleSet, Stream},
    load::{load_scenario, load_suite},
};

const TRIGGERS: [(&str, &str); 5] = [
    ("object", "name: pg-1-0"),
    ("verb", "verb: update"),
    ("event", "after: {event: {resource: pods, name: pg-1-0, type: MODIFIED}}"),
    ("diff", "diff: 'object.spec.replicas < old.spec.replicas'"),
    ("nth", "nth: 2"),
];
const EFFECTS: [(&str, &str); 4] = [
    ("kill", "{crash: {}}"),
    ("hold", "{hold: {until: {elapsed: 1s}}}"),
    ("freeze", "{withholdEvents: {}}"),
    ("lose", "{disconnect: {as: reset}}"),
];
const POINTS: [(&str, At); 2] = [("beforeSend", At::BeforeSend), ("afterCommit", At::AfterCommit)];

/// The faults of a shape: a view is frozen from the moment on at which a mark fires.
fn faults(trigger: &str, effect: &str, action: &str, point: &str) -> String {
    if effect == "freeze" {
        return format!(
            "    - name: moment\n      match: {{resource: pods, {trigger}}}\n      at: {point}\n      do: {{mark: {{}}}}\n    \
             - name: f\n      match: {{resource: pods, after: {{fired: moment}}}}\n      do: {action}\n"
        );
    }
    format!("    - name: f\n      match: {{resource: pods, {trigger}}}\n      at: {point}\n      do: {action}\n")
}

/// A write of pods/pg-1-0 that lessens its replicas.
fn write(rules: &mut RuleSet, id: u64) -> Option<(String, At)> {
    let (actor, info) = (Actor::operator(0), RequestInfo::classify("PUT", "/api/v1/namespaces/a/pods/pg-1-0"));
    let of = |n: u32| Some(json!({"spec": {"replicas": n}}));
    let bodies = Bodies { stored: of(3), outcome: of(2), ..Bodies::default() };
    let x = Exchange { id: RequestId(id), actor: &actor, user_agent: None, info: &info, bodies: &bodies };
    rules.on_request(&x).0.map(|f| (f.fault, f.at))
}

fn event(rules: &mut RuleSet) -> FrameFate {
    let stream = Stream {
        id: StreamId(1),
        request: RequestId(9),
        actor: Actor::operator(0),
        user_agent: None,
        info: RequestInfo::classify("GET", "/api/v1/namespaces/a/pods?watch=true&resourceVersion=5"),
    };
    let (kind, object) = (FrameType::Modified, Value::Null);
    rules.on_frame(&stream, &Frame { kind, object: &object, uid: None, namespace: None, name: None, revision: None }).0
}

#[test]
fn every_shape_is_read_without_a_problem_and_fires() {
    let dir = folder("wellformed");
    let suite = load_suite("spiritlevel.yaml", &read(&dir.join("spiritlevel.yaml")));
    let mut shapes = 0;
    for (what, trigger) in TRIGGERS {
        for (effect, action) in EFFECTS {
            for (point, at) in POINTS {
                let label = format!("{effect} {point} by {what}");
                let text = format!(
                    "apiVersion: spiritlevel/v1alpha1\nkind: Scenario\nmetadata: {{name: s}}\nspec:\n  faults:\n{}  steps:\n    \
                     - sleep: {{duration: 1s}}\n",
                    faults(trigger, effect, action, point)
                );
                let scenario = load_scenario("s", &text, suite.value.as_ref());
                assert_eq!(lint_files(&dir, &suite, Some(&scenario), None), [], "{label}\n{text}");
                let spec = scenario.value.expect(&label).spec;
                let mut rules = RuleSet::new(&spec.faults).expect(&label);
                let first = spec.faults[0].name.clone();
                spec.faults.iter().for_each(|f| rules.arm(&f.name));
                if what == "event" {
                    assert_eq!(write(&mut rules, 1), None, "{label}: not before the event");
                    rules.open(&first);
                }
                if what == "nth" {
                    assert_eq!(write(&mut rules, 2), None, "{label}: not the first");
                }
                assert_eq!(write(&mut rules, 3), Some((first, at)), "{label}");
                if effect == "freeze" {
                    assert_eq!(event(&mut rules), FrameFate::Deliver, "{label}: not before the moment");
                    rules.open("f");
                    assert_eq!(event(&mut rules), FrameFate::Withhold { fault: "f".into() }, "{label}");
                }
                shapes += 1;
            }
        }
    }
    assert_eq!(shapes, 40);
}
