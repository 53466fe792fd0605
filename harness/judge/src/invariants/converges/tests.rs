//! Violating and satisfying histories.

use crate::testing::{OPERATOR, Run, USER, object, owned_by, ready};
use expect_test::{Expect, expect};
use serde_json::json;
use spiritlevel_model::history::{Phase, ProcessEvent};

fn check(run: &Run, expected: Expect) {
    expected.assert_eq(&run.text("converges"));
}

const FIRST: &str = "/api/v1/namespaces/ns/configmaps/sample-1-first";
const LOST: &str =
    r#"[{"name": "lost-answer", "match": {"verb": "create"}, "at": "afterCommit", "do": {"disconnect": {}}}]"#;

#[test]
fn a_subject_that_is_ready_for_its_generation_satisfies() {
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({"spec": {"n": 1}})));
    run.at(2.0).patch(OPERATOR, &uid, ready());
    run.finish(&[&uid], &[]);
    check(&run, expect![[""]]);
}

#[test]
fn the_same_failing_request_again_and_again_is_a_violation() {
    let mut run = Run::with(serde_json::from_str(LOST).unwrap(), json!({}));
    run.armed("lost-answer");
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.at(1.1).create_lost(OPERATOR, object("ConfigMap", "sample-1-first", owned_by("sample-1", &uid)), "lost-answer");
    for at in [1.3, 1.7, 2.5, 4.1, 7.3] {
        run.at(at).refused(OPERATOR, "POST", FIRST, 409, "AlreadyExists");
    }
    run.at(2.0).settle(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation converges: Sample ns/sample-1 (uid 0000…) did not get ready by the end of the settling: it has no condition Ready
          because create configmaps ns/sample-1-first fails every time: 409 AlreadyExists 5 times
          operator: it runs; its last request, 8, came at +7.30 s (create configmaps ns/sample-1-first)
          event: its version 101 of +1.00 s never reached the operator, although a watch of samples.example.com is open
          failing: create configmaps ns/sample-1-first failed 5 times (409 AlreadyExists), last at +7.30 s, request 8
          fault: lost-answer fired once, at +1.10 s on request 3, after the write was committed (always legal)
          -> fault lost-answer
    "#]],
    );
}

#[test]
fn an_event_that_cannot_be_written_is_no_reason() {
    let mut run = Run::new();
    run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.at(2.0).refused(OPERATOR, "POST", "/api/v1/namespaces/ns/events/sample-1.1", 409, "AlreadyExists");
    run.settle(Phase::Settle, 10.0, false);
    let text = run.text("converges");
    assert!(text.contains("did not get ready") && !text.contains("AlreadyExists"), "{text}");
}

#[test]
fn an_operator_that_is_dead_or_deaf_is_told_apart() {
    let mut run = Run::new();
    run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.at(2.0).process(ProcessEvent::Exited { code: Some(1), signal: None, expected: false, last_lines: vec![] });
    run.settle(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation converges: Sample ns/sample-1 (uid 0000…) did not get ready by the end of the settling: it has no condition Ready
          because the operator does not run
          operator: it does not run; its last request, 1, came at -1.00 s (watch samples.example.com in ns)
          event: its version 101 of +1.00 s never reached the operator, although a watch of samples.example.com is open
    "#]],
    );

    let mut run = Run::with(
        json!([{"name": "end", "match": {"verb": "watch"}, "do": {"closeWatch": {"as": "clean"}}}]),
        json!({}),
    );
    let stream = run.watch("samples.example.com");
    run.close(spiritlevel_model::StreamId(1), None);
    let other = run.at(1.0).create(USER, object("Sample", "sample-1", json!({"spec": {"n": 1}})));
    run.deliver(stream, &other).at(1.5).patch(OPERATOR, &other, ready());
    run.at(2.0).fired("end", None, None).close(stream, Some("end"));
    run.at(3.0).patch(USER, &other, json!({"spec": {"n": 2}, "status": {"observedGeneration": 1}}));
    run.settle(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation converges: Sample ns/sample-1 (uid 0000…) did not get ready by the end of the settling: status.observedGeneration is 1, generation is 2
          because the operator never saw the last change of the subject
          operator: it runs; its last request, 4, came at +1.50 s (patch samples.example.com ns/sample-1)
          event: its version 103 of +3.00 s never reached the operator: no watch of samples.example.com is open since one was ended by end at +2.00 s
          fault: end fired once, at +2.00 s (always legal)
          -> fault end
    "#]],
    );
}

#[test]
fn growing_gaps_between_attempts_that_may_succeed_are_still_trying() {
    let mut run = Run::new();
    run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    for at in [1.0, 2.0, 4.0, 8.0] {
        run.at(at).refused(OPERATOR, "PUT", FIRST, 500, "InternalError");
    }
    run.at(2.0).settle(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        still-trying converges: Sample ns/sample-1 (uid 0000…) did not get ready by the end of the settling: it has no condition Ready
          because it still tries: update configmaps ns/sample-1-first failed 4 times (500 InternalError), last at +8.00 s, request 6
          operator: it runs; its last request, 6, came at +8.00 s (update configmaps ns/sample-1-first)
          event: its version 101 of +1.00 s never reached the operator, although a watch of samples.example.com is open
          failing: update configmaps ns/sample-1-first failed 4 times (500 InternalError), last at +8.00 s, request 6
    "#]],
    );
    assert_eq!(run.judge().verdict.verdict.to_string(), "inconclusive");
}

#[test]
fn a_workload_child_must_be_current() {
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.create(OPERATOR, object("StatefulSet", "sample-1", owned_by("sample-1", &uid)));
    run.at(2.0).patch(OPERATOR, &uid, ready());
    run.settle(Phase::Settle, 10.0, true);
    check(
        &run,
        expect![[r#"
        violation converges: Sample ns/sample-1 (uid 0000…) did not get ready by the end of the settling: StatefulSet sample-1: status.observedGeneration is 0, generation is 1
          because the subject says that it is ready, what it owns is not
          operator: it runs; its last request, 4, came at +2.00 s (patch samples.example.com ns/sample-1)
          event: its version 101 of +1.00 s never reached the operator, although a watch of samples.example.com is open
    "#]],
    );
}

#[test]
fn a_subject_that_is_being_deleted_is_not_judged() {
    let mut run = Run::new();
    let uid =
        run.at(1.0).create(USER, object("Sample", "sample-1", json!({"metadata": {"finalizers": ["example.com/f"]}})));
    run.delete(USER, &uid).settle(Phase::Settle, 10.0, false);
    check(&run, expect![[""]]);
}
