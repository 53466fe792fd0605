//! Requests with what became of them.

use spiritlevel_model::{
    RequestId, Verb,
    history::{Answer, Event, Record, Reply, ReplyOutcome, Request},
};
use std::collections::BTreeMap;

/// A request, its answer and its reply.
#[derive(Clone, Debug)]
pub(crate) struct Exchange<'a> {
    /// The request.
    pub(crate) request: &'a Request,
    /// Place of its arrival.
    pub(crate) seq: u64,
    /// Its arrival, in milliseconds.
    pub(crate) at_ms: f64,
    /// What the API server answered, and the place of that.
    pub(crate) answer: Option<(u64, &'a Answer)>,
    /// What the client got.
    pub(crate) reply: Option<&'a Reply>,
}

/// How a request failed in the client's eyes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Failure {
    /// HTTP status; none for a broken connection.
    pub(crate) status: Option<u16>,
    /// The reason of the `Status`, where the API server said it.
    pub(crate) reason: Option<String>,
    /// Whether a fault made it.
    pub(crate) forged: bool,
}

/// All exchanges of a history.
pub(super) fn read(history: &[Record]) -> BTreeMap<RequestId, Exchange<'_>> {
    let mut all: BTreeMap<RequestId, Exchange<'_>> = BTreeMap::new();
    for record in history {
        match &record.event {
            Event::Request(request) => {
                let x = Exchange { request, seq: record.seq, at_ms: record.at_ms, answer: None, reply: None };
                all.insert(request.id, x);
            }
            Event::Answer(answer) => {
                if let Some(x) = all.get_mut(&answer.id) {
                    x.answer = Some((record.seq, answer));
                }
            }
            Event::Reply(reply) => {
                if let Some(x) = all.get_mut(&reply.id) {
                    x.reply = Some(reply);
                }
            }
            _ => {}
        }
    }
    all
}

// === impl Exchange ===

impl Exchange<'_> {
    /// The status that the API server answered with.
    pub(crate) fn answered(&self) -> Option<u16> {
        self.answer.and_then(|(_, a)| a.status)
    }

    /// How it failed in the client's eyes; none when it succeeded, is under way, or was given up by the client. A read
    /// that finds nothing has not failed.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let real = self.answer.map(|(_, a)| a);
        let by_fault = self.reply.is_some_and(|r| r.fault.is_some());
        let (status, forged) = match self.reply.map(|r| &r.outcome) {
            Some(ReplyOutcome::Delivered(status)) => (Some(*status), false),
            Some(ReplyOutcome::Forged(status)) => (Some(*status), true),
            Some(ReplyOutcome::Broken) => (None, by_fault),
            Some(ReplyOutcome::Gone) => return None,
            None => (Some(real?.status?), false),
        };
        let expected = status == Some(404) && !self.request.info.verb.is_write() || status == Some(410);
        if expected || status.is_some_and(|s| s < 400) {
            return None;
        }
        let reason = real.filter(|_| !forged).and_then(|a| a.reason.clone());
        Some(Failure { status, reason, forged })
    }

    /// Whether it is a matter of routine, at rest as well: leases, events, questions about permissions.
    pub(crate) fn is_routine(&self) -> bool {
        let resource = self.request.info.resource.as_ref().map(|r| r.resource.as_str());
        self.is_review() || matches!(resource, Some("leases" | "events"))
    }

    /// Whether it only asks for permissions or tokens.
    pub(crate) fn is_review(&self) -> bool {
        let info = &self.request.info;
        let group = info.resource.as_ref().map(|r| r.group.as_str());
        matches!(group, Some("authorization.k8s.io" | "authentication.k8s.io")) || info.verb == Verb::Other
    }
}

// === impl Failure ===

impl Failure {
    /// `409 AlreadyExists`, `broken connection`.
    pub(crate) fn text(&self) -> String {
        let mut text = match (self.status, &self.reason) {
            (None, _) => "broken connection".to_owned(),
            (Some(status), Some(reason)) if !reason.is_empty() => format!("{status} {reason}"),
            (Some(status), _) => status.to_string(),
        };
        if self.forged {
            text.push_str(" by a fault");
        }
        text
    }

    /// Whether the same request may succeed later without anybody changing anything: server errors, throttling,
    /// conflicts, broken connections, and whatever a fault made up.
    pub(crate) fn is_transient(&self) -> bool {
        match self.status {
            None | Some(408 | 429 | 500..=599) => true,
            Some(409) => self.forged || self.reason.as_deref() != Some("AlreadyExists"),
            Some(_) => self.forged,
        }
    }
}
