//! Runs to tell of.

use crate::{Finished, Skipped};
use serde_json::{Value, json};
use spiritlevel_model::{Seed, verdict::Verdict};

/// A verdict with `more` over the plainest one.
pub(crate) fn verdict(scenario: &str, more: Value) -> Verdict {
    let mut value = json!({
        "schemaVersion": 1, "scenario": scenario, "suite": "postgres", "provider": "local", "seed": 42, "verdict": "pass",
        "durationMs": 7200.0, "faults": [], "findings": [], "writes": {"effective": 12, "noOp": 0},
        "settle": [{"phase": "settle", "settled": true, "converged": true, "tookMs": 1900.0, "windowMs": 2000.0}],
    });
    for (key, field) in more.as_object().expect("tests give an object") {
        value[key] = field.clone();
    }
    serde_json::from_value(value).expect("tests give a whole verdict")
}

pub(crate) fn run(scenario: &str, more: Value) -> Finished {
    Finished {
        key: format!("{scenario}-1"),
        title: format!("postgres/{scenario}"),
        verdict: verdict(scenario, more),
        dir: format!("reports/postgres/{scenario}/42").into(),
        file: Some(format!("scenarios/postgres/{scenario}.yaml")),
    }
}

pub(crate) fn finding(invariant: &str, message: &str) -> Value {
    json!({"invariant": invariant, "class": "violation", "message": message, "cause": "", "atMs": 8020.0})
}

/// The run of the design's sample.
pub(crate) fn orphan() -> Finished {
    run(
        "crash-after-first-pvc",
        json!({
            "verdict": "fail", "durationMs": 9800.0,
            "faults": [{"name": "crash-after-first-pvc", "action": "crash", "legality": "always", "armed": true, "matched": 1, "fired": 1}],
            "findings": [{
                "invariant": "noOrphans", "class": "violation",
                "message": "PersistentVolumeClaim shop/pg-1-data-0 (uid 3f0c…) outlived its owner",
                "details": [
                    {"key": "created", "text": "by operator/0 at +2.31 s, request 41, without ownerReferences"},
                    {"key": "owner", "text": "PostgresCluster shop/pg-1 (uid 9a11…) deleted at +8.02 s"},
                    {"key": "fault", "text": "crash-after-first-pvc fired once, at +2.33 s on request 41, after the write was committed (always legal)"},
                ],
                "cause": "it has no ownerReferences, and nobody deleted it",
                "fault": "crash-after-first-pvc", "legality": "always", "request": 41, "atMs": 8020.0,
            }],
        }),
    )
}

pub(crate) fn passed() -> Finished {
    let fault = |name: &str| json!({"name": name, "action": "dropEvents", "legality": "never", "armed": true, "matched": 1, "fired": 1});
    run("dropped-watch-events", json!({"faults": [fault("a"), fault("b"), fault("c")]}))
}

pub(crate) fn inconclusive() -> Finished {
    let reasons = json!(["fault conflict never fired: nothing matched", "the settling did not end within 90 s"]);
    run("conflict-on-status", json!({"verdict": "inconclusive", "durationMs": 6100.0, "reasons": reasons}))
}

pub(crate) fn error() -> Finished {
    let reasons = json!([
        "the operator ended before the first step with exit code 1; its last lines:\npanic: no such file\nexit"
    ]);
    run("no-start", json!({"verdict": "error", "durationMs": 300.0, "reasons": reasons, "settle": []}))
}

pub(crate) fn skipped() -> Skipped {
    Skipped {
        key: "real-data-1".into(),
        title: "postgres/real-data".into(),
        seed: Seed(42),
        why: "needs pods that run (requires.realPods)".into(),
    }
}

/// Fails, and is meant to.
pub(crate) fn expected() -> Finished {
    run(
        "no-owner [bug]",
        json!({
            "verdict": "fail", "expected": {"verdict": "fail", "mismatches": []},
            "findings": [finding("noOrphans", "ConfigMap a/one outlived its owner"), finding("noOrphans", "ConfigMap a/two outlived its owner"),
                finding("heals", "ConfigMap a/one did not come back")],
        }),
    )
}

/// Passes, and is not meant to.
pub(crate) fn mismatch() -> Finished {
    let mismatches =
        json!(["expected the verdict fail, got pass", "expected noOrphans on ConfigMap sample-1-settings, it holds"]);
    run("no-owner [bug]", json!({"expected": {"verdict": "fail", "mismatches": mismatches}}))
}
