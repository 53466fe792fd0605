//! One fault's rule: what it matches, how often, and whether it is due.

use super::{Action, CloseWatch, Exchange, Fault, Frame, FrameFate, FrameType, Scope, Stream, glob};
use crate::{
    Actor, RequestInfo, Revision, StreamId, Verb,
    cel::{Cel, CelError},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A fault with its counters.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) fault: Fault,
    body: Option<Cel>,
    diff: Option<Cel>,
    filter: Option<Cel>,
    pub(super) armed: bool,
    /// Whether what `after` waits for has happened.
    pub(super) open: bool,
    /// Matches so far, by actor and, with `of: object`, by object.
    counts: BTreeMap<(Actor, Option<String>), u64>,
    pub(super) fired: u64,
    /// Streams that are kept from their client or delayed as a whole.
    pub(super) streams: BTreeSet<StreamId>,
    /// What the clients of streams were given, for `replayFromOlder`.
    given: BTreeMap<StreamId, Given>,
}

/// What a client was given in a stream.
#[derive(Debug)]
struct Given {
    /// Where the stream began, if the client said so.
    begin: Option<Revision>,
    /// The last revisions, oldest first.
    last: VecDeque<Revision>,
}

impl Rule {
    pub(super) fn new(fault: &Fault) -> Result<Self, CelError> {
        let compile = |text: Option<&str>| text.map(Cel::compile).transpose();
        Ok(Self {
            body: compile(fault.matches.body.as_deref())?,
            diff: compile(fault.matches.diff.as_deref())?,
            filter: compile(fault.action.events().1)?,
            open: fault.matches.after.is_none(),
            fault: fault.clone(),
            armed: false,
            counts: BTreeMap::new(),
            fired: 0,
            streams: BTreeSet::new(),
            given: BTreeMap::new(),
        })
    }

    pub(super) fn arm(&mut self) {
        self.armed = true;
        self.open = self.fault.matches.after.is_none();
    }

    /// Whether it counts and fires now.
    pub(super) fn is_live(&self) -> bool {
        self.armed && self.open
    }

    /// Whether it needs to know what a request would make before it can decide on it.
    pub(super) fn asks_for_outcome(&self, x: &Exchange<'_>) -> bool {
        self.is_live()
            && (self.body.is_some() || self.diff.is_some())
            && x.info.verb.is_write()
            && self.is_possible(x)
            && self.fault.matches.is_request(x)
    }

    pub(super) fn matches_request(&self, x: &Exchange<'_>) -> bool {
        self.is_possible(x)
            && self.fault.matches.is_request(x)
            && self.body.as_ref().is_none_or(|cel| x.bodies.object().is_some_and(|o| holds(cel, &[("object", o)])))
            && self.diff.as_ref().is_none_or(|cel| match (&x.bodies.stored, x.bodies.object()) {
                (Some(old), Some(object)) => holds(cel, &[("old", old), ("object", object)]),
                _ => false,
            })
    }

    /// Whether the action means something for such a request.
    fn is_possible(&self, x: &Exchange<'_>) -> bool {
        let action = &self.fault.action;
        let verbs = action.verbs();
        (verbs.is_empty() || verbs.contains(&x.info.verb))
            && match action {
                Action::Conflict {} => x.can_conflict(),
                Action::DiscoveryFailure { group } => discovers(x.info, group),
                Action::StaleView { kinds, .. } => is_one_of(x.info, kinds) && begins_with_a_list(x.info),
                _ => true,
            }
    }

    pub(super) fn matches_event(&self, f: &Frame<'_>) -> bool {
        let types = self.fault.action.events().0;
        let wanted = if types.is_empty() {
            !matches!(f.kind, FrameType::Bookmark | FrameType::Error)
        } else {
            types.contains(&f.kind)
        };
        let spared = matches!(self.fault.action, Action::WithholdBookmarks {}) && ends_initial_events(f.object);
        wanted
            && !spared
            && self.fault.matches.is_event(f)
            && self.filter.as_ref().is_none_or(|cel| holds(cel, &[("object", f.object)]))
    }

    /// Whether every event of such a stream comes late, whatever it is.
    pub(super) fn is_stale(&self, s: &Stream) -> bool {
        match &self.fault.action {
            Action::StaleView { kinds, .. } => self.fault.matches.is_for(&s.actor) && is_one_of(&s.info, kinds),
            _ => false,
        }
    }

    pub(super) fn count(&mut self, actor: &Actor, object: impl Fn() -> String) -> u64 {
        let per_object = (self.fault.matches.of == Some(Scope::Object)).then(object);
        let count = self.counts.entry((actor.clone(), per_object)).or_default();
        *count += 1;
        *count
    }

    pub(super) fn is_due(&self, ordinal: u64) -> bool {
        let m = &self.fault.matches;
        let once = self.fault.lasts.is_none() && m.every.is_none() && !self.fault.action.lasts();
        let limit = m.times.unwrap_or(if once { 1 } else { u64::MAX });
        let by_ordinal = match m.every {
            Some(every) => ordinal.is_multiple_of(every.max(1)),
            None => ordinal >= m.nth.unwrap_or(1),
        };
        by_ordinal && self.fired < limit
    }

    /// Remembers what a client was given.
    pub(super) fn remember(&mut self, s: &Stream, f: &Frame<'_>) {
        let (Action::ReplayFromOlder { versions }, Some(revision)) = (&self.fault.action, f.revision) else { return };
        let begin = s.info.query.get("resourceVersion").and_then(|r| r.parse().ok()).filter(|r| *r > 0);
        let new = || Given { begin: begin.map(Revision), last: VecDeque::new() };
        let last = &mut self.given.entry(s.id).or_insert_with(new).last;
        if f.kind != FrameType::Bookmark && f.kind != FrameType::Error {
            last.push_back(revision);
            while last.len() > *versions as usize + 1 {
                last.pop_front();
            }
        }
    }

    /// The place from which the last events of a stream come again.
    pub(super) fn older_place(&mut self, stream: StreamId) -> Option<Revision> {
        let Given { begin, last } = self.given.remove(&stream)?;
        let enough =
            matches!(self.fault.action, Action::ReplayFromOlder { versions } if last.len() > versions as usize);
        let oldest = last.front()?;
        // A stream without a known beginning: just before its first event.
        let before = begin.unwrap_or(Revision(oldest.0.saturating_sub(1)));
        Some(if enough { *oldest } else { before })
    }

    pub(super) fn stream_ended(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
        self.given.remove(&stream);
    }

    /// Whether it decides on all that follows in a stream.
    pub(super) fn keeps_stream(&self) -> bool {
        matches!(
            self.fault.action,
            Action::WithholdEvents { .. }
                | Action::DelayEvents { .. }
                | Action::CloseWatch { how: CloseWatch::Stall | CloseWatch::StallConnection }
        )
    }

    pub(super) fn fate(&self) -> FrameFate {
        let fault = self.fault.name.clone();
        match &self.fault.action {
            Action::WithholdEvents { .. } => FrameFate::Withhold { fault },
            Action::DropEvents { .. } | Action::WithholdBookmarks {} => FrameFate::Drop { fault },
            Action::DuplicateEvents { .. } => FrameFate::Duplicate { fault },
            Action::DelayEvents { by, until } => FrameFate::Delay { fault, by: *by, until: until.clone() },
            Action::StaleView { .. } => FrameFate::Delay { fault, by: None, until: None },
            Action::ReplayFromOlder { .. } => FrameFate::CloseAfter { fault, how: CloseWatch::Clean },
            // A stall begins with the event that it was decided on.
            Action::CloseWatch { how: CloseWatch::Stall } => FrameFate::Withhold { fault },
            Action::CloseWatch { how } => FrameFate::CloseAfter { fault, how: *how },
            _ => FrameFate::Deliver,
        }
    }
}

/// An expression that cannot be answered for an object does not match it.
fn holds(cel: &Cel, objects: &[(&str, &Value)]) -> bool {
    cel.test(objects).unwrap_or(false)
}

/// Whether a request asks which groups there are, or what is in this one.
fn discovers(info: &RequestInfo, group: &str) -> bool {
    let parts: Vec<&str> = info.path.split('/').filter(|p| !p.is_empty()).collect();
    match parts.as_slice() {
        ["apis"] => true,
        ["apis", of] | ["apis", of, _] => *of == group,
        _ => false,
    }
}

fn is_one_of(info: &RequestInfo, kinds: &[String]) -> bool {
    let Some(resource) = info.resource.as_ref().map(ToString::to_string) else { return false };
    kinds.is_empty() || kinds.iter().any(|g| glob(g, &resource))
}

/// A watch that goes on from a list; one that would begin with the state cannot be given an older one.
fn begins_with_a_list(info: &RequestInfo) -> bool {
    info.verb == Verb::List || sends_initial_events(info) || !any_version(info)
}

/// Whether a watch is to begin with all objects, as a list would.
pub(super) fn sends_initial_events(info: &RequestInfo) -> bool {
    info.verb == Verb::Watch && info.query.get("sendInitialEvents").is_some_and(|v| v == "true")
}

/// Whether the request leaves it to the API server how old its answer is.
fn any_version(info: &RequestInfo) -> bool {
    info.query.get("resourceVersion").is_none_or(|r| r.is_empty() || r == "0")
}

fn ends_initial_events(object: &Value) -> bool {
    object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}
