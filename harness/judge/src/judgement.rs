//! Judging: every invariant that is on, over one case.

use crate::{
    case::Case,
    invariants::{converges, deletes, heals, legal_owners, no_orphans, process_health, properties, quiet, steps},
    outcome,
};
use serde::{Deserialize, Serialize};
use spiritlevel_model::{finding::Finding, history::Record, plan::Plan, verdict::Verdict};

/// What came out of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// What was found, by time, then by invariant.
    pub findings: Vec<Finding>,
    /// The verdict, with the same findings.
    pub verdict: Verdict,
}

/// Judges a run. The same plan and history give the same judgement, byte for byte.
pub fn judge(plan: &Plan, history: &[Record]) -> Judgement {
    let case = Case::new(plan, history);
    let findings = findings(&case);
    let verdict = outcome::verdict(&case, &findings);
    Judgement { findings, verdict }
}

fn findings(case: &Case<'_>) -> Vec<Finding> {
    let on = &case.plan.invariants;
    let mut all = steps::judge(case);
    if on.converges.is_some() {
        all.extend(converges::judge(case));
    }
    if let Some(settings) = on.quiet {
        all.extend(quiet::judge(case, settings));
    }
    if on.heals.is_some() {
        all.extend(heals::judge(case));
    }
    if let Some(retain) = &on.no_orphans {
        all.extend(no_orphans::judge(case, retain));
    }
    if on.legal_owners {
        all.extend(legal_owners::judge(case));
    }
    if on.deletes.is_some() {
        all.extend(deletes::judge(case));
    }
    if let Some(within) = on.process_health {
        all.extend(process_health::judge(case, within));
    }
    all.extend(properties::judge(case, properties::Says::Always, &on.always));
    all.extend(properties::judge(case, properties::Says::Never, &on.never));
    all.extend(properties::eventually(case, &on.eventually));
    all.sort_by(|a, b| {
        let by_time = a.at_ms.total_cmp(&b.at_ms);
        by_time.then_with(|| (&a.invariant, &a.object, &a.message).cmp(&(&b.invariant, &b.object, &b.message)))
    });
    all.dedup_by(|a, b| a.invariant == b.invariant && a.object == b.object && a.message == b.message);
    all
}

#[cfg(test)]
mod tests;
