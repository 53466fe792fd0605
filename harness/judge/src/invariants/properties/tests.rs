//! Violating and satisfying histories.

use crate::testing::{OPERATOR, Run, USER, object, owned_by, ready};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use spiritlevel_model::history::Phase;

fn check(invariant: &str, property: Value, expected: Expect) {
    let mut more = json!({"invariants": {}});
    more["invariants"][invariant] = json!([property]);
    let mut run = Run::with(json!([]), more);
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({"spec": {"n": 1}})));
    let child = run.at(1.5).create(OPERATOR, object("ConfigMap", "sample-1-a", owned_by("sample-1", &uid)));
    run.create(OPERATOR, object("ConfigMap", "sample-1-b", owned_by("sample-1", &uid)));
    run.at(1.8).patch(OPERATOR, &child, json!({"data": {"n": "1"}}));
    run.delete(OPERATOR, &child);
    run.at(2.0).patch(OPERATOR, &uid, ready());
    run.settle(Phase::Settle, 3.0, true);
    expected.assert_eq(&run.text(invariant));
}

#[test]
fn always_holds_for_every_version_of_the_kind() {
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let property = |cel: &str| json!({"name": "owned", "cel": cel, "match": kind});
    check("always", property("has(object.metadata.ownerReferences)"), expect![[""]]);
    check("always", property("has(object.data)"), expect![[""]]);
    check("always", property("object.data.n == '1'"), expect![[""]]);
}

#[test]
fn never_sees_the_old_version_and_the_whole_world() {
    let property = |cel: &str| json!({"name": "one", "cel": cel});
    check("never", property("objects('v1', 'ConfigMap').size() > 1"), expect![[""]]);
    check("never", property("objects('v1', 'ConfigMap').size() > 2"), expect![[""]]);
    check("never", property("old != null && has(object.data) && !has(old.data)"), expect![[""]]);
    check("never", property("objects('v1', 'Unknown').exists(o, true)"), expect![[""]]);
    check("never", property("objects('v1'"), expect![[""]]);
}

#[test]
fn eventually_holds_at_the_end() {
    check("eventually", json!({"name": "one", "cel": "objects('v1', 'ConfigMap').size() == 1"}), expect![[""]]);
    check("eventually", json!({"name": "none", "cel": "objects('v1', 'ConfigMap').size() == 0"}), expect![[""]]);
    let kind = json!({"apiVersion": "example.com/v1", "kind": "Sample"});
    check("eventually", json!({"name": "two", "cel": "object.spec.n == 2", "match": kind}), expect![[""]]);
}
