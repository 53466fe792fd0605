//! `deletes`: the deletion of a subject ends.

use crate::{
    case::{Case, Ending, Life, StepLife},
    draft::Draft,
    wording,
};
use spiritlevel_model::{Meta, finding::Finding, history::Phase, world::World};
use std::collections::BTreeSet;

/// Subjects that are still terminating at the end of the teardown, and objects whose `delete` step waited in vain.
pub(crate) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reported = BTreeSet::new();
    if let Some(end) = case.phases.end_of(Phase::SettleTeardown) {
        let world = case.world_before(end.0);
        for subject in &case.subjects {
            let Some(life) = case.objects.get(&subject.uid) else { continue };
            if world.by_uid(&subject.uid).is_some_and(|l| l.object.is_terminating()) {
                reported.insert(subject.uid.clone());
                findings.push(finding(case, &world, life, end, None));
            }
        }
    }
    for step in case.steps.iter().filter(|s| s.operation == "delete") {
        let Some((seq, at_ms, Ending::TimedOut(_) | Ending::Failed(_))) = step.end else { continue };
        let world = case.world_before(seq);
        let stuck =
            world.live().filter(|l| l.object.is_terminating()).filter_map(|l| case.objects.get(&l.object.uid()?));
        for life in stuck.filter(|l| is_meant(step, l)) {
            if reported.insert(life.uid.clone()) {
                findings.push(finding(case, &world, life, (seq, at_ms), Some(step)));
            }
        }
    }
    findings
}

fn is_meant(step: &StepLife<'_>, life: &Life) -> bool {
    step.object.is_some_and(|o| {
        o.kind == life.object.kind
            && o.name == life.object.name
            && o.namespace.as_ref().is_none_or(|_| o.namespace == life.object.namespace)
    })
}

fn finding(case: &Case<'_>, world: &World, life: &Life, end: (u64, f64), step: Option<&StepLife<'_>>) -> Finding {
    let terminating = life.terminating.map(|i| case.version(i));
    let last = world.by_uid(&life.uid).map(|l| &l.object);
    let finalizers: Vec<String> =
        last.map(|o| o.finalizers().into_iter().map(Into::into).collect()).unwrap_or_default();
    let since = terminating.map_or_else(String::new, |t| format!(" since {}", wording::at(t.at_ms)));
    let held =
        if finalizers.is_empty() { "without finalizers".into() } else { format!("held by {}", finalizers.join(", ")) };
    let message = format!("{} (uid {}) is still terminating{since}, {held}", life.object, wording::uid(&life.uid));
    let subject = case.tie(&life.uid).and_then(|t| case.subject(&t.subject));
    let begun = terminating.map_or(0, |t| t.seq);
    let attempts = subject.map(|s| case.unanswered(s, end.0)).unwrap_or_default();
    let failing: Vec<_> = attempts.iter().filter(|a| a.last().seq > begun).collect();
    let alive = case.processes.alive_at(end.0);
    let cause = match failing.first() {
        _ if !alive => "the operator does not run".to_owned(),
        Some(a) => format!("{} fails: {} {}", a.last().request.info, a.failure.text(), wording::times(a.alike())),
        None => format!("nobody takes away {}", finalizers.first().map_or("what holds it", String::as_str)),
    };
    let mut draft = Draft::new("deletes", message, cause, end).object(&life.object);
    for finalizer in &finalizers {
        draft = draft.detail("finalizer", whose(case, world, life, finalizer));
    }
    for attempt in failing.iter().take(3) {
        draft = draft.detail("failing", attempt.text());
    }
    let request = failing.first().map(|a| a.last().request.id);
    let waited = step.map(|s| format!("{} waited for the deletion from {}", s.called, wording::at(s.at_ms)));
    let down = subject.and_then(|s| super::no_orphans::deleted_while_down(case, s));
    draft.maybe("waited", waited).request(request).step(down).finish(case)
}

/// Who put the finalizer there and should take it away.
fn whose(case: &Case<'_>, world: &World, life: &Life, finalizer: &str) -> String {
    match finalizer {
        "foregroundDeletion" => {
            let waits = world.live().filter(|l| {
                l.object.owners().iter().any(|o| o.uid == life.uid && o.block_owner_deletion == Some(true))
            });
            let names: Vec<String> =
                waits.filter_map(|l| Some(format!("{} {}", l.object["kind"].as_str()?, l.object.name()?))).collect();
            return format!(
                "{finalizer}: the garbage collector waits for {}",
                if names.is_empty() { "nothing".into() } else { wording::list(&names, 5) }
            );
        }
        "orphan" => return format!("{finalizer}: the garbage collector should take it away"),
        "kubernetes.io/pvc-protection" | "kubernetes.io/pv-protection" => {
            return format!("{finalizer}: Kubernetes takes it away when nothing uses the volume any more");
        }
        _ => {}
    }
    let has = |i: &&usize| case.version(**i).version.object.finalizers().contains(&finalizer);
    let first = life.versions.iter().find(has).map(|i| (case.version(*i), case.author(*i)));
    match first {
        Some((seen, Some(w))) => {
            format!("{finalizer}: put there by {}, who should take it away", wording::by(&w.actor, seen.at_ms, w.id))
        }
        Some((seen, None)) => format!("{finalizer}: there since {}", wording::at(seen.at_ms)),
        None => finalizer.to_owned(),
    }
}

#[cfg(test)]
mod tests;
