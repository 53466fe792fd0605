//! The operator's watch streams and what came through them.

use spiritlevel_model::{
    Actor, ResourceKey, StreamId, Uid,
    attribution::Moment,
    history::{Event, Fate, Record},
};
use std::collections::{BTreeMap, BTreeSet};

/// All streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams<'a> {
    all: BTreeMap<StreamId, Stream<'a>>,
    delivered: BTreeMap<Uid, Vec<Delivery>>,
}

/// One stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream<'a> {
    /// Who watches.
    pub(crate) actor: &'a Actor,
    /// What and where.
    pub(crate) scope: WatchScope,
    /// Place of its beginning.
    pub(crate) opened: u64,
    /// Place, time and cause of its end.
    pub(crate) closed: Option<(u64, f64, Option<&'a str>)>,
}

/// An event that reached the operator.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    seq: u64,
    /// Time.
    pub(crate) at_ms: f64,
    /// Of which version.
    moment: Option<Moment>,
    /// To whom.
    pub(crate) actor: Actor,
}

/// What is watched: resource, and namespace unless all.
pub(crate) type WatchScope = (ResourceKey, Option<String>);

// === impl Streams ===

impl<'a> Streams<'a> {
    pub(super) fn read(history: &'a [Record]) -> Self {
        let mut streams = Self::default();
        let mut epoch = 0;
        for record in history {
            match &record.event {
                Event::Epoch(_) => epoch += 1,
                Event::StreamOpened(o) => {
                    let scope = (o.resource.clone(), o.namespace.clone());
                    let stream = Stream { actor: &o.actor, scope, opened: record.seq, closed: None };
                    streams.all.insert(o.stream, stream);
                }
                Event::StreamClosed(c) => {
                    if let Some(stream) = streams.all.get_mut(&c.stream) {
                        stream.closed = Some((record.seq, record.at_ms, c.fault.as_deref()));
                    }
                }
                Event::Frame(f) if f.fate == Fate::Delivered => {
                    let stream = streams.all.get(&f.stream).filter(|s| s.actor.is_operator());
                    if let (Some(uid), Some(stream)) = (&f.uid, stream) {
                        let (seq, at_ms, actor) = (record.seq, record.at_ms, stream.actor.clone());
                        let moment = f.revision.map(|revision| Moment { epoch, revision });
                        let delivery = Delivery { seq, at_ms, moment, actor };
                        streams.delivered.entry(uid.clone()).or_default().push(delivery);
                    }
                }
                _ => {}
            }
        }
        streams
    }

    /// The operator's streams.
    pub(crate) fn of_operator(&self) -> impl Iterator<Item = &Stream<'a>> {
        self.all.values().filter(|s| s.actor.is_operator())
    }

    /// What any replica watches just before `seq`.
    pub(crate) fn open_at(&self, seq: u64) -> BTreeSet<WatchScope> {
        let open = |s: &&Stream<'_>| s.opened < seq && s.closed.is_none_or(|(closed, ..)| closed >= seq);
        self.of_operator().filter(open).map(|s| s.scope.clone()).collect()
    }

    /// Place of the last event before `seq` that reached the operator, of whatever object.
    pub(crate) fn last_delivery(&self, before: u64) -> Option<u64> {
        self.delivered.values().flatten().map(|d| d.seq).filter(|at| *at < before).max()
    }

    /// The delivery of an object's version, or of a later one.
    pub(crate) fn delivery(&self, uid: &Uid, version: Moment, before: u64) -> Option<&Delivery> {
        let fits = |d: &&Delivery| d.seq < before && d.moment.is_some_and(|m| m >= version);
        self.delivered.get(uid)?.iter().find(fits)
    }
}
