//! `quiet`: at rest the operator writes nothing, and a restart or an event that tells nothing new is no reason to.

mod disturbed;
mod rest;

use crate::{
    case::Case,
    diff::{self, Segment},
    draft::Draft,
    wording,
};
use serde_json::Value;
use spiritlevel_model::{
    Meta, ObjectRef, RequestId, ResourceKey,
    finding::Finding,
    history::{Phase, Settled, VersionType},
    invariants::QuietSettings,
    world::is_heartbeat,
};
use std::collections::{BTreeMap, BTreeSet};

/// A settling that never came to rest is looked at for this long before its end.
const UNSETTLED_MS: f64 = 10_000.0;
/// In such a window this many writes on one object are still no loop: it may have got ready late.
const LATE_WRITES: usize = 2;
/// While a subject is not ready an operator may report its progress; so many writes on one object are no progress.
const NO_PROGRESS: usize = 10;
/// No-op writes and failures below this number say nothing about a rate.
const FEWEST_FOR_A_RATE: usize = 10;

/// The quiet window before each settling ended, and what follows a disturbance at rest; one finding for each object that
/// was written in it.
pub(crate) fn judge(case: &Case<'_>, settings: QuietSettings) -> Vec<Finding> {
    let mut reported = BTreeSet::new();
    let mut findings = Vec::new();
    for window in windows(case) {
        for (key, writes) in effective(case, &window) {
            let too_many = writes.len() as u64 > settings.max_effective_writes;
            if too_many && (window.settled || is_loop(case, &window, &writes)) && reported.insert(key) {
                findings.push(loop_finding(case, &window, &writes));
            }
        }
        for (key, ids) in without_effect(case, &window) {
            let per_minute = ids.len() as f64 * 60_000.0 / window.length();
            let sustained = ids.len() >= FEWEST_FOR_A_RATE && per_minute > settings.max_no_op_writes_per_minute as f64;
            if sustained && reported.insert(key) {
                findings.push(rate_finding(case, &window, &ids, per_minute));
            }
        }
    }
    findings.extend(disturbed::judge(case, settings, &reported));
    findings
}

/// A stretch of time in which nothing should be written.
struct Window {
    phase: Phase,
    from_seq: u64,
    from_ms: f64,
    to_seq: u64,
    to_ms: f64,
    settled: bool,
    converged: bool,
}

impl Window {
    fn length(&self) -> f64 {
        (self.to_ms - self.from_ms).max(1.0)
    }

    fn holds(&self, seq: u64, at_ms: f64) -> bool {
        seq > self.from_seq && seq < self.to_seq && at_ms >= self.from_ms
    }
}

fn windows(case: &Case<'_>) -> Vec<Window> {
    let window = |(seq, at_ms, settled): &(u64, f64, Settled)| {
        let (from_seq, begin) = case.phases.begin(settled.phase).unwrap_or((0, f64::MIN));
        let length = if settled.settled { settled.window_ms } else { UNSETTLED_MS };
        Window {
            phase: settled.phase,
            from_seq,
            from_ms: (at_ms - length).max(begin),
            to_seq: *seq,
            to_ms: *at_ms,
            settled: settled.settled,
            converged: settled.converged,
        }
    };
    case.phases.settlings().iter().map(window).collect()
}

/// Whether writes in a window that never came to rest are a loop rather than late work: they go on to its end, and a
/// former state comes back, or the object is made anew each time, or they are just too many.
fn is_loop(case: &Case<'_>, window: &Window, writes: &[usize]) -> bool {
    let last = case.version(writes[writes.len() - 1]);
    let goes_on = last.at_ms >= window.to_ms - window.length() / 3.0;
    if writes.len() <= LATE_WRITES || !goes_on {
        return false;
    }
    let object = |i: &usize| &case.version(*i).version.object;
    let lives: BTreeSet<_> = writes.iter().filter_map(|i| object(i).uid()).collect();
    let (earlier, recent) = writes.split_at(writes.len() - 2);
    let comes_back = recent.iter().any(|r| earlier.iter().any(|e| diff::changes(object(e), object(r)).is_empty()));
    window.converged || comes_back || lives.len() > 2 || writes.len() >= NO_PROGRESS
}

/// What is written again and again: over uids, and over generated names.
type Key = (ResourceKey, Option<String>, String);

fn key(resource: &ResourceKey, object: &Value) -> Key {
    let generated = object["metadata"]["generateName"].as_str().map(|stem| format!("{stem}*"));
    let name = generated.unwrap_or_else(|| object.name().unwrap_or_default().to_owned());
    (resource.clone(), object.namespace().map(Into::into), name)
}

/// The operator's versions in the window by object, places in the ledger.
fn effective(case: &Case<'_>, window: &Window) -> BTreeMap<Key, Vec<usize>> {
    let mut by_object: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (index, seen) in case.versions().iter().enumerate() {
        let version = &seen.version;
        if window.holds(seen.seq, seen.at_ms)
            && !is_heartbeat(&version.resource, &version.object)
            && case.is_operators(index)
        {
            by_object.entry(key(&version.resource, &version.object)).or_default().push(index);
        }
    }
    by_object
}

/// The operator's writes in the window that changed nothing, and its failing requests, by what they ask for. Before a
/// subject is ready they are no unrest: applying the same again is how many operators make progress, and `converges`
/// tells of failures.
fn without_effect(case: &Case<'_>, window: &Window) -> BTreeMap<Key, Vec<RequestId>> {
    let mut by_request: BTreeMap<Key, Vec<RequestId>> = BTreeMap::new();
    for x in case.exchanges.values() {
        let info = &x.request.info;
        let (true, Some(resource)) = (window.holds(x.seq, x.at_ms), &info.resource) else { continue };
        if x.is_routine() || !x.request.actor.is_operator() {
            continue;
        }
        let no_op =
            !info.stores_nothing() && x.answered().is_some_and(|s| s < 300) && case.made_by(x.request.id).is_empty();
        if window.converged && (no_op || x.failure().is_some()) {
            let key = (
                resource.clone(),
                info.namespace.clone(),
                format!("{} {}", info.verb, info.name.as_deref().unwrap_or("")),
            );
            by_request.entry(key).or_default().push(x.request.id);
        }
    }
    by_request
}

fn loop_finding(case: &Case<'_>, window: &Window, writes: &[usize]) -> Finding {
    let last = case.version(writes[writes.len() - 1]);
    let first = case.version(writes[0]);
    let ids: Vec<RequestId> = unique(writes.iter().filter_map(|i| case.author(*i)).map(|w| w.id));
    let lives: BTreeSet<_> = writes.iter().filter_map(|i| case.version(*i).version.object.uid()).collect();
    let object = ObjectRef::of(&last.version.object);
    let name = object.as_ref().map(ToString::to_string).unwrap_or_default();
    let n = writes.len();
    let rate = n as f64 * 1000.0 / window.length();
    let message = format!(
        "{name} was written {} by the operator in {} of rest ({rate:.1} a second), {}",
        wording::times(n),
        wording::lasting(window.length()),
        wording::requests(&ids),
    );
    let flips = flips(case, writes);
    let cause = match (&flips[..], lives.len()) {
        (_, 2..) => format!("the object is made and deleted again and again: {} uids", lives.len()),
        ([], _) => "the writes differ in nothing that is kept".into(),
        ([one], _) => format!("{} changes with every write", one.0),
        (many, _) => format!("{} fields change with every write", many.len()),
    };
    let mut draft = Draft::new("quiet", message, cause, (first.seq, first.at_ms)).request(ids.first().copied());
    draft = match &object {
        Some(object) => draft.object(object),
        None => draft,
    };
    for (path, values) in flips.iter().take(5) {
        draft = draft.detail("flips", format!("{path}: {values}"));
    }
    draft.detail("window", window_text(window)).finish(case)
}

fn window_text(window: &Window) -> String {
    let whole = if window.settled { "at rest" } else { "it never came to rest" };
    format!(
        "{} to {} in {}, {whole}",
        wording::at(window.from_ms),
        wording::at(window.to_ms),
        wording::phase(window.phase)
    )
}

/// The fields that change between consecutive versions, with the values of their last change; the most often changed
/// first.
fn flips(case: &Case<'_>, writes: &[usize]) -> Vec<(String, String)> {
    let mut all = changed(case, writes);
    // What changed once did not flip, unless nothing changed more often.
    if all.iter().any(|(_, values)| values.len() > 2) {
        all.retain(|(_, values)| values.len() > 2);
    }
    all.into_iter().map(|(path, values)| (path, values[values.len() - 2..].join(" → "))).collect()
}

/// Every field that changes, with its value before and after each change; the most often changed first.
fn changed(case: &Case<'_>, writes: &[usize]) -> Vec<(String, Vec<String>)> {
    let mut fields: BTreeMap<Vec<Segment>, Vec<String>> = BTreeMap::new();
    for index in writes {
        let seen = case.version(*index);
        let Some(before) = seen.before.filter(|_| seen.version.kind != VersionType::Deleted) else { continue };
        for change in diff::changes(&case.version(before).version.object, &seen.version.object) {
            let values = fields.entry(change.path).or_default();
            let was = diff::value_text(&change.before);
            if values.last() != Some(&was) {
                values.push(was);
            }
            values.push(diff::value_text(&change.after));
        }
    }
    let mut all: Vec<_> = fields.into_iter().collect();
    all.sort_by_key(|(path, values)| (std::cmp::Reverse(values.len()), path.clone()));
    all.into_iter().map(|(path, values)| (diff::path_text(&path), values)).collect()
}

fn rate_finding(case: &Case<'_>, window: &Window, ids: &[RequestId], per_minute: f64) -> Finding {
    let first = &case.exchanges[&ids[0]];
    let failure = first.failure();
    let info = &first.request.info;
    let what = failure.as_ref().map_or_else(|| "changes nothing".into(), |f| format!("fails with {}", f.text()));
    let object = object_of(case, first);
    let name = object.as_ref().map_or_else(|| info.to_string(), ToString::to_string);
    let message = format!(
        "{name}: {info} {what}, {} in {} of rest ({per_minute:.0} a minute)",
        wording::times(ids.len()),
        wording::lasting(window.length()),
    );
    let cause = match failure {
        Some(_) => "a request that fails is sent again and again at rest".into(),
        None => "the operator writes without comparing first".to_owned(),
    };
    let mut draft = Draft::new("quiet", message, cause, (first.seq, first.at_ms)).request(Some(ids[0]));
    if let Some(object) = &object {
        draft = draft.object(object);
    }
    draft.detail("requests", wording::requests(ids)).detail("window", window_text(window)).finish(case)
}

/// The last object that lived at the request's place.
fn object_of(case: &Case<'_>, x: &crate::case::Exchange<'_>) -> Option<ObjectRef> {
    let info = &x.request.info;
    let fits = |l: &&crate::case::Life| {
        info.resource.as_ref() == Some(&l.resource)
            && info.name.as_ref() == Some(&l.object.name)
            && l.object.namespace.as_deref().is_none_or(|n| info.namespace.as_deref() == Some(n))
    };
    case.objects.values().filter(fits).max_by_key(|l| l.first()).map(|l| l.object.clone())
}

fn unique(ids: impl Iterator<Item = RequestId>) -> Vec<RequestId> {
    ids.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests;
