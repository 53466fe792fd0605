//! The decisions: pure functions from exchanges and events to what happens to them.
//!
//! Every rule counts every match, also when an earlier rule wins; the first rule that fires wins.

use super::{Action, At, CloseWatch, Exchange, Fault, Frame, FrameType, Scope, Stream, Then, Until};
use crate::{
    Actor, Period, RequestId, RequestInfo, ResourceKey, StreamId, Verb,
    cel::{Cel, CelError},
};
use std::collections::{BTreeMap, BTreeSet};

/// The faults of one run with their counters.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    expired: Vec<Expired>,
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    body: Option<Cel>,
    filter: Option<Cel>,
    armed: bool,
    /// Matches so far, by actor and, with `of: object`, by object.
    counts: BTreeMap<(Actor, Option<String>), u64>,
    fired: u64,
    /// Streams that are withheld or delayed as a whole.
    streams: BTreeSet<StreamId>,
}

/// A client whose watches from an old revision must be answered by 410.
#[derive(Debug)]
struct Expired {
    fault: String,
    actor: Actor,
    resource: Option<ResourceKey>,
    namespace: Option<String>,
}

/// A rule that fired on an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    /// The fault's name.
    pub fault: String,
    /// What to do.
    pub action: Action,
    /// At which point.
    pub at: At,
    /// The exchange.
    pub request: RequestId,
}

/// What a rule saw, for the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleEvent {
    /// A request or event matched; the ordinal is counted per actor (or object) from 1.
    Matched {
        /// The fault's name.
        fault: String,
        /// The request, or the request that opened the stream.
        request: RequestId,
        /// Which match this is.
        ordinal: u64,
    },
    /// A fault acts now.
    Fired {
        /// The fault's name.
        fault: String,
        /// The request, or the request that opened the stream.
        request: RequestId,
    },
}

/// What happens to a watch event.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameFate {
    /// It goes through.
    Deliver,
    /// It vanishes.
    Drop {
        /// Because of this fault.
        fault: String,
    },
    /// It and everything after it in this stream vanish, until the fault is healed and the stream ends.
    Withhold {
        /// Because of this fault.
        fault: String,
    },
    /// It and everything after it in this stream wait, order kept.
    Delay {
        /// Because of this fault.
        fault: String,
        /// For this long.
        by: Option<Period>,
        /// Or for this.
        until: Option<Until>,
    },
    /// It goes through, then the stream ends.
    CloseAfter {
        /// Because of this fault.
        fault: String,
        /// In this way.
        how: CloseWatch,
    },
}

impl RuleSet {
    /// All disarmed; an error names the fault whose CEL does not compile.
    pub fn new(faults: &[Fault]) -> Result<Self, (String, CelError)> {
        let rule = |fault: &Fault| {
            let compile = |text: &Option<String>| {
                text.as_deref().map(Cel::compile).transpose().map_err(|e| (fault.name.clone(), e))
            };
            let filter = match &fault.action {
                Action::WithholdEvents { filter, .. } | Action::DropEvents { filter, .. } => compile(filter)?,
                _ => None,
            };
            Ok(Rule {
                body: compile(&fault.matches.body)?,
                filter,
                fault: fault.clone(),
                armed: false,
                counts: BTreeMap::new(),
                fired: 0,
                streams: BTreeSet::new(),
            })
        };
        Ok(Self { rules: faults.iter().map(rule).collect::<Result<_, _>>()?, expired: Vec::new() })
    }

    /// The fault of this name.
    pub fn fault(&self, name: &str) -> Option<&Fault> {
        self.rules.iter().map(|r| &r.fault).find(|f| f.name == name)
    }

    /// From now on the fault counts and fires.
    pub fn arm(&mut self, name: &str) {
        if let Some(rule) = self.rule(name) {
            rule.armed = true;
        }
    }

    /// The fault fires no more. Returns the streams that it kept from their client, and how they must end now.
    pub fn heal(&mut self, name: &str) -> Vec<(StreamId, CloseWatch)> {
        let Some(rule) = self.rule(name) else { return Vec::new() };
        rule.armed = false;
        let how = match &rule.fault.action {
            Action::WithholdEvents { then: Then::Expire, .. } => CloseWatch::Expire,
            Action::WithholdEvents { then: Then::Error410, .. } => CloseWatch::Error410,
            // A stalled watch is not repaired by heal; the connection simply ends, as a time-out would end it.
            Action::CloseWatch { how: CloseWatch::Stall } => CloseWatch::Reset,
            _ => {
                rule.streams.clear();
                return Vec::new();
            }
        };
        std::mem::take(&mut rule.streams).into_iter().map(|s| (s, how)).collect()
    }

    /// The fault fires no more, and what it did stays as it is.
    pub fn disarm(&mut self, name: &str) {
        if let Some(rule) = self.rule(name) {
            rule.armed = false;
        }
    }

    /// Whether the fault is armed.
    pub fn is_armed(&self, name: &str) -> bool {
        self.rules.iter().any(|r| r.fault.name == name && r.armed)
    }

    /// How often the fault fired.
    pub fn fired(&self, name: &str) -> u64 {
        self.rules.iter().find(|r| r.fault.name == name).map_or(0, |r| r.fired)
    }

    /// Counts a firing that was decided outside (an injected `closeWatch`, an ambient `partition`).
    pub fn count_firing(&mut self, name: &str) {
        if let Some(rule) = self.rule(name) {
            rule.fired += 1;
        }
    }

    /// Marks a stream as kept from its client by a fault, so that heal ends it.
    pub fn keep_stream(&mut self, name: &str, stream: StreamId) {
        if let Some(rule) = self.rule(name) {
            rule.streams.insert(stream);
        }
    }

    /// The open streams that a `closeWatch` means when it is injected.
    pub fn streams_to_close(&self, name: &str, open: &[Stream]) -> Vec<StreamId> {
        let Some(rule) = self.rules.iter().find(|r| r.fault.name == name) else { return Vec::new() };
        let limit = rule.fault.matches.times.map_or(usize::MAX, |t| usize::try_from(t).unwrap_or(usize::MAX));
        open.iter().filter(|s| rule.fault.matches.is_stream(s)).map(|s| s.id).take(limit).collect()
    }

    /// Whether this fault needs no exchange to begin: a partition of everything that an actor does.
    pub fn is_ambient(fault: &Fault) -> bool {
        let m = &fault.matches;
        let addressed =
            m.verb.is_some() || m.resource.is_some() || m.name.is_some() || m.nth.is_some() || m.body.is_some();
        matches!(fault.action, Action::Partition { .. }) && !addressed
    }

    /// A stream was ended as expired by `fault`: every watch of the client from its old place gets 410, until it lists.
    pub fn expire(&mut self, fault: &str, stream: &Stream) {
        self.expired.push(Expired {
            fault: fault.into(),
            actor: stream.actor.clone(),
            resource: stream.info.resource.clone(),
            namespace: stream.info.namespace.clone(),
        });
    }

    /// Decides on a request, on its arrival.
    pub fn on_request(&mut self, x: &Exchange<'_>) -> (Option<Firing>, Vec<RuleEvent>) {
        let mut events = Vec::new();
        if let Some(fault) = self.answer_expired(x.actor, x.info) {
            // As kube-apiserver's watch cache says it: 200, and in the stream an ERROR event with a 410 Status
            // (`k8s.io/apiserver/pkg/storage/cacher/cacher.go`, `newErrWatcher`).
            let gone = Action::CloseWatch { how: CloseWatch::Error410 };
            return (Some(Firing { fault, action: gone, at: At::BeforeSend, request: x.id }), events);
        }
        let mut winner = None;
        for rule in &mut self.rules {
            if !rule.armed || rule.fault.action.acts_on_streams() || Self::is_ambient(&rule.fault) {
                continue;
            }
            if !rule.matches_request(x) {
                continue;
            }
            let object = || format!("{:?} {:?} {:?}", x.info.resource, x.info.namespace, x.name());
            let ordinal = rule.count(x.actor, object);
            events.push(RuleEvent::Matched { fault: rule.fault.name.clone(), request: x.id, ordinal });
            if winner.is_none() && rule.is_due(ordinal) {
                rule.fired += 1;
                events.push(RuleEvent::Fired { fault: rule.fault.name.clone(), request: x.id });
                winner = Some(Firing {
                    fault: rule.fault.name.clone(),
                    action: rule.fault.action.clone(),
                    at: rule.fault.point(),
                    request: x.id,
                });
            }
        }
        (winner, events)
    }

    /// Decides on an event of a watch stream.
    pub fn on_frame(&mut self, s: &Stream, f: &Frame<'_>) -> (FrameFate, Vec<RuleEvent>) {
        let mut events = Vec::new();
        let mut fate = FrameFate::Deliver;
        for rule in &mut self.rules {
            if !rule.armed || !rule.fault.action.acts_on_streams() || !rule.fault.matches.is_stream(s) {
                continue;
            }
            let name = rule.fault.name.clone();
            if rule.streams.contains(&s.id) {
                // The whole stream is kept, bookmarks too.
                if fate == FrameFate::Deliver {
                    fate = rule.fate(name);
                }
                continue;
            }
            if !rule.matches_event(f) {
                continue;
            }
            let object = || format!("{:?} {:?}", f.namespace, f.name);
            let ordinal = rule.count(&s.actor, object);
            events.push(RuleEvent::Matched { fault: name.clone(), request: s.request, ordinal });
            if fate == FrameFate::Deliver && rule.is_due(ordinal) {
                rule.fired += 1;
                events.push(RuleEvent::Fired { fault: name.clone(), request: s.request });
                let keeps = matches!(
                    rule.fault.action,
                    Action::WithholdEvents { .. }
                        | Action::DelayEvents { .. }
                        | Action::CloseWatch { how: CloseWatch::Stall }
                );
                if keeps {
                    rule.streams.insert(s.id);
                }
                fate = rule.fate(name);
            }
        }
        (fate, events)
    }

    /// A stream is over, whoever ended it.
    pub fn stream_ended(&mut self, stream: StreamId) {
        for rule in &mut self.rules {
            rule.streams.remove(&stream);
        }
    }

    fn rule(&mut self, name: &str) -> Option<&mut Rule> {
        self.rules.iter_mut().find(|r| r.fault.name == name)
    }

    fn answer_expired(&mut self, actor: &Actor, info: &RequestInfo) -> Option<String> {
        let same = |e: &Expired| e.actor == *actor && e.resource == info.resource && e.namespace == info.namespace;
        let at = self.expired.iter().position(same)?;
        match info.verb {
            // After a list the client has a new place, and 410 would be a lie.
            Verb::List => {
                self.expired.remove(at);
                None
            }
            // Nor does a watch from now on, or one that begins with the state, depend on the old place.
            Verb::Watch if info.query.get("resourceVersion").is_none_or(|r| r.is_empty() || r == "0") => {
                self.expired.remove(at);
                None
            }
            // What is compacted stays so, however often the client asks.
            Verb::Watch => Some(self.expired[at].fault.clone()),
            _ => None,
        }
    }
}

impl Rule {
    fn matches_request(&self, x: &Exchange<'_>) -> bool {
        let possible = match self.fault.action {
            Action::Conflict {} => x.can_conflict(),
            _ => true,
        };
        possible
            && self.fault.matches.is_request(x)
            && self.body.as_ref().is_none_or(|cel| x.bodies.json.as_ref().is_some_and(|object| holds(cel, object)))
    }

    fn matches_event(&self, f: &Frame<'_>) -> bool {
        let types: &[FrameType] = match &self.fault.action {
            Action::WithholdEvents { types, .. } | Action::DropEvents { types, .. } => types,
            _ => &[],
        };
        let wanted = if types.is_empty() {
            !matches!(f.kind, FrameType::Bookmark | FrameType::Error)
        } else {
            types.contains(&f.kind)
        };
        wanted && self.fault.matches.is_event(f) && self.filter.as_ref().is_none_or(|cel| holds(cel, f.object))
    }

    fn count(&mut self, actor: &Actor, object: impl Fn() -> String) -> u64 {
        let per_object = (self.fault.matches.of == Some(Scope::Object)).then(object);
        let count = self.counts.entry((actor.clone(), per_object)).or_default();
        *count += 1;
        *count
    }

    fn is_due(&self, ordinal: u64) -> bool {
        let m = &self.fault.matches;
        let once = self.fault.lasts.is_none() && m.every.is_none();
        let limit = m.times.unwrap_or(if once && !self.keeps_on() { 1 } else { u64::MAX });
        let by_ordinal = match m.every {
            Some(every) => ordinal.is_multiple_of(every.max(1)),
            None => ordinal >= m.nth.unwrap_or(1),
        };
        by_ordinal && self.fired < limit
    }

    /// Withheld and delayed streams stay so until healed; their successors too.
    fn keeps_on(&self) -> bool {
        matches!(self.fault.action, Action::WithholdEvents { .. } | Action::DelayEvents { .. })
    }

    fn fate(&self, fault: String) -> FrameFate {
        match &self.fault.action {
            Action::WithholdEvents { .. } => FrameFate::Withhold { fault },
            Action::DropEvents { .. } => FrameFate::Drop { fault },
            Action::DelayEvents { by, until } => FrameFate::Delay { fault, by: *by, until: until.clone() },
            // A stall begins with the event that it was decided on.
            Action::CloseWatch { how: CloseWatch::Stall } => FrameFate::Withhold { fault },
            Action::CloseWatch { how } => FrameFate::CloseAfter { fault, how: *how },
            _ => FrameFate::Deliver,
        }
    }
}

/// An expression that cannot be answered for an object does not match it.
fn holds(cel: &Cel, object: &serde_json::Value) -> bool {
    cel.test(&[("object", object)]).unwrap_or(false)
}
