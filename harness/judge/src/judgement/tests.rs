//! The verdict, and the laws of judging.

use crate::testing::{OPERATOR, Run, USER, object, owned_by, ready};
use expect_test::{Expect, expect};
use serde_json::json;
use spiritlevel_model::{
    fault::{At, Legality},
    finding::{Finding, FindingClass},
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
    verdict(
        &orphan(),
        expect![[r#"
        fail
        fault lost never fired: nothing matched"#]],
    );
    let judgement = orphan().judge();
    assert_eq!((judgement.verdict.writes.effective, judgement.verdict.writes.no_op), (2, 1));
    expect![[r#"
        [
            FaultSummary {
                name: "lost",
                action: "disconnect",
                legality: Always,
                armed: true,
                matched: 0,
                fired: 0,
                effect: None,
                first_request: None,
                first_at_ms: None,
            },
        ]
    "#]]
    .assert_debug_eq(&judgement.verdict.faults);
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
    verdict(
        &good(|run| {
            run.effect("lost", "the connection broke");
        }),
        expect![[r#"
        pass
    "#]],
    );
    verdict(
        &good(|_| {}),
        expect![[r#"
        inconclusive
        fault lost fired without effect"#]],
    );
    verdict(
        &good(|run| {
            run.effect("lost", "x");
            run.event(Event::WitnessLost { resource: "secrets".parse().unwrap(), why: "410".into() });
            run.step("steps[1]", "wait", "await", StepState::TimedOut { message: "fault x did not fire".into() });
        }),
        expect![[r#"
            inconclusive
            the witness lost its watch of secrets at +1.00 s: 410
            steps[1] (await) waited in vain: fault x did not fire"#]],
    );
    verdict(
        &good(|run| {
            run.step("steps[1]", "go", "apply", StepState::Broken { message: "422 Invalid".into() });
        }),
        expect![[r#"
            error
            steps[1] (apply) could not be done at +1.00 s: 422 Invalid"#]],
    );
    verdict(
        &Run::new(),
        expect![[r#"
        error
        the run was broken off: the steps was the last that was recorded"#]],
    );
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

/// As [`orphan`], with something between any two of its writes.
fn orphan_amid(noise: impl Fn(&mut Run, u32)) -> Vec<String> {
    let mut run = Run::with(serde_json::from_str(LOST).unwrap(), json!({}));
    noise(&mut run, 0);
    let uid = run.armed("lost").at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    noise(&mut run, 1);
    run.patch(OPERATOR, &uid, ready());
    noise(&mut run, 2);
    run.create(OPERATOR, object("ConfigMap", "sample-1-settings", json!({})));
    noise(&mut run, 3);
    run.at(2.0).phase(Phase::Heal).phase(Phase::Settle);
    noise(&mut run, 4);
    run.at(6.0).settled(Phase::Settle, 4.0, true).finish(&[&uid], &[]);
    // Request numbers and revisions shift with the noise.
    let same =
        |f: &Finding| format!("{:?} {} {:?} {} {:?} {}", f.class, f.invariant, f.object, f.cause, f.fault, f.at_ms);
    run.judge().findings.iter().map(same).collect()
}

#[test]
fn noise_of_others_changes_nothing() {
    let calm = orphan_amid(|_, _| {});
    assert_eq!(calm.len(), 1);
    let notes = |run: &mut Run, _| {
        run.event(Event::Note { text: "somebody sneezed".into() });
    };
    let reads = |run: &mut Run, _| {
        run.request("some-controller", "GET", "/api/v1/namespaces/ns/pods");
    };
    let refusals = |run: &mut Run, _| {
        run.refused("some-controller", "POST", "/api/v1/namespaces/ns/pods", 403, "Forbidden");
    };
    let writes = |run: &mut Run, n: u32| {
        let noise = object("Secret", &format!("noise-{n}"), json!({}));
        let uid = run.create("some-controller", noise);
        run.patch("some-controller", &uid, json!({"data": {"n": n}}));
        run.delete("some-controller", &uid);
    };
    assert_eq!(orphan_amid(notes), calm);
    assert_eq!(orphan_amid(reads), calm);
    assert_eq!(orphan_amid(refusals), calm);
    // Uids are numbered in the order of making: only the last noise leaves them as they are.
    assert_eq!(
        orphan_amid(|run, n| if n > 2 {
            writes(run, n);
        }),
        calm
    );
}

#[test]
fn what_a_restore_takes_away_is_neither_orphaned_nor_lost() {
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.patch(OPERATOR, &uid, ready());
    // Without an owner: an orphan, if it were still there in the end.
    run.at(2.0).create(OPERATOR, object("ConfigMap", "sample-1-settings", json!({})));
    let later = run.create(USER, object("Sample", "sample-2", json!({})));
    assert!(later != uid);
    // Revisions come back to a time before all that.
    run.at(3.0).restore(50, &[&uid], Legality::Always);
    let child = run.at(4.0).create(OPERATOR, object("ConfigMap", "sample-1-child", owned_by("sample-1", &uid)));
    run.at(5.0).finish(&[&uid], &[&child]);
    assert_eq!(run.judge().findings, []);
}

#[test]
fn what_follows_a_restore_that_breaks_the_contract_is_robustness() {
    let class = |legality: Legality, gate: &str| {
        let mut run = Run::with(json!([]), serde_json::from_str(gate).unwrap());
        let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
        run.at(3.0).restore(50, &[&uid], legality).at(4.0).settle(Phase::Settle, 10.0, false);
        let findings = run.judge().findings;
        assert!(findings.iter().all(|f| f.invariant == "converges" && f.step.as_deref() == Some("go back")));
        findings.iter().map(|f| f.class).collect::<Vec<_>>()
    };
    let gated = r#"{"scenario": {"gate": ["never", "always"]}}"#;
    assert_eq!(class(Legality::Always, "{}"), [FindingClass::Violation]);
    assert_eq!(class(Legality::Never, "{}"), [FindingClass::Robustness]);
    assert_eq!(class(Legality::Never, gated), [FindingClass::Violation]);
}
