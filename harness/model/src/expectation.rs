//! Whether a run got what its author expected of it.

use crate::{
    bindings::{self, Bindings, Unresolved},
    expect::{Expect, ExpectedFinding},
    fault::glob,
    finding::{Finding, FindingClass},
    verdict::{ExpectedOutcome, Verdict, VerdictKind},
};
use serde_json::json;
use std::fmt::Write;

/// Holds a verdict against an expectation. `bindings` has also what the run itself bound.
pub fn compare(expect: &Expect, verdict: &Verdict, bindings: &Bindings) -> ExpectedOutcome {
    let resolved = bindings::resolve(&json!(expect), bindings, Unresolved::Keep).ok();
    let resolved = resolved.and_then(|value| serde_json::from_value(value).ok());
    let expect: &Expect = resolved.as_ref().unwrap_or(expect);
    let mut mismatches = Vec::new();
    if verdict.verdict != expect.verdict {
        mismatches.push(wrong_verdict(expect.verdict, verdict));
    }
    for wanted in &expect.findings {
        if !verdict.findings.iter().any(|f| is_like(wanted, f)) {
            mismatches.push(missing(wanted, &verdict.findings));
        }
    }
    let is_expected = |f: &&Finding| expect.findings.iter().any(|wanted| is_like(wanted, f));
    let violations = || verdict.findings.iter().filter(|f| f.class == FindingClass::Violation);
    if expect.exact != Some(false) {
        let further = violations().filter(|f| !is_expected(f) && !expect.holds.contains(&f.invariant));
        mismatches.extend(further.map(|f| format!("unexpected {}: {}", f.invariant, f.message)));
    }
    for invariant in &expect.holds {
        let broken = violations().filter(|f| f.invariant == *invariant);
        mismatches.extend(broken.map(|f| format!("{invariant} must hold: {}", f.message)));
    }
    ExpectedOutcome { verdict: expect.verdict, mismatches }
}

/// Whether a finding is the one that is expected; what is left out is not looked at.
fn is_like(wanted: &ExpectedFinding, finding: &Finding) -> bool {
    let same = |wanted: &Option<String>, actual: Option<&str>| {
        wanted.as_deref().is_none_or(|pattern| actual.is_some_and(|text| glob(pattern, text)))
    };
    let object = wanted.object.as_ref().is_none_or(|object| {
        finding
            .object
            .as_ref()
            .is_some_and(|actual| same(&object.kind, Some(&actual.kind)) && same(&object.name, Some(&actual.name)))
    });
    // A consequence may be of any class: that it is none of its own is what is said.
    let class = wanted.caused_by.is_some() || wanted.class.is_none_or(|class| class == finding.class);
    wanted.invariant == finding.invariant
        && object
        && class
        && same(&wanted.fault, finding.fault.as_deref())
        && same(&wanted.step, finding.step.as_deref())
        && wanted.message.as_ref().is_none_or(|words| finding.message.contains(words.as_str()))
}

fn wrong_verdict(expected: VerdictKind, verdict: &Verdict) -> String {
    let why = match verdict.verdict {
        VerdictKind::Fail => verdict.findings.iter().find(|f| f.class == FindingClass::Violation).map(|f| &f.message),
        VerdictKind::Pass => None,
        _ => verdict.reasons.first(),
    };
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("expected the verdict {expected}, got {}{why}", verdict.verdict)
}

/// Names what was expected, and how the nearest finding differs.
fn missing(wanted: &ExpectedFinding, findings: &[Finding]) -> String {
    let mut text = format!("expected {}", wanted.invariant);
    if let Some(class) = wanted.class {
        let _ = write!(text, " ({})", class_name(class));
    }
    if let Some(object) = &wanted.object {
        let kind = object.kind.as_deref().unwrap_or("an object");
        let _ = write!(text, " on {kind} {}", object.name.as_deref().unwrap_or("of any name"));
    }
    for (word, value) in [("fault", &wanted.fault), ("step", &wanted.step)] {
        if let Some(value) = value {
            let _ = write!(text, " by {word} `{value}`");
        }
    }
    if let Some(words) = &wanted.message {
        let _ = write!(text, " saying {words:?}");
    }
    let same: Vec<&Finding> = findings.iter().filter(|f| f.invariant == wanted.invariant).collect();
    match same.first() {
        None => text.push_str(", it holds"),
        Some(near) => {
            let cause = match (&near.fault, &near.step) {
                (Some(fault), _) => format!("fault `{fault}`"),
                (None, Some(step)) => format!("step `{step}`"),
                (None, None) => "neither fault nor step".into(),
            };
            let _ = write!(text, "; found was {} ({}, by {cause})", near.message, class_name(near.class));
        }
    }
    text
}

fn class_name(class: FindingClass) -> String {
    json!(class).as_str().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::VERDICT_VERSION;
    use serde_json::Value;

    fn verdict(kind: &str, findings: Value) -> Verdict {
        serde_json::from_value(json!({
            "schemaVersion": VERDICT_VERSION, "scenario": "s", "suite": "x", "provider": "local", "seed": 1, "verdict": kind,
            "durationMs": 1.0, "faults": [], "findings": findings, "settle": [], "writes": {"effective": 0, "noOp": 0},
        }))
        .unwrap()
    }

    fn orphan(name: &str, class: &str) -> Value {
        json!({"invariant": "noOrphans", "class": class, "message": format!("PersistentVolumeClaim {name} outlived its owner"),
            "object": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name}, "cause": "", "fault": "crash", "atMs": 1.0})
    }

    fn check(expect: Value, verdict: &Verdict, mismatches: &[&str]) {
        let expect: Expect = serde_json::from_value(expect).unwrap();
        let bindings = Bindings::from([("cluster".into(), json!("pg-1"))]);
        assert_eq!(compare(&expect, verdict, &bindings).mismatches, mismatches);
    }

    #[test]
    fn what_is_expected_is_there_and_nothing_else() {
        let v = verdict("fail", json!([orphan("pg-1-data-0", "violation")]));
        let wanted = |extra: Value| {
            let mut finding = json!({"invariant": "noOrphans"});
            finding.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!({"verdict": "fail", "findings": [finding]})
        };
        check(
            wanted(json!({"object": {"kind": "PersistentVolumeClaim", "name": "($cluster)-data-?"}, "fault": "crash"})),
            &v,
            &[],
        );
        check(wanted(json!({"message": "outlived"})), &v, &[]);
        check(
            wanted(json!({"step": "restart"})),
            &v,
            &[
                "expected noOrphans by step `restart`; found was PersistentVolumeClaim pg-1-data-0 outlived its owner (violation, by fault `crash`)",
                "unexpected noOrphans: PersistentVolumeClaim pg-1-data-0 outlived its owner",
            ],
        );
        check(
            json!({"verdict": "fail"}),
            &v,
            &["unexpected noOrphans: PersistentVolumeClaim pg-1-data-0 outlived its owner"],
        );
        check(json!({"verdict": "fail", "exact": false}), &v, &[]);
        check(
            json!({"verdict": "fail", "exact": false, "holds": ["noOrphans"]}),
            &v,
            &["noOrphans must hold: PersistentVolumeClaim pg-1-data-0 outlived its owner"],
        );
        check(
            json!({"verdict": "pass", "exact": false}),
            &v,
            &["expected the verdict pass, got fail: PersistentVolumeClaim pg-1-data-0 outlived its owner"],
        );
    }

    #[test]
    fn warnings_are_never_too_many_and_consequences_may_be_of_any_class() {
        let v = verdict("pass", json!([orphan("a", "warning")]));
        check(json!({"verdict": "pass"}), &v, &[]);
        check(
            json!({"verdict": "pass", "findings": [{"invariant": "noOrphans", "class": "violation", "causedBy": 0}]}),
            &v,
            &[],
        );
        check(
            json!({"verdict": "pass", "findings": [{"invariant": "deletes", "class": "violation", "object": {"kind": "X"}}]}),
            &v,
            &["expected deletes (violation) on X of any name, it holds"],
        );
    }
}
