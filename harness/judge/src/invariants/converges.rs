//! `converges`: after heal every subject gets ready for its current generation, within T.

use crate::{
    case::{Attempts, Case, Subject},
    draft::Draft,
    wording,
};
use spiritlevel_model::{
    Meta, RequestInfo, Verb,
    finding::{Finding, FindingClass},
    history::Phase,
    readiness,
    world::World,
};
use std::collections::BTreeSet;

/// Judges the end of the settling, and of the settling after the probe: T is the runner's time for it.
pub(crate) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut reported = BTreeSet::new();
    let mut findings = Vec::new();
    for phase in [Phase::Settle, Phase::SettleProbe] {
        let Some(end) = case.phases.end_of(phase) else { continue };
        let world = case.world_before(end.0);
        for subject in &case.subjects {
            let moment = if phase == Phase::SettleProbe { last_chance(case, subject, end) } else { end };
            let world = if moment == end { &world } else { &case.world_before(moment.0) };
            let missing = missing(case, subject, world);
            if !missing.lines().is_empty() && reported.insert(&subject.uid) {
                findings.push(finding(case, subject, &missing, phase, moment));
            }
        }
    }
    findings
}

/// The probe's second subject is deleted within the probe: its last moment before that counts.
fn last_chance(case: &Case<'_>, subject: &Subject, end: (u64, f64)) -> (u64, f64) {
    let terminating = || {
        let life = case.objects.get(&subject.uid)?;
        let seen = case.version(life.terminating.or(life.deleted)?);
        (seen.seq < end.0).then_some((seen.seq, seen.at_ms))
    };
    if subject.second { terminating().unwrap_or(end) } else { end }
}

/// Which subjects are not ready at the end of a settle phase.
pub(crate) fn is_missing_something(case: &Case<'_>, phase: Phase) -> bool {
    let Some((seq, _)) = case.phases.end_of(phase) else { return false };
    let world = case.world_before(seq);
    case.subjects.iter().any(|s| !missing(case, s, &world).lines().is_empty())
}

/// Whether there is a subject, none is on its way out, and each is ready with all that it owns.
pub(crate) fn all_ready(case: &Case<'_>, world: &World) -> bool {
    let live = |s: &Subject| world.by_uid(&s.uid).is_some();
    let going = |s: &Subject| world.by_uid(&s.uid).is_some_and(|l| l.object.is_terminating());
    let ready = |s: &Subject| !going(s) && missing(case, s, world).lines().is_empty();
    case.subjects.iter().any(live) && case.subjects.iter().all(ready)
}

/// What the subject lacks, itself first, then its workload children.
#[derive(Default)]
struct Missing {
    itself: Option<String>,
    children: Vec<String>,
}

impl Missing {
    fn lines(&self) -> Vec<String> {
        self.itself.iter().chain(&self.children).cloned().collect()
    }
}

/// Nothing when the subject is gone or going: that is the business of `deletes`.
fn missing(case: &Case<'_>, subject: &Subject, world: &World) -> Missing {
    let Some(live) = world.by_uid(&subject.uid).filter(|l| !l.object.is_terminating()) else {
        return Missing::default();
    };
    let itself = readiness::not_ready(&case.plan.suite.subject, &live.object);
    let owned = world.live().filter(|l| {
        let tie = l.object.uid().and_then(|u| case.tie(&u));
        tie.is_some_and(|t| t.subject == subject.uid && !l.object.owners().is_empty())
    });
    let children = owned.filter_map(|l| {
        let lag = readiness::not_current(&l.resource, &l.object)?;
        Some(format!("{} {}: {lag}", l.object["kind"].as_str()?, l.object.name()?))
    });
    Missing { itself, children: children.collect() }
}

fn finding(case: &Case<'_>, subject: &Subject, missing: &Missing, phase: Phase, end: (u64, f64)) -> Finding {
    let attempts = case.unanswered(subject, end.0);
    let alive = case.processes.alive_at(end.0);
    let event = Seen::of(case, subject, end.0);
    let going_on = attempts.iter().find(|a| a.goes_on_after(end.1)).filter(|_| alive);
    let lines = missing.lines();
    let cause = match (&event, attempts.first(), going_on) {
        _ if !alive => "the operator does not run".into(),
        (_, _, Some(a)) => format!("it still tries: {}", a.text()),
        _ if missing.itself.is_none() => "the subject says that it is ready, what it owns is not".into(),
        (Some(Seen { reached: false, .. }), None, _) => "the operator never saw the last change of the subject".into(),
        (_, Some(a), _) => repeated(a),
        _ => "the operator runs, saw the subject, and does not go on".into(),
    };
    let by = match phase {
        Phase::SettleProbe if subject.second => "before it was deleted in the probe".to_owned(),
        _ => format!("by the end of {}", wording::phase(phase)),
    };
    let uid = wording::uid(&subject.uid);
    let message = format!("{} (uid {uid}) did not get ready {by}: {}", subject.object, lines[0]);
    let mut draft = Draft::new("converges", message, cause, end).object(&subject.object);
    if going_on.is_some() {
        draft = draft.class(FindingClass::StillTrying);
    }
    for more in &lines[1..] {
        draft = draft.detail("missing", more.clone());
    }
    draft = draft.detail("operator", operator(case, alive, end.0)).maybe("event", event.map(|e| e.text));
    for attempt in attempts.iter().take(3) {
        draft = draft.detail("failing", attempt.text());
    }
    let request = attempts.first().filter(|a| a.failed.len() > 1).map(|a| a.last().request.id);
    draft.request(request).finish(case)
}

fn repeated(attempts: &Attempts<'_>) -> String {
    let info = &attempts.last().request.info;
    match (attempts.failed.len(), attempts.alike()) {
        (1, _) => format!("{info} failed ({}) and was not tried again", attempts.failure.text()),
        (_, n) => format!("{info} fails every time: {} {}", attempts.failure.text(), wording::times(n)),
    }
}

/// `operator/0 runs; its last request, 55, came at +9.80 s`.
fn operator(case: &Case<'_>, alive: bool, seq: u64) -> String {
    let operators = case.exchanges.values().filter(|x| x.request.actor.is_operator() && x.seq < seq);
    let last = operators.max_by_key(|x| x.seq).map_or_else(
        || "it has not sent any request".to_owned(),
        |x| format!("its last request, {}, came at {} ({})", x.request.id, wording::at(x.at_ms), x.request.info),
    );
    format!("{}; {last}", if alive { "it runs" } else { "it does not run" })
}

/// Whether the operator saw the subject's last version that it did not make itself.
struct Seen {
    reached: bool,
    text: String,
}

impl Seen {
    fn of(case: &Case<'_>, subject: &Subject, seq: u64) -> Option<Self> {
        let life = case.objects.get(&subject.uid)?;
        let foreign = |i: &&usize| case.version(**i).seq < seq && !case.is_operators(**i);
        let seen = case.version(*life.versions.iter().rev().find(foreign)?);
        let revision = seen.version.revision;
        let version = format!("its version {revision} of {}", wording::at(seen.at_ms));
        if let Some(d) = case.streams.delivery(&subject.uid, seen.moment(), seq) {
            let text = format!("{version} reached {} at {}", d.actor, wording::at(d.at_ms));
            return Some(Self { reached: true, text });
        }
        let read = case.exchanges.values().find(|x| {
            let info = &x.request.info;
            let here = info.resource.as_ref() == Some(&life.resource);
            let named = info.name.as_ref().is_none_or(|n| n == &subject.object.name);
            let whole = x.seq > seen.seq && x.answer.is_some_and(|(answered, _)| answered < seq);
            here && named && whole && x.request.actor.is_operator() && x.failure().is_none() && is_read(info)
        });
        if let Some(x) = read {
            let text = format!("{version} could be read by request {} at {}", x.request.id, wording::at(x.at_ms));
            return Some(Self { reached: true, text });
        }
        let watched = case.streams.of_operator().filter(|s| s.scope.0 == life.resource && s.opened < seq);
        let ended = watched.filter_map(|s| s.closed).filter(|(closed, ..)| *closed < seq).max_by_key(|(at, ..)| *at);
        let open = case.streams.open_at(seq).iter().any(|(r, _)| r == &life.resource);
        let why = match ended {
            _ if open => format!(", although a watch of {} is open", life.resource),
            Some((_, at, fault)) => {
                let by = fault.map(|f| format!(" by {f}")).unwrap_or_default();
                format!(": no watch of {} is open since one was ended{by} at {}", life.resource, wording::at(at))
            }
            None => format!(": no watch of {} was ever open", life.resource),
        };
        Some(Self { reached: false, text: format!("{version} never reached the operator{why}") })
    }
}

fn is_read(info: &RequestInfo) -> bool {
    matches!(info.verb, Verb::Get | Verb::List)
}

#[cfg(test)]
mod tests;
