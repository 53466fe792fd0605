//! `--timeout-scale`: longer limits for slow machines.

use spiritlevel_model::{Period, operation::StepAction, plan::Plan, scenario::Probe};

/// Multiplies every limit of a plan. What a scenario does (pauses, lengths of faults) and the quiet window stay: they are
/// no limits.
pub(crate) fn stretch(plan: &mut Plan, factor: f64) {
    let long = |period: &mut Period| period.0 = period.0.mul_f64(factor);
    let t = &mut plan.suite.defaults.timeouts;
    for limit in [&mut t.apply, &mut t.assert, &mut t.error, &mut t.delete, &mut t.exec, &mut t.cleanup] {
        long(limit);
    }
    let i = &mut plan.invariants;
    for limit in [&mut i.converges, &mut i.deletes, &mut i.heals, &mut i.process_health] {
        limit.iter_mut().for_each(long);
    }
    let steps = plan.scenario.steps.iter_mut();
    for operation in steps.flat_map(|s| s.attempt.iter_mut().chain(&mut s.catch).chain(&mut s.finally)) {
        operation.timeout.iter_mut().for_each(long);
        if let StepAction::Await(wanted) = &mut operation.action {
            wanted.timeout.iter_mut().for_each(long);
        }
    }
    if let Probe::Own(own) = &mut plan.scenario.probe {
        own.within.iter_mut().for_each(long);
    }
}

#[cfg(test)]
mod tests {
    use super::stretch;
    use crate::recorded::tests::orphan;
    use spiritlevel_model::Period;

    #[test]
    fn limits_grow_and_the_quiet_window_stays() {
        let before = orphan();
        let mut plan = before.clone();
        stretch(&mut plan, 2.5);
        let of = |p: &spiritlevel_model::plan::Plan| (p.suite.defaults.timeouts.assert, p.invariants.converges);
        assert_eq!(of(&before), (Period::secs(15), Some(Period::secs(10))));
        assert_eq!(of(&plan), (Period::millis(37_500), Some(Period::secs(25))));
        assert_eq!(plan.invariants.quiet, before.invariants.quiet);
        assert_eq!(plan.process, before.process);
    }
}
