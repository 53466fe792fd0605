//! Violating and satisfying histories.

use crate::testing::{Run, USER, object};
use expect_test::expect;
use serde_json::json;
use spiritlevel_model::history::{Phase, StepState};

#[test]
fn a_failed_assert_names_its_step_and_the_active_faults() {
    let mut run = Run::with(json!([{"name": "slow", "do": {"partition": {"as": "slow"}}}]), json!({}));
    run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.fired("slow", None, None).effect("slow", "a request failed");
    run.step("steps[0].try[1]", "ready", "assert", StepState::Started);
    let message = "no Sample matches\nstatus.phase: \"Up\" was expected, there is none";
    run.at(9.0).step("steps[0].try[1]", "ready", "assert", StepState::Failed { message: message.into() });
    run.settle(Phase::Settle, 3.0, true);
    expect![[r#"
        violation assert: ready: assert in steps[0].try[1] did not hold after 8.0 s
          because no Sample matches
          differs: status.phase: "Up" was expected, there is none
          active: slow (always legal)
          fault: slow fired once, at +1.00 s (always legal)
          -> fault slow
          -> step ready
    "#]]
    .assert_eq(&run.text("assert"));
}

#[test]
fn an_assert_that_holds_is_no_finding() {
    let mut run = Run::new();
    run.step("steps[0]", "ready", "assert", StepState::Started).step("steps[0]", "ready", "assert", StepState::Done);
    run.settle(Phase::Settle, 3.0, true);
    assert_eq!(run.judge().findings, []);
}
