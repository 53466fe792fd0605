//! The verdict, and the laws of judging.

use crate::testing::{OPERATOR, Run, USER, object, ready, text};
use expect_test::{Expect, expect};
use serde_json::json;
use spiritlevel_model::{
    fault::At,
    history::{Event, Phase, StepState},
};

const LOST: &str = r#"[{"name": "lost", "match": {"verb": "create"}, "at": "afterCommit", "do": {"disconnect": {}}}]"#;

/// A run that leaves one object behind and does not use its fault.
fn orphan() -> Run {
    let mut run = Run::with(serde_json::from_str(LOST).unwrap(), json!({}));
    let uid = run.armed("lost").at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.patch(OPERATOR, &uid, ready());
    let child = run.create(OPERATOR, object("ConfigMap", "sample-1-settings", json!({})));
    run.patch(OPERATOR, &child, json!({}));
    run.finish(&[&uid], &[]);
    run
}

fn verdict(run: &Run, expected: Expect) {
    let verdict = run.judge().verdict;
    expected.assert_eq(&format!("{}\n{}", verdict.verdict, verdict.reasons.join("\n")));
}

#[test]
fn a_violation_stays_a_fail_even_when_a_fault_did_not_fire() {
    verdict(&orphan(), expect![[""]]);
    let judgement = orphan().judge();
    assert_eq!((judgement.verdict.writes.effective, judgement.verdict.writes.no_op), (2, 1));
    expect![[""]].assert_debug_eq(&judgement.verdict.faults);
}

/// A run that is all right but for what `disturb` adds.
fn good(disturb: impl FnOnce(&mut Run)) -> Run {
    let mut run = Run::with(serde_json::from_str(LOST).unwrap(), json!({}));
    let uid = run.armed("lost").at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    let id = run.patch(OPERATOR, &uid, ready());
    run.fired("lost", Some(id), Some(At::AfterCommit));
    disturb(&mut run);
    run.finish(&[&uid], &[]);
    run
}

#[test]
fn doubts_make_a_run_inconclusive_and_broken_steps_an_error() {
    verdict(&good(|run| drop(run.effect("lost", "the connection broke"))), expect![[""]]);
    verdict(&good(|_| {}), expect![[""]]);
    verdict(
        &good(|run| {
            run.effect("lost", "x");
            run.event(Event::WitnessLost { resource: "secrets".parse().unwrap(), why: "410".into() });
            run.step("steps[1]", "wait", "await", StepState::TimedOut { message: "fault x did not fire".into() });
        }),
        expect![[""]],
    );
    verdict(
        &good(|run| drop(run.step("steps[1]", "go", "apply", StepState::Broken { message: "422 Invalid".into() }))),
        expect![[""]],
    );
    verdict(&Run::new(), expect![[""]]);
}

#[test]
fn a_delay_has_an_effect_when_something_falls_inside() {
    let delay = json!([{"name": "late", "do": {"delay": {"by": "1s"}}}]);
    for (inside, expected) in [(true, "pass"), (false, "inconclusive")] {
        let mut run = Run::with(delay.clone(), json!({}));
        let uid = run.armed("late").at(1.0).create(USER, object("Sample", "sample-1", json!({})));
        run.fired("late", None, None);
        if inside {
            run.patch(OPERATOR, &uid, ready());
        }
        run.released("late");
        if !inside {
            run.patch(OPERATOR, &uid, ready());
        }
        run.finish(&[&uid], &[]);
        assert_eq!(run.judge().verdict.verdict.to_string(), expected);
    }
}

#[test]
fn judging_twice_gives_the_same_bytes() {
    let run = orphan();
    let bytes = |run: &Run| serde_json::to_string(&run.judge()).unwrap();
    assert_eq!(bytes(&run), bytes(&run));
}

#[test]
fn noise_of_others_changes_nothing() {
    let findings = |run: &Run| run.judge().findings.iter().map(text).collect::<Vec<_>>();
    let calm = orphan();
    for every in [1_usize, 2, 3] {
        let mut noisy = orphan();
        let mut history = Vec::new();
        for (index, record) in calm.history.iter().enumerate() {
            history.push(record.clone());
            if index % every == 0 {
                let mut note = record.clone();
                note.event = Event::Note { text: "somebody sneezed".into() };
                history.push(note);
            }
        }
        (0_u64..).zip(&mut history).for_each(|(seq, record)| record.seq = seq);
        noisy.history = history;
        assert_eq!(findings(&noisy), findings(&calm));
    }
    // Objects of strangers before the subject's.
    let mut run = Run::with(serde_json::from_str(LOST).unwrap(), json!({}));
    run.armed("lost");
    run.request("some-controller", "GET", "/api/v1/namespaces/ns/pods");
    let with_reads = run.judge().findings;
    assert_eq!(with_reads, []);
    assert!(calm.judge().findings.len() == 1 && run.history.iter().all(|r| r.event != Event::Phase(Phase::End)));
}
