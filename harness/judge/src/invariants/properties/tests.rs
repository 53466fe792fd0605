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
    check(
        "always",
        property("has(object.data)"),
        expect![[r#"
        violation always: ConfigMap ns/sample-1-a: "owned" does not hold at +1.50 s, version 102
          because has(object.data) is false
          written: by operator/0 at +1.50 s, request 3
          versions: 2 in all
    "#]],
    );
    check(
        "always",
        property("object.data.n == '1'"),
        expect![[r#"
        violation always: "owned" cannot be told
          because "object.data.n == '1'" cannot be answered: No such key: data; guard optional fields with has()
    "#]],
    );
}

#[test]
fn never_sees_the_old_version_and_the_whole_world() {
    let property = |cel: &str| json!({"name": "one", "cel": cel});
    check(
        "never",
        property("objects('v1', 'ConfigMap').size() > 1"),
        expect![[r#"
        violation never: ConfigMap ns/sample-1-b: "one" must never hold at +1.50 s, version 103
          because objects('v1', 'ConfigMap').size() > 1 is true
          written: by operator/0 at +1.50 s, request 4
          versions: 2 in all
    "#]],
    );
    check("never", property("objects('v1', 'ConfigMap').size() > 2"), expect![[""]]);
    check(
        "never",
        property("old != null && has(object.data) && !has(old.data)"),
        expect![[r#"
        violation never: ConfigMap ns/sample-1-a: "one" must never hold at +1.80 s, version 104
          because old != null && has(object.data) && !has(old.data) is true
          written: by operator/0 at +1.80 s, request 5
          versions: 1 in all
    "#]],
    );
    check("never", property("objects('v1', 'Unknown').exists(o, true)"), expect![[""]]);
    check(
        "never",
        property("objects('v1'"),
        expect![[r#"
        violation never: "one" cannot be told
          because "objects('v1'" is not a CEL expression: ERROR: <input>:1:13: Syntax error: missing ')' at '<EOF>'
    "#]],
    );
}

#[test]
fn eventually_holds_at_the_end() {
    check("eventually", json!({"name": "one", "cel": "objects('v1', 'ConfigMap').size() == 1"}), expect![[""]]);
    check(
        "eventually",
        json!({"name": "none", "cel": "objects('v1', 'ConfigMap').size() == 0"}),
        expect![[r#"
        violation eventually: the world: "none" does not hold at the end of the settling
          because objects('v1', 'ConfigMap').size() == 0 is false
    "#]],
    );
    let kind = json!({"apiVersion": "example.com/v1", "kind": "Sample"});
    check(
        "eventually",
        json!({"name": "two", "cel": "object.spec.n == 2", "match": kind}),
        expect![[r#"
        violation eventually: Sample ns/sample-1: "two" does not hold at the end of the settling
          because object.spec.n == 2 is false
    "#]],
    );
}
