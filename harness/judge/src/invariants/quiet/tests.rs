//! Violating and satisfying histories.

use crate::testing::{OPERATOR, Run, USER, object, owned_by, ready};
use expect_test::{Expect, expect};
use serde_json::json;
use spiritlevel_model::{Uid, history::Phase};

fn check(run: &Run, expected: Expect) {
    expected.assert_eq(&run.text("quiet"));
}

/// A Sample that is ready, and a child, at rest from +3 s.
fn at_rest() -> (Run, Uid, Uid) {
    let mut run = Run::new();
    let sample = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    let child = object("ConfigMap", "sample-1-settings", owned_by("sample-1", &sample));
    let child = run.at(1.5).create(OPERATOR, child);
    run.at(2.0).patch(OPERATOR, &sample, ready());
    run.at(3.0).phase(Phase::Heal).phase(Phase::Settle);
    (run, sample, child)
}

#[test]
fn silence_satisfies_and_so_do_writes_before_the_window() {
    let (mut run, _, child) = at_rest();
    run.at(3.5).patch(OPERATOR, &child, json!({"data": {"a": "1"}}));
    run.at(6.0).settled(Phase::Settle, 3.0, true);
    check(&run, expect![[""]]);
}

#[test]
fn a_field_that_flips_is_shown_with_both_values() {
    let (mut run, _, child) = at_rest();
    for n in 0..8 {
        let value = if n % 2 == 0 { "a" } else { "b" };
        run.at(4.0 + f64::from(n)).patch(OPERATOR, &child, json!({"data": {"mode": value}}));
    }
    run.at(13.0).settled(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation quiet: ConfigMap ns/sample-1-settings was written 8 times by the operator in 10.0 s of rest (0.8 a second), requests 5, 6, 7, 8, 9, … 12
          because data.mode changes with every write
          flips: data.mode: "a" → "b"
          window: +3.00 s to +13.00 s in the settling, it never came to rest
    "#]],
    );
}

#[test]
fn an_object_made_and_deleted_again_and_again_is_one_loop() {
    let (mut run, sample, _) = at_rest();
    for n in 0..3 {
        let child = object("Secret", "sample-1-token", owned_by("sample-1", &sample));
        let uid = run.at(4.0 + f64::from(n)).create(OPERATOR, child);
        run.delete(OPERATOR, &uid);
    }
    run.at(13.0).settled(Phase::Settle, 10.0, false);
    check(&run, expect![""]);
}

#[test]
fn heartbeats_other_actors_and_a_late_status_are_no_unrest() {
    let (mut run, sample, child) = at_rest();
    let lease = run.create(OPERATOR, object("Lease", "leader", json!({})));
    for n in 0..8 {
        run.at(4.0 + f64::from(n)).patch(OPERATOR, &lease, json!({"spec": {"renewTime": n}}));
        run.patch("some-controller", &child, json!({"data": {"n": n}}));
    }
    run.patch(OPERATOR, &sample, json!({"status": {"phase": "Up"}}));
    run.at(13.0).settled(Phase::Settle, 10.0, false);
    check(&run, expect![[""]]);
}

#[test]
fn writes_without_effect_count_as_a_rate() {
    let (mut run, _, child) = at_rest();
    for n in 0..20 {
        run.at(4.0 + f64::from(n) * 0.1).patch(OPERATOR, &child, json!({}));
    }
    run.at(6.0).settled(Phase::Settle, 3.0, true);
    check(
        &run,
        expect![[r#"
        violation quiet: ConfigMap ns/sample-1-settings: patch configmaps ns/sample-1-settings changes nothing, 20 times in 2.0 s of rest (600 a minute)
          because the operator writes without comparing first
          requests: requests 5, 6, 7, 8, 9, … 24
          window: +4.00 s to +6.00 s in the settling, at rest
    "#]],
    );

    let (mut run, _, child) = at_rest();
    for n in 0..9 {
        run.at(4.0 + f64::from(n) * 0.1).patch(OPERATOR, &child, json!({}));
    }
    run.at(6.0).settled(Phase::Settle, 3.0, true);
    check(&run, expect![[""]]);
}

#[test]
fn progress_on_the_way_to_readiness_is_no_loop() {
    let (mut run, sample, _) = at_rest();
    for n in 0..6 {
        run.at(4.0 + 1.6 * f64::from(n)).patch(OPERATOR, &sample, json!({"status": {"ready": n}}));
    }
    run.at(13.0).settled(Phase::Settle, 10.0, false);
    check(&run, expect![[""]]);
    // A former state that comes back is one.
    run.history.pop();
    run.at(12.5).patch(OPERATOR, &sample, json!({"status": {"ready": 1}}));
    run.at(13.0).settled(Phase::Settle, 10.0, false);
    check(
        &run,
        expect![[r#"
        violation quiet: Sample ns/sample-1 was written 7 times by the operator in 10.0 s of rest (0.7 a second), requests 5, 6, 7, 8, 9, … 11
          because status.ready changes with every write
          flips: status.ready: 5 → 1
          window: +3.00 s to +13.00 s in the settling, it never came to rest
    "#]],
    );
}
