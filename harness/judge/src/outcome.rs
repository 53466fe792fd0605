//! From findings, steps, faults and settlings to one verdict.
//!
//! A step or surrounding that broke: error. Else a violation: fail, even when some fault did not fire. Else whatever
//! leaves doubt (a lost witness, a fault that never fired or had no effect, a world that did not settle for a reason that
//! is not the operator's, a wait in vain): inconclusive. Else pass.

use crate::{
    case::{Case, Ending, FaultLife},
    wording,
};
use spiritlevel_model::{
    finding::{Finding, FindingClass},
    history::{Event, Phase, Settled, VersionType},
    verdict::{VERDICT_VERSION, Verdict, VerdictKind, Writes},
    world::is_heartbeat,
};

/// The verdict of a case.
pub(crate) fn verdict(case: &Case<'_>, findings: &[Finding]) -> Verdict {
    let plan = case.plan;
    let broken = broken(case);
    let doubts = doubts(case, findings);
    let violated = findings.iter().any(|f| f.class == FindingClass::Violation);
    let (kind, reasons) = match (broken.is_empty(), violated) {
        (false, _) => (VerdictKind::Error, broken),
        (true, true) => (VerdictKind::Fail, doubts),
        (true, false) if !doubts.is_empty() => (VerdictKind::Inconclusive, doubts),
        (true, false) => (VerdictKind::Pass, Vec::new()),
    };
    let ends = (case.history.first().map_or(0.0, |r| r.at_ms), case.history.last().map_or(0.0, |r| r.at_ms));
    Verdict {
        schema_version: VERDICT_VERSION,
        scenario: plan.scenario_name.clone(),
        suite: plan.suite_name.clone(),
        variant: plan.variant.clone(),
        matrix: plan.matrix_text(),
        provider: plan.suite.cluster.provider.name().into(),
        seed: plan.seed,
        verdict: kind,
        reasons,
        duration_ms: ends.1 - ends.0,
        faults: case.faults.iter().map(FaultLife::summary).collect(),
        findings: findings.to_vec(),
        settle: case.phases.settlings().iter().map(|(_, _, s)| s.clone()).collect(),
        writes: writes(case),
        expected: None,
    }
}

/// Steps that could not be done, and a run that did not reach its end.
fn broken(case: &Case<'_>) -> Vec<String> {
    let step = |s: &crate::case::StepLife<'_>| match s.end {
        Some((_, at, Ending::Broken(why))) => {
            let object = s.object.map(|o| format!(" of {o}")).unwrap_or_default();
            Some(format!("{} ({}{object}) could not be done at {}: {why}", s.path, s.operation, wording::at(at)))
        }
        _ => None,
    };
    let mut reasons: Vec<String> = case.steps.iter().filter_map(step).collect();
    if reasons.is_empty() && case.phases.begin(Phase::Settle).is_none() {
        let at =
            case.history.last().and_then(|r| case.phases.at(r.seq)).map_or("before the arrangement", wording::phase);
        reasons.push(format!("the run was broken off: {at} was the last that was recorded"));
    }
    reasons
}

/// Why nothing can be said for sure.
fn doubts(case: &Case<'_>, findings: &[Finding]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for record in case.history {
        if let Event::WitnessLost { resource, why } = &record.event {
            reasons.push(format!("the witness lost its watch of {resource} at {}: {why}", wording::at(record.at_ms)));
        }
    }
    reasons.extend(case.faults.iter().filter_map(fault_doubt));
    reasons.extend(case.phases.settlings().iter().filter_map(|(_, _, s)| settle_doubt(s, findings)));
    for finding in findings.iter().filter(|f| f.class == FindingClass::StillTrying) {
        reasons.push(format!("{}; it still tries: allow more time", finding.message));
    }
    for step in &case.steps {
        if let Some((_, _, Ending::TimedOut(message))) = step.end {
            let object = step.object.map(|o| format!(" of {o}")).unwrap_or_default();
            reasons.push(format!("{} ({}{object}) waited in vain: {message}", step.path, step.operation));
        }
    }
    reasons
}

fn fault_doubt(fault: &FaultLife<'_>) -> Option<String> {
    let name = &fault.declared.name;
    if fault.firings.is_empty() {
        return Some(match (fault.armed, fault.matched) {
            (None, _) => format!("fault {name} was never armed"),
            (Some(_), 0) => format!("fault {name} never fired: nothing matched"),
            (Some(_), n) => format!("fault {name} never fired, although {n} matched"),
        });
    }
    (fault.effects.is_empty() && !fault.is_mark()).then(|| format!("fault {name} fired without effect"))
}

/// A world that did not settle leaves doubt, unless the findings say why.
fn settle_doubt(settled: &Settled, findings: &[Finding]) -> Option<String> {
    let told = findings.iter().any(|f| matches!(f.class, FindingClass::Violation | FindingClass::Robustness));
    if settled.settled || told && settled.operator_pending {
        return None;
    }
    let pending =
        if settled.pending.is_empty() { "nobody knows why".into() } else { wording::list(&settled.pending, 3) };
    Some(format!(
        "{} did not end within {}: {pending}",
        wording::phase(settled.phase),
        wording::lasting(settled.took_ms)
    ))
}

/// The operator's writes in the whole run, without heartbeats.
fn writes(case: &Case<'_>) -> Writes {
    let mut writes = Writes::default();
    for write in case.operator_writes() {
        let made = case.made_by(write.id);
        let answered = write.answer.as_ref().and_then(|(_, a)| a.status).is_some_and(|s| (200..300).contains(&s));
        let routine = write.info.resource.as_ref().is_some_and(|r| matches!(r.resource.as_str(), "leases" | "events"));
        let heartbeat = |i: &usize| is_heartbeat(&case.version(*i).version.resource, &case.version(*i).version.object);
        if routine || made.first().is_some_and(heartbeat) {
            continue;
        }
        if made.iter().any(|i| case.version(*i).version.kind != VersionType::Found) {
            writes.effective += 1;
        } else if answered {
            writes.no_op += 1;
        }
    }
    writes
}
