//! Whether the world was at rest at a moment, from the history alone, and what ends a rest. Doubt means no: what an
//! operator writes in answer to something is no unrest of its own.

use super::{Key, key};
use crate::{
    case::{Case, Exchange},
    diff,
    invariants::converges,
};
use spiritlevel_model::{
    Actor, Meta, Verb,
    history::{Event, Phase, VersionType},
    operation::TOUCH,
    world::is_heartbeat,
};
use std::collections::{BTreeMap, BTreeSet};

/// Place and time.
pub(super) type Moment = (u64, f64);

/// Something from elsewhere after which an operator may have to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause<'c> {
    /// When.
    pub(super) at: Moment,
    /// The fault that fired.
    pub(super) fault: Option<&'c str>,
}

/// Everything that comes from elsewhere, in order: versions that the operator did not make, faults that fire, steps that
/// do something. Touches are no news, and the steps that restart or touch are judged by what they do.
pub(super) fn causes<'c>(case: &'c Case<'_>) -> Vec<Cause<'c>> {
    const JUDGED: [&str; 4] = ["restartOperator", "stopOperator", "startOperator", "duplicateReconcile"];
    let versions = (0..case.versions().len()).filter(|i| is_news(case, *i) && !case.is_operators(*i));
    let mut all: Vec<Cause<'_>> = versions.map(|i| Cause { at: moment(case, i), fault: None }).collect();
    for fault in case.faults.iter().filter(|f| !f.is_mark()) {
        let name = Some(fault.declared.name.as_str());
        all.extend(fault.firings.iter().map(|f| Cause { at: (f.seq, f.at_ms), fault: name }));
    }
    for step in case.steps.iter().filter(|s| !s.only_looks() && !JUDGED.contains(&s.operation)) {
        let end = step.end.map(|(seq, at_ms, _)| (seq, at_ms));
        all.extend([Some((step.seq, step.at_ms)), end].into_iter().flatten().map(|at| Cause { at, fault: None }));
    }
    all.sort_by_key(|c| c.at.0);
    all
}

/// Where a rest ends in any case: a settling is over, or the harness goes on to something else.
pub(super) fn borders(case: &Case<'_>) -> Vec<Moment> {
    let is_border = |event: &Event| match event {
        Event::Settled(_) => true,
        Event::Phase(phase) => !matches!(phase, Phase::Arrange | Phase::Steps | Phase::Heal | Phase::Settle),
        _ => false,
    };
    case.history.iter().filter(|r| is_border(&r.event)).map(|r| (r.seq, r.at_ms)).collect()
}

/// Whether the world was at rest at `at`, and had been for `window_ms`; `crash` is the fault that ends the rest.
pub(super) fn is_at_rest(
    case: &Case<'_>,
    causes: &[Cause<'_>],
    at: Moment,
    window_ms: f64,
    crash: Option<&str>,
) -> bool {
    let since = at.1 - window_ms;
    let within = |m: Moment| m.0 < at.0 && m.1 > since;
    let caused = causes.iter().any(|c| within(c.at) && (c.fault.is_none() || c.fault != crash));
    let written = (0..case.versions().len()).any(|i| within(moment(case, i)) && is_news(case, i));
    let begin = case.history.iter().find(|r| r.at_ms > since).map_or(at.0, |r| r.seq);
    let lasts = case.faults.iter().any(|f| f.lasts_at(begin) || f.lasts_at(at.0));
    if caused || written || lasts || is_writing(case, at.0) {
        return false;
    }
    let world = case.world_before(at.0);
    let going = world.live().any(|l| l.object.is_terminating() && l.object.namespace().is_some());
    converges::all_ready(case, &world)
        && !going
        && world.predicted_collections().is_empty()
        && has_heard(case, at.0)
        && has_healed(case, at.0)
}

/// When the last version before `at` that is news came.
pub(super) fn last_news(case: &Case<'_>, at: Moment) -> Option<f64> {
    let before = (0..case.versions().len()).rev().find(|i| case.version(*i).seq < at.0 && is_news(case, *i));
    before.map(|i| case.version(i).at_ms)
}

/// Whether the version at `index` is a change in this run's world: no heartbeat, no touch, nothing cluster-scoped that
/// may be another run's.
fn is_news(case: &Case<'_>, index: usize) -> bool {
    let version = &case.version(index).version;
    let of_this_run = version.object.namespace().is_some()
        || case.is_operators(index)
        || version.object.uid().is_some_and(|u| case.tie(&u).is_some());
    version.kind != VersionType::Found
        && of_this_run
        && !is_heartbeat(&version.resource, &version.object)
        && !is_operators_own_pod(case, index)
        && !is_touch(case, index)
}

/// Whether it is what an operator inside the cluster runs in: a restart shows there.
fn is_operators_own_pod(case: &Case<'_>, index: usize) -> bool {
    let version = &case.version(index).version;
    let runs = matches!(version.resource.resource.as_str(), "pods" | "replicasets" | "deployments");
    runs && version.object.namespace() == Some(case.plan.operator_namespace.as_str()) && !case.is_operators(index)
}

/// Whether the harness touched the object, or took a touch away again, and nothing else happened to it.
fn is_touch(case: &Case<'_>, index: usize) -> bool {
    let seen = case.version(index);
    let ours = case.author(index).is_some_and(|w| w.actor.is_ours());
    let only = |before: usize| {
        let all = diff::changes(&case.version(before).version.object, &seen.version.object);
        all.iter().all(|c| c.is_only(TOUCH))
    };
    ours && seen.version.kind == VersionType::Modified && seen.before.is_some_and(only)
}

/// Whether a write of the operator is under way just before `seq`, or failed in a way that may pass, with no success
/// since: a process that begins anew tries it again.
fn is_writing(case: &Case<'_>, seq: u64) -> bool {
    let mut open = BTreeMap::new();
    let operators = |x: &&Exchange<'_>| x.seq < seq && x.request.actor.is_operator() && !x.is_routine();
    for x in case.exchanges.values().filter(operators) {
        let info = &x.request.info;
        if info.verb.is_write() && !info.stores_nothing() {
            let answered = x.answer.is_some_and(|(at, _)| at < seq);
            let passing = x.failure().is_some_and(|f| f.is_transient());
            open.insert((info.resource_path(), info.namespace.clone(), info.name.clone()), !answered || passing);
        }
    }
    open.values().any(|open| *open)
}

/// Whether the operator has had an occasion to act on whatever changed around it, by the scenario's doing or on what it
/// made itself: the change was delivered, or it got or asked for something later.
fn has_heard(case: &Case<'_>, seq: u64) -> bool {
    let asks = |x: &&Exchange<'_>| {
        x.seq < seq && x.request.actor.is_operator() && !x.is_routine() && x.request.info.verb != Verb::Watch
    };
    let asked = case.exchanges.values().filter(asks).map(|x| x.seq).max();
    let last = asked.max(case.streams.last_delivery(seq));
    let unheard = |i: usize| {
        let version = &case.version(i).version;
        let uid = version.object.uid();
        let delivered = uid.and_then(|u| case.streams.delivery(&u, case.version(i).moment(), seq)).is_some();
        let concerns = is_its_own(case, i) || case.author(i).is_none_or(|w| w.actor.is_ours());
        concerns && !case.is_operators(i) && Some(case.version(i).seq) > last && !delivered
    };
    !before(case, seq).any(unheard)
}

/// Whether the operator has written since whatever of its own somebody else changed or deleted: a process that begins
/// anew mends what the one before it did not see.
fn has_healed(case: &Case<'_>, seq: u64) -> bool {
    let mut open: BTreeSet<Key> = BTreeSet::new();
    for i in before(case, seq) {
        let version = &case.version(i).version;
        let key = key(&version.resource, &version.object);
        if case.is_operators(i) {
            open.remove(&key);
        } else if is_its_own(case, i) && case.author(i).is_none_or(|w| disturbs(&w.actor)) {
            open.insert(key);
        }
    }
    open.is_empty()
}

/// Whether the version at `index` is of an object that the operator made.
fn is_its_own(case: &Case<'_>, index: usize) -> bool {
    let life = case.version(index).version.object.uid().and_then(|u| case.objects.get(&u));
    life.is_some_and(|l| case.is_operators(l.first()))
}

/// Built-in controllers and the kubelet's stand-in do their part.
fn disturbs(actor: &Actor) -> bool {
    actor.is_ours() && actor != &Actor::kubelet_stub()
}

fn before<'c>(case: &'c Case<'_>, seq: u64) -> impl Iterator<Item = usize> + 'c {
    (0..case.versions().len()).filter(move |i| case.version(*i).seq < seq && is_news(case, *i))
}

fn moment(case: &Case<'_>, index: usize) -> Moment {
    let seen = case.version(index);
    (seen.seq, seen.at_ms)
}
