//! Violating and satisfying histories.

use crate::testing::{OPERATOR, Run, USER, object, ready};
use expect_test::{Expect, expect};
use serde_json::json;
use spiritlevel_model::{
    StreamId,
    history::{Phase, ProcessEvent},
};

fn check(run: &Run, expected: Expect) {
    expected.assert_eq(&run.text("processHealth"));
}

fn exits(run: &mut Run, code: Option<i32>, signal: Option<i32>, expected: bool) {
    let last_lines = vec!["starting".into(), "panic: nil map".into()];
    run.process(ProcessEvent::Exited { code, signal, expected, last_lines }).process(ProcessEvent::Started { pid: 2 });
}

#[test]
fn a_crash_is_told_with_its_last_lines_and_a_loop_once() {
    let mut run = Run::new();
    for at in [1.0, 2.0, 3.0] {
        exits(run.at(at), Some(2), None, false);
    }
    run.settle(Phase::Settle, 3.0, true);
    check(
        &run,
        expect![[r#"
        violation processHealth: operator/0 exited with code 2 at +1.00 s and 3 times in all
          because panic: nil map
          output: starting
          output: panic: nil map
    "#]],
    );
}

#[test]
fn exits_that_we_made_or_that_are_declared_are_no_crash() {
    let mut run = Run::with(json!([]), json!({"process": {"exitCodes": [7]}}));
    exits(run.at(1.0), None, Some(9), true);
    exits(run.at(2.0), Some(0), None, false);
    exits(run.at(3.0), Some(7), None, false);
    run.settle(Phase::Settle, 3.0, true).phase(Phase::End);
    exits(run.at(9.0), Some(2), None, false);
    check(&run, expect![[""]]);
}

#[test]
fn a_watch_that_is_never_opened_again_is_idleness() {
    let mut run = Run::new();
    run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.at(2.0).close(StreamId(1), Some("end-of-watch"));
    run.at(3.0).settle(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation processHealth: no watch of samples.example.com in namespace ns was open at the end of the settling, although the operator runs
          because the last one ended by end-of-watch at +2.00 s and none was opened again
    "#]],
    );

    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.patch(OPERATOR, &uid, ready());
    run.at(2.0).close(StreamId(1), None).at(3.0).settle(Phase::Settle, 3.0, true);
    check(
        &run,
        expect![[r#"
        warning processHealth: no watch of samples.example.com in namespace ns was open at the end of the settling, although the operator runs
          because the last one ended at +2.00 s and none was opened again
    "#]],
    );

    let mut run = Run::new();
    run.at(2.0).close(StreamId(1), None).watch("samples.example.com");
    run.at(3.0).settle(Phase::Settle, 3.0, true);
    check(&run, expect![[""]]);
}

#[test]
fn missing_permissions_are_reported_with_verb_and_kind() {
    let forbidden = |run: &mut Run| run.refused(OPERATOR, "GET", "/api/v1/namespaces/ns/secrets", 403, "Forbidden");
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.patch(OPERATOR, &uid, ready());
    forbidden(&mut run);
    forbidden(&mut run);
    run.settle(Phase::Settle, 3.0, true);
    check(
        &run,
        expect![[r#"
        warning processHealth: the operator may not list secrets in namespace ns: forbidden 2 times
          because the API server says Forbidden
          requests: requests 4, 5
    "#]],
    );

    let mut run = Run::new();
    run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.phase(Phase::Heal).phase(Phase::Settle);
    forbidden(&mut run);
    run.at(11.0).settled(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation processHealth: the operator may not list secrets in namespace ns: forbidden once
          because the API server says Forbidden
          requests: request 3
    "#]],
    );
}
