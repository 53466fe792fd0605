//! The decisions: pure functions from exchanges and events to what happens to them.
//!
//! Every rule counts every match, also when an earlier rule wins; the first rule that fires wins.

use super::{
    Action, At, CloseWatch, Exchange, Fault, Frame, Legality, Moment, Stream, Then, Until, past::Past, past::stale,
    rule::Rule,
};
use crate::{Period, RequestId, Revision, StreamId, cel::CelError};

/// The faults of one run with their counters.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    past: Past,
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
    /// Parameters of the URL that are set, or taken away, before the request goes on.
    pub rewrite: Vec<(String, Option<String>)>,
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
        /// How legal that is to this very request, where it depends on it.
        legality: Option<Legality>,
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
    /// It goes through twice.
    Duplicate {
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
        let rule = |fault: &Fault| Rule::new(fault).map_err(|e| (fault.name.clone(), e));
        Ok(Self { rules: faults.iter().map(rule).collect::<Result<_, _>>()?, past: Past::default() })
    }

    /// The fault of this name.
    pub fn fault(&self, name: &str) -> Option<&Fault> {
        self.rules.iter().map(|r| &r.fault).find(|f| f.name == name)
    }

    /// From now on the fault counts and fires.
    pub fn arm(&mut self, name: &str) {
        if let Some(rule) = self.rule(name) {
            rule.arm();
        }
    }

    /// What the fault's `after` waits for, while it does.
    pub fn awaited(&self) -> Vec<(String, Until)> {
        let waiting = self.rules.iter().filter(|r| r.armed && !r.open);
        waiting.filter_map(|r| Some((r.fault.name.clone(), r.fault.matches.after.clone()?))).collect()
    }

    /// What the fault's `after` waits for has happened.
    pub fn open(&mut self, name: &str) {
        if let Some(rule) = self.rule(name) {
            rule.open = true;
        }
    }

    /// A moment that can be gone back to: everything up to this revision had happened.
    pub fn set_moment(&mut self, moment: &Moment, revision: Revision) {
        self.past.set_moment(moment, revision);
    }

    /// The moments that some fault goes back to.
    pub fn moments(&self) -> impl Iterator<Item = &Moment> {
        self.rules.iter().filter_map(|r| match &r.fault.action {
            Action::StaleView { at, .. } => Some(at),
            _ => None,
        })
    }

    /// Whether a rule must know what the request would make of the stored object.
    pub fn asks_for_outcome(&self, x: &Exchange<'_>) -> bool {
        self.rules.iter().any(|r| r.asks_for_outcome(x))
    }

    /// The fault fires no more. Returns the streams that it kept from their client, and how they must end now.
    pub fn heal(&mut self, name: &str) -> Vec<(StreamId, CloseWatch)> {
        let Some(rule) = self.rule(name) else { return Vec::new() };
        rule.armed = false;
        let how = match &rule.fault.action {
            Action::WithholdEvents { then: Then::Expire, .. } => CloseWatch::Expire,
            Action::WithholdEvents { then: Then::Error410, .. } => CloseWatch::Error410,
            // A stalled watch is not repaired by heal; the connection simply ends, as a time-out would end it.
            Action::CloseWatch { how: CloseWatch::Stall | CloseWatch::StallConnection } => CloseWatch::Reset,
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
        self.past.expire(fault, stream);
    }

    /// Decides on a request, on its arrival.
    pub fn on_request(&mut self, x: &Exchange<'_>) -> (Option<Firing>, Vec<RuleEvent>) {
        let mut events = Vec::new();
        if let Some(met) = self.past.meet(x.id, x.actor, x.info) {
            return (Some(met), events);
        }
        let mut winner = None;
        for rule in &mut self.rules {
            if !rule.is_live() || rule.fault.action.acts_on_streams() || Self::is_ambient(&rule.fault) {
                continue;
            }
            if !rule.matches_request(x) {
                continue;
            }
            let back = match &rule.fault.action {
                // The moment has not come yet.
                Action::StaleView { at, .. } => match self.past.moment(at) {
                    Some(revision) => Some(stale(x.info, revision)),
                    None => continue,
                },
                Action::ShortWatch { timeout } => {
                    let seconds = timeout.0.as_secs().max(1).to_string();
                    Some((vec![("timeoutSeconds".to_owned(), Some(seconds))], Legality::Always))
                }
                _ => None,
            };
            let object = || format!("{:?} {:?} {:?}", x.info.resource, x.info.namespace, x.name());
            let ordinal = rule.count(x.actor, object);
            events.push(RuleEvent::Matched { fault: rule.fault.name.clone(), request: x.id, ordinal });
            if winner.is_none() && rule.is_due(ordinal) {
                rule.fired += 1;
                let (rewrite, legality) = back.map_or((Vec::new(), None), |(rewrite, l)| (rewrite, Some(l)));
                events.push(RuleEvent::Fired { fault: rule.fault.name.clone(), request: x.id, legality });
                let fault = &rule.fault;
                winner =
                    Some(Firing { rewrite, ..Firing::new(&fault.name, fault.action.clone(), fault.point(), x.id) });
            }
        }
        (winner, events)
    }

    /// Decides on an event of a watch stream.
    pub fn on_frame(&mut self, s: &Stream, f: &Frame<'_>) -> (FrameFate, Vec<RuleEvent>) {
        let mut events = Vec::new();
        let mut fate = FrameFate::Deliver;
        for rule in &mut self.rules {
            if !rule.is_live() {
                continue;
            }
            if rule.is_stale(s) {
                if fate == FrameFate::Deliver && self.past.moment_of(&rule.fault).is_some() {
                    fate = rule.fate();
                }
                continue;
            }
            if !rule.fault.action.acts_on_streams() || !rule.fault.matches.is_stream(s) {
                continue;
            }
            let name = rule.fault.name.clone();
            if rule.streams.contains(&s.id) {
                // The whole stream is kept, bookmarks too.
                if fate == FrameFate::Deliver {
                    fate = rule.fate();
                }
                continue;
            }
            rule.remember(s, f);
            if !rule.matches_event(f) {
                continue;
            }
            let object = || format!("{:?} {:?}", f.namespace, f.name);
            let ordinal = rule.count(&s.actor, object);
            events.push(RuleEvent::Matched { fault: name.clone(), request: s.request, ordinal });
            if fate == FrameFate::Deliver && rule.is_due(ordinal) {
                rule.fired += 1;
                events.push(RuleEvent::Fired { fault: name.clone(), request: s.request, legality: None });
                if rule.keeps_stream() {
                    rule.streams.insert(s.id);
                }
                if let Some(older) = rule.older_place(s.id) {
                    self.past.go_back(&name, s, older);
                }
                fate = rule.fate();
            }
        }
        (fate, events)
    }

    /// A stream is over, whoever ended it.
    pub fn stream_ended(&mut self, stream: StreamId) {
        for rule in &mut self.rules {
            rule.stream_ended(stream);
        }
    }

    fn rule(&mut self, name: &str) -> Option<&mut Rule> {
        self.rules.iter_mut().find(|r| r.fault.name == name)
    }
}

// === impl Firing ===

impl Firing {
    /// One that changes nothing of the request itself.
    pub fn new(fault: &str, action: Action, at: At, request: RequestId) -> Self {
        Self { fault: fault.into(), action, at, request, rewrite: Vec::new() }
    }
}
