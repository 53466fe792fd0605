//! Requests that the operator makes again and again without success.

use super::{Case, Exchange, Failure, Subject, is_token};
use crate::wording;
use spiritlevel_model::{RequestInfo, Verb};
use std::collections::BTreeMap;

/// The same request, failing every time since it last succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Attempts<'c> {
    /// The failing ones, in order.
    pub(crate) failed: Vec<&'c Exchange<'c>>,
    /// How the last one failed.
    pub(crate) failure: Failure,
}

/// See [`Case::unanswered`].
pub(super) fn unanswered<'c>(case: &'c Case<'_>, subject: &Subject, seq: u64) -> Vec<Attempts<'c>> {
    let mut groups: BTreeMap<Key, Vec<&Exchange<'_>>> = BTreeMap::new();
    let operators = case.exchanges.values().filter(|x| x.seq < seq && x.request.actor.is_operator() && !x.is_review());
    // Nobody waits for an Event: that it cannot be written keeps no subject from getting ready.
    let is_event = |x: &&Exchange<'_>| x.request.info.resource.as_ref().is_some_and(|r| r.resource == "events");
    for x in operators.filter(|x| !is_event(x)) {
        let failed = groups.entry(key(&x.request.info)).or_default();
        if x.failure().is_some() {
            failed.push(x);
        } else if x.answered().is_some_and(|s| s < 300) {
            failed.clear();
        }
    }
    let mut all: Vec<Attempts<'_>> = groups
        .into_values()
        .filter_map(|failed| {
            let failure = failed.last()?.failure()?;
            Some(Attempts { failed, failure })
        })
        .collect();
    all.sort_by_key(|a| std::cmp::Reverse(a.last().seq));
    let about = |a: &Attempts<'_>| {
        let info = &a.last().request.info;
        info.resource == case.subject_resource()
            || info.name.as_ref().is_some_and(|n| is_token(&subject.object.name, n))
    };
    if all.iter().any(about) {
        all.retain(about);
    }
    all
}

type Key = (Verb, String, Option<String>, Option<String>);

fn key(info: &RequestInfo) -> Key {
    (info.verb, info.resource_path(), info.namespace.clone(), info.name.clone())
}

// === impl Attempts ===

impl<'c> Attempts<'c> {
    /// The last attempt.
    pub(crate) fn last(&self) -> &'c Exchange<'c> {
        self.failed.last().expect("a group of attempts has at least one")
    }

    /// How many in a row failed as the last one did.
    pub(crate) fn alike(&self) -> usize {
        self.failed.iter().rev().take_while(|x| x.failure().as_ref() == Some(&self.failure)).count()
    }

    /// `create configmaps a/b failed 14 times (409 AlreadyExists), last at +9.80 s, request 55`.
    pub(crate) fn text(&self) -> String {
        let (last, n) = (self.last(), self.alike());
        let how = format!("{} failed {} ({})", last.request.info, wording::times(n), self.failure.text());
        let since = if n == 1 { "at" } else { "last at" };
        format!("{how}, {since} {}, request {}", wording::at(last.at_ms), last.request.id)
    }

    /// Whether a further attempt can be expected after `end_ms`: what fails may succeed later, the gaps between attempts
    /// grow, and the next one is not overdue.
    pub(crate) fn goes_on_after(&self, end_ms: f64) -> bool {
        let gaps: Vec<f64> = self.failed.windows(2).map(|w| w[1].at_ms - w[0].at_ms).collect();
        let (Some(first), Some(last)) = (gaps.first(), gaps.last()) else { return false };
        let longest = gaps.iter().copied().fold(0.0, f64::max);
        let grows = gaps.len() >= 2 && *last >= first * 1.5 && *last >= longest * 0.5;
        self.failure.is_transient() && grows && end_ms < self.last().at_ms + last * 2.5
    }
}
