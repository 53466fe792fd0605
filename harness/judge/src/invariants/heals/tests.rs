//! Violating and satisfying histories.

use crate::testing::{OPERATOR, Run, USER, object, owned_by, ready};
use expect_test::{Expect, expect};
use serde_json::json;
use spiritlevel_model::{
    Uid,
    history::{Phase, StepState},
};

fn check(run: &Run, expected: Expect) {
    expected.assert_eq(&run.text("heals"));
}

fn with_child() -> (Run, Uid, Uid) {
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({"spec": {"n": 1}})));
    let mut child = object("ConfigMap", "sample-1-settings", owned_by("sample-1", &uid));
    child["data"] = json!({"mode": "a"});
    let child = run.at(1.5).create(OPERATOR, child);
    run.at(2.0).patch(OPERATOR, &uid, ready());
    (run, uid, child)
}

#[test]
fn a_deleted_child_must_come_back() {
    let (mut run, ..) = with_child();
    run.settle(Phase::Settle, 2.0, true);
    check(&run, expect![[""]]);

    let (mut run, _, child) = with_child();
    run.at(3.0).step("steps[1]", "remove", "drift", StepState::Started);
    run.delete("harness/drift", &child).settle(Phase::Settle, 5.0, true);
    check(
        &run,
        expect![[r#"
        violation heals: ConfigMap ns/sample-1-settings (uid 0000…) did not come back after harness/drift deleted it at +3.00 s
          because the operator does not watch configmaps
          drift: drift in steps[1]
          -> step remove
    "#]],
    );

    let (mut run, uid, child) = with_child();
    run.at(3.0).delete(USER, &child);
    run.at(3.5).create(OPERATOR, object("ConfigMap", "sample-1-settings", owned_by("sample-1", &uid)));
    run.settle(Phase::Settle, 5.0, true);
    check(&run, expect![[""]]);
}

#[test]
fn a_child_that_may_not_be_wanted_any_more_need_not_come_back() {
    let (mut run, uid, child) = with_child();
    run.at(3.0).delete(USER, &child).delete(USER, &uid).settle(Phase::Settle, 5.0, true);
    check(&run, expect![[""]]);

    let (mut run, uid, child) = with_child();
    run.at(3.0).delete(USER, &child);
    run.patch(USER, &uid, json!({"spec": {"n": 0}}));
    run.settle(Phase::Settle, 5.0, true);
    check(&run, expect![[""]]);
}

#[test]
fn generated_names_come_back_by_number() {
    let (mut run, uid, _) = with_child();
    let generated = |name: &str| {
        let mut child = object("Secret", name, owned_by("sample-1", &uid));
        child["metadata"]["generateName"] = json!("token-");
        child
    };
    let first = run.create(OPERATOR, generated("token-a"));
    run.create(OPERATOR, generated("token-b"));
    run.at(3.0).delete(USER, &first);
    let missing = run.history.len();
    run.create(OPERATOR, generated("token-c"));
    run.settle(Phase::Settle, 5.0, true);
    check(&run, expect![[""]]);
    // Without the successor one is missing.
    run.history.drain(missing..missing + 4);
    check(
        &run,
        expect![[r#"
        violation heals: Secret ns/token-a (uid 0000…) did not come back after user deleted it at +3.00 s
          because the operator does not watch secrets
    "#]],
    );
}

#[test]
fn a_changed_field_of_the_operators_must_be_set_back_and_others_need_not() {
    let (mut run, _, child) = with_child();
    run.at(3.0).patch(USER, &child, json!({"data": {"mode": "drifted", "mine": "x"}}));
    run.settle(Phase::Settle, 5.0, true);
    check(
        &run,
        expect![[r#"
        violation heals: ConfigMap ns/sample-1-settings (uid 0000…) still has data.mode "drifted" that user set at +3.00 s
          because the operator does not watch configmaps
          field: data.mode: was "a", is "drifted"
    "#]],
    );

    let (mut run, _, child) = with_child();
    run.at(3.0).patch(USER, &child, json!({"data": {"mode": "drifted", "mine": "x"}}));
    run.at(3.5).patch(OPERATOR, &child, json!({"data": {"mode": "a"}}));
    run.settle(Phase::Settle, 5.0, true);
    check(&run, expect![[""]]);

    let (mut run, _, child) = with_child();
    run.at(3.0).patch("harness/drift", &child, json!({"metadata": {"ownerReferences": null}}));
    run.settle(Phase::Settle, 5.0, true);
    check(
        &run,
        expect![[r#"
        violation heals: ConfigMap ns/sample-1-settings (uid 0000…) still has metadata.ownerReferences nothing that harness/drift set at +3.00 s
          because the operator does not watch configmaps
          field: metadata.ownerReferences: was [{"apiVersion":"example.com/v1","kind":"Sample","name":"samp…, is nothing
    "#]],
    );
}
