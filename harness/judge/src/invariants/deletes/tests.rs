//! Violating and satisfying histories.

use crate::testing::{OPERATOR, Run, USER, object, ready};
use expect_test::{Expect, expect};
use serde_json::json;
use spiritlevel_model::{
    Uid,
    history::{Phase, StepState},
};

fn check(run: &Run, expected: Expect) {
    expected.assert_eq(&run.text("deletes"));
}

fn with_finalizer() -> (Run, Uid) {
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.patch(OPERATOR, &uid, json!({"metadata": {"finalizers": ["example.com/cleanup"]}}));
    run.patch(OPERATOR, &uid, ready());
    (run, uid)
}

#[test]
fn a_deletion_that_ends_satisfies() {
    let (mut run, uid) = with_finalizer();
    run.settle(Phase::Settle, 2.0, true).phase(Phase::Teardown).delete(USER, &uid);
    run.patch(OPERATOR, &uid, json!({"metadata": {"finalizers": []}}));
    run.settle(Phase::SettleTeardown, 2.0, true);
    check(&run, expect![[""]]);
    assert_eq!(run.judge().findings, []);
}

#[test]
fn the_same_404_again_and_again_is_shown() {
    let (mut run, uid) = with_finalizer();
    run.settle(Phase::Settle, 2.0, true).at(5.0).phase(Phase::Teardown).delete(USER, &uid);
    for at in [5.1, 5.3, 5.7] {
        run.at(at).refused(OPERATOR, "DELETE", "/api/v1/namespaces/ns/secrets/sample-1-token", 404, "NotFound");
    }
    run.settle(Phase::SettleTeardown, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation deletes: Sample ns/sample-1 (uid 0000…) is still terminating since +5.00 s, held by example.com/cleanup
          because delete secrets ns/sample-1-token fails: 404 NotFound 3 times
          finalizer: example.com/cleanup: put there by operator/0 at +1.00 s, request 3, who should take it away
          failing: delete secrets ns/sample-1-token failed 3 times (404 NotFound), last at +5.70 s, request 8
    "#]],
    );
    assert_eq!(run.judge().verdict.verdict.to_string(), "fail");
}

#[test]
fn a_delete_step_that_waits_in_vain_is_a_violation_even_when_it_ends_later() {
    let (mut run, uid) = with_finalizer();
    run.at(2.0).step("steps[1]", "remove", "delete", StepState::Started);
    if let Some(spiritlevel_model::history::Record { event: spiritlevel_model::history::Event::Step(s), .. }) =
        run.history.last_mut()
    {
        s.object = spiritlevel_model::ObjectRef::of(&object("Sample", "sample-1", json!({})));
    }
    run.delete(USER, &uid);
    run.at(12.0).step("steps[1]", "remove", "delete", StepState::TimedOut { message: "it is still there".into() });
    run.at(13.0).patch(OPERATOR, &uid, json!({"metadata": {"finalizers": []}}));
    run.finish(&[], &[]);
    check(
        &run,
        expect![[r#"
        violation deletes: Sample ns/sample-1 (uid 0000…) is still terminating since +2.00 s, held by example.com/cleanup
          because nobody takes away example.com/cleanup
          finalizer: example.com/cleanup: put there by operator/0 at +1.00 s, request 3, who should take it away
          waited: remove waited for the deletion from +2.00 s
    "#]],
    );
}
