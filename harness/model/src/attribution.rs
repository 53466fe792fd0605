//! Who made which object version: exchanges of the proxy joined with versions of the witness.
//!
//! One exchange maps to none, one or many versions. Most answers name their version by uid and resourceVersion; what does
//! not (a DELETE, a binding, an eviction, a removed last finalizer, an answer that never came) is joined by uid or name
//! within the exchange's interval. Two claims on one version are ambiguous, and nobody is blamed.

use crate::{
    Actor, Meta, RequestId, RequestInfo, Revision, Uid, Verb,
    history::{Answer, AnswerObject, Event, Record, Request, Version, VersionType},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Who made a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody whose requests the proxy saw (the API server itself, or a controller beside the proxy).
    Nobody,
    /// This exchange.
    By(RequestId),
    /// Several exchanges could have; nobody is blamed.
    Ambiguous(Vec<RequestId>),
}

/// A write and what is known of it.
#[derive(Clone, Debug)]
pub struct Write {
    /// Its number.
    pub id: RequestId,
    /// Who.
    pub actor: Actor,
    /// What.
    pub info: RequestInfo,
    /// The resourceVersion in the request.
    pub request_revision: Option<Revision>,
    /// Arrival.
    pub sent_seq: u64,
    /// Arrival, in milliseconds.
    pub sent_ms: f64,
    /// The answer and its place; none while upstream.
    pub answer: Option<(u64, Answer)>,
}

/// A version's place in the history and what attribution needs of it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its record's place.
    pub seq: u64,
    /// When it was seen, in milliseconds.
    pub at_ms: f64,
    /// The version.
    pub version: Version,
    /// Its predecessor under the same uid.
    pub before: Option<usize>,
}

/// All writes and versions of a history, joined.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    writes: BTreeMap<RequestId, Write>,
    versions: Vec<Seen>,
    exact: BTreeMap<(Uid, Revision), Vec<RequestId>>,
    latest: BTreeMap<Uid, usize>,
}

impl Ledger {
    /// Goes on by one record.
    pub fn record(&mut self, record: &Record) {
        match &record.event {
            Event::Request(request) if !request.info.stores_nothing() => self.request(record, request),
            Event::Answer(answer) => self.answer(record.seq, answer),
            Event::Version(version) => {
                let uid = version.object.uid();
                let before = uid.as_ref().and_then(|u| self.latest.get(u)).copied();
                if let Some(uid) = uid {
                    self.latest.insert(uid, self.versions.len());
                }
                self.versions.push(Seen { seq: record.seq, at_ms: record.at_ms, version: version.clone(), before });
            }
            _ => {}
        }
    }

    /// All versions, in order.
    pub fn versions(&self) -> &[Seen] {
        &self.versions
    }

    /// The write with this number.
    pub fn write(&self, id: RequestId) -> Option<&Write> {
        self.writes.get(&id)
    }

    /// All writes, in order of arrival.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.writes.values()
    }

    /// Who made the version at `index`.
    pub fn claim(&self, index: usize) -> Claim {
        let seen = &self.versions[index];
        if seen.version.kind == VersionType::Found {
            return Claim::Nobody;
        }
        let mut claims = self.exact_claims(seen);
        if claims.is_empty() {
            claims = self.loose_claims(seen);
        }
        match claims.as_slice() {
            [] => Claim::Nobody,
            [one] => Claim::By(*one),
            _ => Claim::Ambiguous(claims),
        }
    }

    /// The actor that made the version at `index`, where one did.
    pub fn author(&self, index: usize) -> Option<&Write> {
        match self.claim(index) {
            Claim::By(id) => self.writes.get(&id),
            // Several exchanges of one actor: that actor it was.
            Claim::Ambiguous(ids) => {
                let mut writes = ids.iter().filter_map(|id| self.writes.get(id));
                let first = writes.next()?;
                writes.all(|w| w.actor == first.actor).then_some(first)
            }
            Claim::Nobody => None,
        }
    }

    fn request(&mut self, record: &Record, request: &Request) {
        let write = Write {
            id: request.id,
            actor: request.actor.clone(),
            info: request.info.clone(),
            request_revision: request.resource_version.as_ref().and_then(|r| r.parse().ok()).map(Revision),
            sent_seq: record.seq,
            sent_ms: record.at_ms,
            answer: None,
        };
        self.writes.insert(request.id, write);
    }

    fn answer(&mut self, seq: u64, answer: &Answer) {
        let Some(write) = self.writes.get_mut(&answer.id) else { return };
        if let (Some(200..=299), Some(AnswerObject { uid: Some(uid), revision: Some(revision), .. })) =
            (answer.status, &answer.object)
        {
            self.exact.entry((uid.clone(), *revision)).or_default().push(answer.id);
        }
        write.answer = Some((seq, answer.clone()));
    }

    /// Claims by uid and resourceVersion. A no-op write is answered with somebody else's version: it carries that
    /// resourceVersion itself, or it was sent after another answer had shown the version already.
    fn exact_claims(&self, seen: &Seen) -> Vec<RequestId> {
        let Some(uid) = seen.version.object.uid() else { return Vec::new() };
        let Some(ids) = self.exact.get(&(uid, seen.version.revision)) else { return Vec::new() };
        let writes: Vec<&Write> = ids.iter().filter_map(|id| self.writes.get(id)).collect();
        let first_answer = writes.iter().filter_map(|w| w.answer.as_ref()).map(|(seq, _)| *seq).min().unwrap_or(0);
        let made_it = |w: &&&Write| {
            let no_op = w.request_revision == Some(seen.version.revision) || w.sent_seq > first_answer;
            // Taking away the last finalizer is answered with the old version; what it made is the deletion.
            let deletion = w.took_last_finalizer() && seen.version.kind != VersionType::Deleted;
            let still_held = deletion && !seen.version.object.finalizers().is_empty();
            !no_op && !still_held
        };
        writes.iter().filter(made_it).map(|w| w.id).collect()
    }

    /// Claims by uid or name within the exchange's interval, for answers that name no version.
    fn loose_claims(&self, seen: &Seen) -> Vec<RequestId> {
        let could = |w: &&Write| self.could_have(w, seen);
        let mut certain: Vec<&Write> = self.writes.values().filter(could).collect();
        if certain.iter().any(|w| w.answer.is_some()) {
            // An answered exchange beats one whose outcome is not known.
            certain.retain(|w| w.answer.as_ref().is_some_and(|(_, a)| a.status.is_some()));
        }
        let by_name = |w: &&&Write| w.info.verb != Verb::DeleteCollection;
        if certain.iter().any(|w| by_name(&w)) {
            certain.retain(|w| by_name(&w));
        }
        // Each of several deletions by uid can have made at most one version; the first in time did.
        if seen.version.kind == VersionType::Deleted && certain.iter().all(|w| w.info.verb == Verb::Delete) {
            let happened_before = |a: &Write, b: &Write| a.answer.as_ref().is_some_and(|(seq, _)| *seq < b.sent_seq);
            let all = certain.clone();
            certain.retain(|w| !all.iter().any(|other| other.id != w.id && happened_before(other, w)));
        }
        certain.iter().map(|w| w.id).collect()
    }

    fn could_have(&self, w: &Write, seen: &Seen) -> bool {
        let version = &seen.version;
        if w.sent_seq > seen.seq || w.info.resource.as_ref() != Some(&version.resource) {
            return false;
        }
        if version.object.namespace() != w.info.namespace.as_deref() && version.object.namespace().is_some() {
            return false;
        }
        let same_name = w.info.name.as_deref() == version.object.name();
        let before = seen.before.map(|i| &self.versions[i].version.object);
        let began_to_terminate = version.object.is_terminating() && !before.is_some_and(Meta::is_terminating);
        let ends = version.kind == VersionType::Deleted;
        match &w.answer {
            // The answer has not come or never will: anything it asked for may have happened.
            None => same_name && is_plausible(w, seen),
            Some((_, a)) if a.status.is_none() => same_name && is_plausible(w, seen),
            Some((_, a)) if !a.status.is_some_and(|s| (200..300).contains(&s)) => false,
            Some((_, a)) => {
                let object = a.object.as_ref();
                let same_uid = object.is_some_and(|o| o.uid.is_some() && o.uid == version.object.uid());
                match (w.info.verb, w.info.subresource.as_deref()) {
                    // An object in the answer names its version exactly: a graceful deletion only marks it.
                    (Verb::Delete, None) => ends && same_uid && object.is_some_and(|o| o.revision.is_none()),
                    (Verb::Patch | Verb::Update, _) => ends && same_uid && w.took_last_finalizer(),
                    (Verb::DeleteCollection, None) => ends || began_to_terminate,
                    (Verb::Create, Some("binding")) => same_name && newly(before, &version.object, |o| o["spec"]["nodeName"].is_string()),
                    (Verb::Create, Some("eviction")) => same_name && (ends || began_to_terminate || is_disruption(before, &version.object)),
                    _ => false,
                }
            }
        }
    }
}

/// Whether an exchange of unknown outcome fits the kind of change.
fn is_plausible(w: &Write, seen: &Seen) -> bool {
    // What somebody else's answer has claimed exactly never comes here.
    match (w.info.verb, seen.version.kind) {
        (Verb::Create, VersionType::Added) => w.info.subresource.is_none(),
        (Verb::Update | Verb::Patch, VersionType::Modified) => true,
        // An apply or the removal of a finalizer.
        (Verb::Patch, VersionType::Added) | (Verb::Update | Verb::Patch, VersionType::Deleted) => true,
        (Verb::Delete, VersionType::Deleted) => true,
        (Verb::Delete, VersionType::Modified) => seen.version.object.is_terminating(),
        _ => false,
    }
}

impl Write {
    /// Whether the answer shows an object that is terminating and has no finalizer left: the write ended it.
    fn took_last_finalizer(&self) -> bool {
        let object = self.answer.as_ref().and_then(|(_, a)| a.object.as_ref());
        matches!(self.info.verb, Verb::Patch | Verb::Update) && object.is_some_and(|o| o.terminating && !o.finalizers)
    }
}

fn newly(before: Option<&Value>, now: &Value, is: impl Fn(&Value) -> bool) -> bool {
    is(now) && !before.is_some_and(is)
}

/// An eviction first writes the condition `DisruptionTarget`, then deletes.
fn is_disruption(before: Option<&Value>, now: &Value) -> bool {
    newly(before, now, |o| {
        let conditions = o["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|c| c["type"] == "DisruptionTarget" && c["status"] == "True")
    })
}

#[cfg(test)]
mod tests;
