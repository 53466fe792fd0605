//! One run as judging sees it: a read-only view over plan and history, built once.

mod attempt;
mod exchange;
mod fault;
mod object;
mod phase;
mod process;
mod step;
mod stream;
mod subject;
mod tie;

pub(crate) use attempt::Attempts;
pub(crate) use exchange::{Exchange, Failure};
pub(crate) use fault::{FaultLife, Firing};
pub(crate) use object::Life;
pub(crate) use phase::Phases;
pub(crate) use process::{End, Processes, Restart};
pub(crate) use step::{Ending, StepLife};
pub(crate) use stream::Streams;
pub(crate) use subject::Subject;
pub(crate) use tie::{Tie, TieBy, is_token};

use spiritlevel_model::{
    Actor, RequestId, ResourceKey, Uid,
    attribution::{Ledger, Seen, Write},
    fault::Legality,
    history::{Epoch, Event, KindInfo, Record},
    plan::Plan,
    world::World,
};
use std::collections::BTreeMap;

/// A run.
pub(crate) struct Case<'a> {
    /// What was to be done.
    pub(crate) plan: &'a Plan,
    /// What happened.
    pub(crate) history: &'a [Record],
    /// Phases and how their settling ended.
    pub(crate) phases: Phases,
    /// Requests with answer and reply, by number.
    pub(crate) exchanges: BTreeMap<RequestId, Exchange<'a>>,
    /// Every object that was ever seen.
    pub(crate) objects: BTreeMap<Uid, Life>,
    /// Objects of the subject's kind that a user made.
    pub(crate) subjects: Vec<Subject>,
    /// The declared faults, in order of declaration.
    pub(crate) faults: Vec<FaultLife<'a>>,
    /// The operator's processes.
    pub(crate) processes: Processes,
    /// The scenario's operations, in order.
    pub(crate) steps: Vec<StepLife<'a>>,
    /// Watch streams.
    pub(crate) streams: Streams<'a>,
    kinds: Vec<(u64, &'a [KindInfo])>,
    /// Where the store was put back.
    epochs: Vec<(u64, &'a Epoch)>,
    ledger: Ledger,
    /// Who made each version of the ledger.
    authors: Vec<Option<RequestId>>,
    /// The versions that a request made.
    made: BTreeMap<RequestId, Vec<usize>>,
    /// Which subject each object belongs to, and why.
    ties: BTreeMap<Uid, Tie>,
}

// === impl Case ===

impl<'a> Case<'a> {
    /// Reads a history.
    pub(crate) fn new(plan: &'a Plan, history: &'a [Record]) -> Self {
        let mut ledger = Ledger::default();
        for record in history {
            ledger.record(record);
        }
        let authors: Vec<Option<RequestId>> =
            (0..ledger.versions().len()).map(|i| ledger.author(i).map(|w| w.id)).collect();
        let mut made: BTreeMap<RequestId, Vec<usize>> = BTreeMap::new();
        for (index, id) in authors.iter().enumerate() {
            if let Some(id) = id {
                made.entry(*id).or_default().push(index);
            }
        }
        let kinds = history.iter().filter_map(|r| match &r.event {
            Event::Kinds(kinds) => Some((r.seq, kinds.as_slice())),
            _ => None,
        });
        let epochs = history.iter().filter_map(|r| match &r.event {
            Event::Epoch(epoch) => Some((r.seq, epoch)),
            _ => None,
        });
        let mut case = Self {
            plan,
            history,
            phases: Phases::read(history),
            exchanges: exchange::read(history),
            objects: object::read(ledger.versions()),
            subjects: Vec::new(),
            faults: fault::read(plan, history),
            processes: Processes::read(history),
            steps: step::read(plan, history),
            streams: Streams::read(history),
            kinds: kinds.collect(),
            epochs: epochs.collect(),
            ledger,
            authors,
            made,
            ties: BTreeMap::new(),
        };
        case.subjects = subject::find(&case);
        case.ties = tie::find(&case);
        case
    }

    /// Every object version, in order.
    pub(crate) fn versions(&self) -> &[Seen] {
        self.ledger.versions()
    }

    /// The version at `index`.
    pub(crate) fn version(&self, index: usize) -> &Seen {
        &self.ledger.versions()[index]
    }

    /// The write that made the version at `index`, where exactly one actor can have.
    pub(crate) fn author(&self, index: usize) -> Option<&Write> {
        self.ledger.write(self.authors[index]?)
    }

    /// Whether the operator made the version at `index`.
    pub(crate) fn is_operators(&self, index: usize) -> bool {
        self.author(index).is_some_and(|w| w.actor.is_operator())
    }

    /// The operator's writes, in order of arrival.
    pub(crate) fn operator_writes(&self) -> impl Iterator<Item = &Write> {
        self.ledger.writes().filter(|w| w.actor.is_operator())
    }

    /// The versions that a request made.
    pub(crate) fn made_by(&self, id: RequestId) -> &[usize] {
        self.made.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The kinds that were served at last.
    pub(crate) fn kinds(&self) -> &'a [KindInfo] {
        self.kinds.last().map_or(&[], |(_, kinds)| kinds)
    }

    /// The kind of a resource.
    pub(crate) fn kind_of(&self, resource: &ResourceKey) -> Option<&'a KindInfo> {
        self.kinds().iter().find(|k| k.group == resource.group && k.resource == resource.resource)
    }

    /// The resource of the subjects.
    pub(crate) fn subject_resource(&self) -> Option<ResourceKey> {
        let subject = &self.plan.suite.subject;
        let group = subject.api_version.split_once('/').map_or("", |(group, _)| group);
        let served = self.kinds.iter().flat_map(|(_, kinds)| kinds.iter());
        served.rev().find(|k| k.group == group && k.kind == subject.kind).map(KindInfo::key)
    }

    /// All live objects just before the record `seq`.
    pub(crate) fn world_before(&self, seq: u64) -> World {
        let mut world = World::new(self.kinds().to_vec());
        let mut epoch = 0;
        for seen in self.versions().iter().take_while(|v| v.seq < seq) {
            if seen.epoch > epoch {
                world.begin_epoch();
                epoch = seen.epoch;
            }
            world.apply(&seen.version);
        }
        world
    }

    /// The restore before `seq` that no correct API server could show its clients, unless the scenario gates such.
    pub(crate) fn illegal_restore(&self, seq: u64) -> Option<&'a Epoch> {
        let gated = self.plan.scenario.gate.as_ref().is_some_and(|gate| gate.contains(&Legality::Never));
        let illegal = self.epochs.iter().filter(|(at, epoch)| *at < seq && epoch.legality == Legality::Never);
        illegal.map(|(_, epoch)| *epoch).next_back().filter(|_| !gated)
    }

    /// To which subject an object belongs, and why.
    pub(crate) fn tie(&self, uid: &Uid) -> Option<&Tie> {
        self.ties.get(uid)
    }

    /// The subject with this uid.
    pub(crate) fn subject(&self, uid: &Uid) -> Option<&Subject> {
        self.subjects.iter().find(|s| &s.uid == uid)
    }

    /// The failing requests of the operator before `seq` that never succeeded later, the latest first; those about the
    /// subject only, where there are some.
    pub(crate) fn unanswered(&self, subject: &Subject, seq: u64) -> Vec<Attempts<'_>> {
        attempt::unanswered(self, subject, seq)
    }

    /// Whether a garbage collector's request made the version at `index`.
    pub(crate) fn is_collectors(&self, index: usize) -> bool {
        self.author(index).is_some_and(|w| w.actor == Actor::controller("generic-garbage-collector"))
    }
}
