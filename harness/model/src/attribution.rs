//! Who made which object version: exchanges of the proxy joined with versions of the witness.
//!
//! One exchange maps to none, one or many versions. Most answers name their version by uid and resourceVersion; what does
//! not (a DELETE, a binding, an eviction, a removed last finalizer, an answer that never came) is joined by uid or name.
//! Revisions put everything that is stored in one order, so each write has a window: what it made is newer than all that
//! was known when it was sent, and older than whatever was sent after its answer. Two claims on one version are
//! ambiguous, and nobody is blamed.
//!
//! A restored store begins another etcd epoch. No write reaches over its border, and no revision is compared over it.

use crate::{
    Actor, Meta, RequestId, RequestInfo, Revision, StreamId, Uid, Verb,
    history::{Answer, Event, Record, Request, Version, VersionType},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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
    /// The uid in the request.
    pub request_uid: Option<Uid>,
    /// The newest revision that was known when it was sent: what it made is newer.
    pub newer_than: Revision,
    /// The etcd epoch in which it was sent, from 0.
    pub epoch: u32,
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
    /// The etcd epoch of its revision, from 0.
    pub epoch: u32,
    /// Its predecessor under the same uid, in the same epoch.
    pub before: Option<usize>,
}

/// A revision and its etcd epoch: ordered over all of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// From 0.
    pub epoch: u32,
    /// Ordered within the epoch.
    pub revision: Revision,
}

/// All writes and versions of a history, joined.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    writes: BTreeMap<RequestId, Write>,
    versions: Vec<Seen>,
    latest: BTreeMap<Uid, usize>,
    epoch: u32,
    /// The streams of this epoch: what others still bring is of an earlier one.
    streams: BTreeSet<StreamId>,
    /// The newest revision known so far, from whatever source.
    newest: Revision,
    /// Successful writes by the version that their answer names.
    named: BTreeMap<(Uid, Moment), Vec<RequestId>>,
    /// Successful writes whose answer does not name all that they made.
    vague: BTreeSet<RequestId>,
    /// Writes of which nobody knows whether they were done: no answer yet, or none ever.
    open: BTreeSet<RequestId>,
    /// For each revision with a proven maker: when the last of all proven makers up to it was sent.
    sent_before: BTreeMap<Moment, u64>,
}

impl Ledger {
    /// Goes on by one record.
    pub fn record(&mut self, record: &Record) {
        match &record.event {
            Event::Request(request) if !stores_nothing(request) => self.request(record, request),
            Event::Answer(answer) => self.answer(record.seq, answer),
            // Without an answer before it, a fault or the client's end kept it from the API server.
            Event::Reply(reply) if self.writes.get(&reply.id).is_some_and(|w| w.answer.is_none()) => {
                self.open.remove(&reply.id);
            }
            Event::StreamOpened(stream) => {
                self.streams.insert(stream.stream);
            }
            Event::Frame(frame) if self.epoch == 0 || self.streams.contains(&frame.stream) => {
                self.learn(frame.revision);
            }
            Event::Epoch(_) => {
                self.epoch += 1;
                self.newest = Revision(0);
                self.latest.clear();
                self.streams.clear();
            }
            Event::Version(version) => self.version(record, version),
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
        let named = self.named_claims(seen);
        let claims = match named.iter().find(|w| w.is_proven()) {
            Some(proven) => vec![*proven],
            None if named.is_empty() => self.joined_claims(seen),
            // An answer may name what an equal write made whose own answer is not known.
            None => named.into_iter().chain(self.open_claims(seen)).collect(),
        };
        match claims.as_slice() {
            [] => Claim::Nobody,
            [one] => Claim::By(one.id),
            several => Claim::Ambiguous(several.iter().map(|w| w.id).collect()),
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

    fn learn(&mut self, revision: Option<Revision>) {
        self.newest = self.newest.max(revision.unwrap_or_default());
    }

    fn request(&mut self, record: &Record, request: &Request) {
        let revision = request.resource_version.as_ref().and_then(|r| r.parse().ok()).map(Revision);
        // 0 asks for nothing: an unconditional update.
        let revision = revision.filter(|r| r.0 > 0);
        // What a client still holds of an earlier epoch says nothing about this one.
        let told = if self.epoch == 0 { revision } else { None };
        let write = Write {
            id: request.id,
            actor: request.actor.clone(),
            info: request.info.clone(),
            request_revision: revision,
            request_uid: request.uid.clone(),
            newer_than: self.newest.max(told.unwrap_or_default()),
            epoch: self.epoch,
            sent_seq: record.seq,
            sent_ms: record.at_ms,
            answer: None,
        };
        self.writes.insert(request.id, write);
        self.open.insert(request.id);
    }

    fn answer(&mut self, seq: u64, answer: &Answer) {
        let object = answer.object.as_ref();
        self.learn(object.and_then(|o| o.revision));
        let Some(write) = self.writes.get_mut(&answer.id) else { return };
        write.answer = Some((seq, answer.clone()));
        if answer.status.is_some() {
            self.open.remove(&answer.id);
        }
        if !write.succeeded() {
            return;
        }
        let (proven, sent, epoch) = (write.is_proven(), write.sent_seq, write.epoch);
        // A deletion without grace is answered with the second of the two versions that it makes.
        let made_more = write.took_last_finalizer() || write.info.verb == Verb::Delete;
        let version = object.and_then(|o| Some((o.uid.clone()?, o.revision?)));
        if version.is_none() || made_more {
            self.vague.insert(answer.id);
        }
        if let Some((uid, revision)) = version {
            let moment = Moment { epoch, revision };
            self.named.entry((uid, moment)).or_default().push(answer.id);
            if proven {
                self.prove(moment, sent);
            }
        }
    }

    /// Keeps `sent_before` rising: answers come nearly in the order of revisions.
    fn prove(&mut self, moment: Moment, sent: u64) {
        let earlier = self.sent_before(moment);
        self.sent_before.insert(moment, sent.max(earlier));
        for later in self.sent_before.range_mut(moment..).map(|(_, at)| at).take_while(|at| **at <= sent) {
            *later = sent;
        }
    }

    /// When the last write was sent that certainly came before `moment`, or made it.
    fn sent_before(&self, moment: Moment) -> u64 {
        self.sent_before.range(..=moment).next_back().map_or(0, |(_, at)| *at)
    }

    fn version(&mut self, record: &Record, version: &Version) {
        self.learn(Some(version.revision));
        let uid = version.object.uid();
        let before = uid.and_then(|uid| self.latest.insert(uid, self.versions.len()));
        let (seq, at_ms, epoch) = (record.seq, record.at_ms, self.epoch);
        self.versions.push(Seen { seq, at_ms, version: version.clone(), epoch, before });
    }

    /// Whether the version falls between the sending and the answer of a write.
    fn in_window(&self, w: &Write, seen: &Seen) -> bool {
        let answered = w.answer.as_ref().filter(|(_, a)| a.status.is_some()).map(|(seq, _)| *seq);
        seen.epoch == w.epoch
            && seen.version.revision > w.newer_than
            && answered.is_none_or(|at| at >= self.sent_before(seen.moment()))
    }

    /// Claims by uid and resourceVersion. A write that changed nothing is answered with somebody else's version; mostly
    /// that one was known before.
    fn named_claims(&self, seen: &Seen) -> Vec<&Write> {
        let version = &seen.version;
        let Some(uid) = version.object.uid() else { return Vec::new() };
        let ids = self.named.get(&(uid, seen.moment())).into_iter().flatten();
        // Taking away the last finalizer is answered with the version that still has it; what it made is the deletion.
        let ended_it = |w: &Write| w.took_last_finalizer() && !version.object.finalizers().is_empty();
        let writes = ids.filter_map(|id| self.writes.get(id));
        writes.filter(|w| self.in_window(w, seen) && !ended_it(w)).collect()
    }

    /// Claims by uid or name, for answers that do not name what they made. Any answer beats none.
    fn joined_claims(&self, seen: &Seen) -> Vec<&Write> {
        let vague = self.vague.iter().filter_map(|id| self.writes.get(id));
        let answered: Vec<&Write> = vague.filter(|w| self.in_window(w, seen) && self.could_have(w, seen)).collect();
        let by_name = |w: &&Write| w.info.verb != Verb::DeleteCollection;
        match answered.iter().copied().filter(by_name).collect::<Vec<_>>() {
            named if !named.is_empty() => named,
            _ if !answered.is_empty() => answered,
            _ => self.open_claims(seen),
        }
    }

    /// Writes of unknown outcome that could have made it.
    fn open_claims(&self, seen: &Seen) -> Vec<&Write> {
        let open = self.open.iter().filter_map(|id| self.writes.get(id));
        open.filter(|w| self.in_window(w, seen) && self.is_plausible(w, seen)).collect()
    }

    fn before(&self, seen: &Seen) -> Option<&Version> {
        seen.before.map(|i| &self.versions[i].version)
    }

    fn could_have(&self, w: &Write, seen: &Seen) -> bool {
        let version = &seen.version;
        let object = &version.object;
        let before = self.before(seen).map(|v| &v.object);
        let named = w.answer.as_ref().and_then(|(_, a)| a.object.as_ref());
        let same_uid = named.is_some_and(|o| o.uid.is_some() && o.uid == object.uid());
        let until_answer = named.and_then(|o| o.revision).is_none_or(|last| version.revision <= last);
        let began_to_terminate = object.is_terminating() && !before.is_some_and(Meta::is_terminating);
        let ends = version.kind == VersionType::Deleted;
        is_about(w, version)
            && match (w.info.verb, w.info.subresource.as_deref()) {
                (Verb::Delete, None) => same_uid && until_answer && (ends || newly(before, object, has_no_grace)),
                // Namespaces have a finalizer in their spec, with a subresource of its own.
                (Verb::Patch | Verb::Update, sub) => {
                    ends && same_uid && (sub == Some("finalize") || !object.finalizers().is_empty())
                }
                (Verb::DeleteCollection, None) => began_to_terminate || self.ended_at_once(w, seen),
                (Verb::Create, Some("binding")) => {
                    is_named(w, version) && newly(before, object, |o| o["spec"]["nodeName"].is_string())
                }
                (Verb::Create, Some("eviction")) => {
                    let marks = began_to_terminate || is_disruption(before, object);
                    is_named(w, version) && (marks || self.ended_at_once(w, seen))
                }
                _ => false,
            }
    }

    /// Whether it is the end of an object that had nothing to wait for, or only what `w` itself wrote down before.
    fn ended_at_once(&self, w: &Write, seen: &Seen) -> bool {
        let free = seen.version.kind == VersionType::Deleted && seen.version.object.finalizers().is_empty();
        let by_itself = |i: usize| has_no_grace(&self.versions[i].version.object) && self.claim(i) == Claim::By(w.id);
        let waits = seen.before.filter(|i| self.versions[*i].version.object.is_terminating());
        free && waits.is_none_or(by_itself)
    }

    /// Whether a write of unknown outcome fits object and kind of change.
    fn is_plausible(&self, w: &Write, seen: &Seen) -> bool {
        let version = &seen.version;
        let based_on = self.before(seen).map(|v| v.revision);
        let fits = w.request_revision.is_none() || based_on.is_none() || based_on == w.request_revision;
        let same_uid = w.request_uid.is_none() || w.request_uid == version.object.uid();
        let kind = match (w.info.verb, version.kind) {
            (Verb::Create, VersionType::Added) => w.info.subresource.is_none(),
            (Verb::Create, _) => matches!(w.info.subresource.as_deref(), Some("binding" | "eviction")),
            // An apply or an update may create; the removal of a finalizer deletes.
            (Verb::Update | Verb::Patch, _) => true,
            (Verb::Delete | Verb::DeleteCollection, VersionType::Deleted) => true,
            (Verb::Delete | Verb::DeleteCollection, VersionType::Modified) => version.object.is_terminating(),
            _ => false,
        };
        kind && fits
            && same_uid
            && is_about(w, version)
            && (is_named(w, version) || w.info.verb == Verb::DeleteCollection)
    }
}

// === impl Seen ===

impl Seen {
    /// Its place in the order of all versions of a history.
    pub fn moment(&self) -> Moment {
        Moment { epoch: self.epoch, revision: self.version.revision }
    }
}

// === impl Write ===

impl Write {
    fn succeeded(&self) -> bool {
        self.answer.as_ref().and_then(|(_, a)| a.status).is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether it certainly made the version that its answer names: it created the object, or it said which version it
    /// changes and was answered with another.
    fn is_proven(&self) -> bool {
        let Some((_, answer)) = self.answer.as_ref().filter(|_| self.succeeded()) else { return false };
        let named = answer.object.as_ref().and_then(|o| o.revision);
        named.is_some_and(|r| r > self.newer_than) && (answer.status == Some(201) || self.request_revision.is_some())
    }

    /// Whether the answer shows an object that is terminating and has no finalizer left: the write may have ended it.
    fn took_last_finalizer(&self) -> bool {
        let object = self.answer.as_ref().and_then(|(_, a)| a.object.as_ref());
        matches!(self.info.verb, Verb::Patch | Verb::Update) && object.is_some_and(|o| o.terminating && !o.finalizers)
    }
}

// === what a request asks for ===

/// A dry run may stand in the body of a DELETE as well.
fn stores_nothing(request: &Request) -> bool {
    let in_body = request.body.as_ref().and_then(|b| b["dryRun"].as_array()).is_some_and(|d| !d.is_empty());
    request.info.stores_nothing() || (in_body && matches!(request.info.verb, Verb::Delete | Verb::DeleteCollection))
}

fn is_about(w: &Write, version: &Version) -> bool {
    let namespace = version.object.namespace();
    w.info.resource.as_ref() == Some(&version.resource)
        && (namespace.is_none() || namespace == w.info.namespace.as_deref())
}

fn is_named(w: &Write, version: &Version) -> bool {
    w.info.name.is_some() && w.info.name.as_deref() == version.object.name()
}

// === what a version shows ===

/// A pod's deletion without grace is first written down, then done.
fn has_no_grace(object: &Value) -> bool {
    object.is_terminating() && object["metadata"]["deletionGracePeriodSeconds"] == 0
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
