//! What follows a disturbance at rest: an operator that is started again, or that sees an object once more, has nothing
//! to write as long as nothing else happens.

use super::{
    Key, changed, key,
    rest::{self, Moment},
};
use crate::{
    case::{Case, Restart, StepLife},
    diff,
    draft::Draft,
    wording,
};
use spiritlevel_model::{
    ObjectRef, RequestId,
    finding::Finding,
    history::{Phase, VersionType},
    invariants::QuietSettings,
    operation::TOUCH,
    world::is_heartbeat,
};
use std::collections::{BTreeMap, BTreeSet};

/// One finding for each disturbance at rest and each object that was written in its wake, but for those that are written
/// without one as well.
pub(super) fn judge(case: &Case<'_>, settings: QuietSettings, loops: &BTreeSet<Key>) -> Vec<Finding> {
    let mut reported = BTreeSet::new();
    let mut findings = Vec::new();
    for window in windows(case, settings) {
        for (key, writes) in writes(case, &window) {
            let too_many = writes.len() as u64 > settings.max_effective_writes;
            let name = window.disturbance.name();
            if too_many && !loops.contains(&key) && reported.insert((key, name)) {
                findings.push(finding(case, &window, &writes));
            }
        }
    }
    findings
}

/// Something that is no reason to write.
struct Disturbance<'c> {
    /// Up to here the world has to be at rest; what comes later counts.
    from: Moment,
    /// The operator runs again; the same as `from` for a duplicate.
    up: Moment,
    what: What,
    /// The step that did it.
    step: Option<&'c StepLife<'c>>,
}

enum What {
    /// Processes that ended and were started again: of one replica, or of several at the same time.
    Restarted(Vec<Restart>),
    /// The operator was shown an object that had not changed.
    Duplicate,
}

/// A disturbance at rest, and where the rest ends.
struct Window<'c> {
    disturbance: Disturbance<'c>,
    to: Moment,
    /// The disturbance before it, when it was so near that its effect may have come only now.
    after: Option<String>,
    /// Since when nothing had been written.
    still_ms: Option<f64>,
}

fn windows<'c>(case: &'c Case<'_>, settings: QuietSettings) -> Vec<Window<'c>> {
    let (causes, borders) = (rest::causes(case), rest::borders(case));
    // The runner's own window is longer where the operator was seen to react slowly.
    let measured = case.phases.settled(Phase::Settle).map_or(0.0, |(_, _, s)| s.window_ms);
    let window_ms = settings.window.as_ms().max(measured);
    let all = disturbances(case);
    let begins: Vec<Moment> = all.iter().map(|d| d.from).chain(case.processes.downs()).chain(borders).collect();
    let last = case.history.last().map_or((0, 0.0), |r| (r.seq + 1, r.at_ms));
    let mut windows: Vec<Window<'c>> = Vec::new();
    let mut before: Option<(Moment, String)> = None;
    for disturbance in all {
        let (from, up) = (disturbance.from, disturbance.up);
        let elsewhere = causes.iter().map(|c| c.at).filter(|m| m.0 > from.0);
        let next = begins.iter().copied().filter(|m| m.0 > up.0);
        let to = elsewhere.chain(next).chain([last]).min_by_key(|m| m.0).unwrap_or(last);
        let near = before.take().filter(|(at, _)| from.1 - at.1 < window_ms).map(|(_, text)| text);
        before = Some((up, disturbance.text(u64::MAX)));
        let crash = disturbance.ended_by();
        let judged =
            to.0 > up.0 && !disturbance.interrupts(case) && rest::is_at_rest(case, &causes, from, window_ms, crash);
        if judged {
            let still_ms = rest::last_news(case, from);
            windows.push(Window { disturbance, to, after: near, still_ms });
        }
    }
    // Who copies a touch takes it for something new, and what else is written then may follow from it.
    windows.retain(|w| !operators(case, w).any(|i| copies_touch(case, i)));
    windows
}

/// All of them, in order; restarts at the same time are one.
fn disturbances<'c>(case: &'c Case<'_>) -> Vec<Disturbance<'c>> {
    let mut all: Vec<Disturbance<'c>> = Vec::new();
    for restart in case.processes.restarts() {
        match all.last_mut() {
            Some(Disturbance { up, what: What::Restarted(same), .. }) if restart.down.0 < up.0 => {
                *up = if restart.up.0 > up.0 { restart.up } else { *up };
                same.push(restart);
            }
            _ => {
                let by = |path: &String| case.steps.iter().rev().find(|s| s.path == path && s.seq < restart.up.0);
                let step = restart.started_by.as_ref().and_then(by);
                let (from, up) = (restart.down, restart.up);
                all.push(Disturbance { from, up, what: What::Restarted(vec![restart]), step });
            }
        }
    }
    for step in case.steps.iter().filter(|s| s.operation == "duplicateReconcile") {
        let at = (step.seq, step.at_ms);
        all.push(Disturbance { from: at, up: at, what: What::Duplicate, step: Some(step) });
    }
    all.sort_by_key(|d| d.from.0);
    all
}

// === impl Disturbance ===

impl Disturbance<'_> {
    /// The fault or step that ended the process.
    fn ended_by(&self) -> Option<&str> {
        match &self.what {
            What::Restarted(all) => all[0].ended_by.as_deref(),
            What::Duplicate => None,
        }
    }

    /// What distinguishes it from others: one finding for each is enough.
    fn name(&self) -> Option<String> {
        self.step.map(|s| s.path.to_owned()).or_else(|| self.ended_by().map(Into::into))
    }

    /// Whether it took the operator in the middle of something: a crash that was placed on a write, or a process that
    /// still wrote when it was told to end.
    fn interrupts(&self, case: &Case<'_>) -> bool {
        let What::Restarted(all) = &self.what else { return false };
        let placed = |r: &Restart| {
            let fault = case.faults.iter().find(|f| Some(&f.declared.name) == r.ended_by.as_ref())?;
            let firing = fault.firings.iter().rev().find(|f| f.seq < r.down.0)?;
            case.exchanges.get(&firing.request?).filter(|x| x.request.info.verb.is_write() && !x.is_routine())
        };
        let last_words = |r: &Restart| {
            case.operator_writes().any(|w| {
                let theirs = w.actor == r.actor && w.sent_seq > r.down.0 && w.sent_seq < r.dead;
                theirs && case.exchanges.get(&w.id).is_some_and(|x| !x.is_routine())
            })
        };
        all.iter().any(|r| placed(r).is_some() || last_words(r))
    }

    /// `operator/0 was started again at +4.21 s`: what had happened before `seq`.
    fn text(&self, seq: u64) -> String {
        let What::Restarted(all) = &self.what else {
            return format!("the duplicate reconcile of step {}", self.step.map_or("", |s| s.called.as_str()));
        };
        let up: Vec<&Restart> = all.iter().filter(|r| r.up.0 < seq).collect();
        let names = up.iter().map(|r| r.actor.to_string()).collect::<Vec<_>>().join(" and ");
        match up.as_slice() {
            [] => format!("{} ended at {}", all[0].actor, wording::at(all[0].down.1)),
            [one] => format!("{names} was started again at {}", wording::at(one.up.1)),
            [.., last] => format!("{names} were started again by {}", wording::at(last.up.1)),
        }
    }
}

/// The operator's versions in a window.
fn operators<'c>(case: &'c Case<'_>, window: &Window<'_>) -> impl Iterator<Item = usize> + use<'c> {
    let (from, to) = (window.disturbance.from.0, window.to.0);
    let within = move |i: &usize| (from..to).contains(&case.version(*i).seq) && case.is_operators(*i);
    (0..case.versions().len()).filter(within)
}

/// The operator's versions in a window by object, without heartbeats.
fn writes(case: &Case<'_>, window: &Window<'_>) -> BTreeMap<Key, Vec<usize>> {
    let mut by_object: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for index in operators(case, window) {
        let version = &case.version(index).version;
        if !is_heartbeat(&version.resource, &version.object) {
            by_object.entry(key(&version.resource, &version.object)).or_default().push(index);
        }
    }
    by_object
}

/// Whether the annotation of a touch came into an object, or went, with this version.
fn copies_touch(case: &Case<'_>, index: usize) -> bool {
    let seen = case.version(index);
    match seen.before {
        None => diff::has_key(&seen.version.object, TOUCH),
        Some(before) => {
            diff::changes(&case.version(before).version.object, &seen.version.object).iter().any(|c| c.touches(TOUCH))
        }
    }
}

fn finding(case: &Case<'_>, window: &Window<'_>, writes: &[usize]) -> Finding {
    let (first, last) = (case.version(writes[0]), case.version(writes[writes.len() - 1]));
    let ids: BTreeSet<RequestId> = writes.iter().filter_map(|i| case.author(*i)).map(|w| w.id).collect();
    let ids: Vec<RequestId> = ids.into_iter().collect();
    let object = ObjectRef::of(&last.version.object);
    let uid = object.as_ref().and_then(|o| o.uid.as_ref()).map(|u| format!(" (uid {})", wording::uid(u)));
    let what = window.disturbance.text(first.seq);
    let message = format!(
        "{}{} was written {} by the operator after {what}, although everything was at rest: {}",
        object.as_ref().map(ToString::to_string).unwrap_or_default(),
        uid.unwrap_or_default(),
        wording::times(writes.len()),
        wording::requests(&ids),
    );
    let fields = changed(case, writes);
    let any = |kind: VersionType| writes.iter().any(|i| case.version(*i).version.kind == kind);
    let cause = match (any(VersionType::Added), any(VersionType::Deleted), &fields[..]) {
        (true, true, _) => "the object is deleted and made again".into(),
        (true, false, _) => "the object is made, and nobody had taken it away".into(),
        (false, true, _) => "the object is deleted, and nobody had made it".into(),
        (.., [one]) => format!("{} changes, and nothing else did", one.0),
        (.., []) => "the writes differ in nothing that is kept".into(),
        (.., many) => format!("{} fields change, and nothing else did", many.len()),
    };
    let mut draft = Draft::new("quiet", message, cause, (first.seq, first.at_ms)).request(ids.first().copied());
    if let Some(object) = &object {
        draft = draft.object(object);
    }
    if let Some(step) = window.disturbance.step {
        draft = draft.caused_by(step);
    }
    for (path, values) in fields.iter().take(5) {
        let values = match values.as_slice() {
            [first, second, .., last] if values.len() > 4 => format!("{first} → {second} → … → {last}"),
            few => few.join(" → "),
        };
        draft = draft.detail("changed", format!("{path}: {values}"));
    }
    let (from, to) = (window.disturbance.from.1, window.to.1);
    let still = window.still_ms.map(|at| format!("nothing had been written for {}", wording::lasting(from - at)));
    draft
        .maybe("rest", still)
        .maybe("before", window.after.as_ref().map(|text| format!("shortly before, {text}")))
        .detail("window", format!("{} to {}", wording::at(from), wording::at(to)))
        .finish(case)
}

#[cfg(test)]
mod tests;
