//! How legal a fault is: whether a correct API server could do this to a client.

use super::{Action, Exchange, Fault, Refuser};
use crate::{RequestInfo, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether a correct API server, network or crash could do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Legality {
    /// To any client.
    Always,
    /// Only to this client, because of its own list and watch options.
    Some,
    /// Not at all: it breaks the API's contract.
    Never,
}

/// A refusal as declared.
struct Refusal<'a> {
    status: u16,
    reason: Option<&'a str>,
    by: Option<Refuser>,
}

/// Every verb, for faults that name none.
const VERBS: [Verb; 9] = [
    Verb::Create,
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Other,
];

impl fmt::Display for Legality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "always legal",
            Self::Some => "legal for this client",
            Self::Never => "never legal",
        })
    }
}

impl Fault {
    /// As far as the declaration tells: to the plainest request that it can mean.
    pub fn legality(&self) -> Legality {
        match &self.action {
            Action::DropEvents { .. }
            | Action::DuplicateEvents { .. }
            | Action::ReplayFromOlder { .. }
            | Action::EmptyList {} => Legality::Never,
            // At best: what the client asks for decides.
            Action::StaleView { .. } => Legality::Some,
            Action::Reject { .. } => {
                let named = self.matches.verbs();
                let verbs = if named.is_empty() { VERBS.as_slice() } else { &named };
                let of = |verb: &Verb| self.refusal().map_or(Legality::Always, |r| r.legality(*verb, None));
                verbs.iter().map(of).min().unwrap_or(Legality::Never)
            }
            Action::Conflict {}
            | Action::Disconnect { .. }
            | Action::Delay { .. }
            | Action::Hold { .. }
            | Action::Crash { .. }
            | Action::Pause { .. }
            | Action::Mark {}
            | Action::Throttle { .. }
            | Action::Goaway {}
            | Action::ExpireToken {}
            | Action::RotateToken { .. }
            | Action::DenyVerb {}
            | Action::DiscoveryFailure { .. }
            | Action::HoldWatchStart { .. }
            | Action::ShortWatch { .. }
            | Action::CloseWatch { .. }
            | Action::WithholdEvents { .. }
            | Action::WithholdBookmarks {}
            | Action::DelayEvents { .. }
            | Action::Partition { .. } => Legality::Always,
        }
    }

    /// To this very request, where that depends on it.
    pub(super) fn legality_to(&self, x: &Exchange<'_>) -> Option<Legality> {
        self.refusal().map(|refusal| refusal.legality(x.info.verb, Some(x)))
    }

    fn refusal(&self) -> Option<Refusal<'_>> {
        match &self.action {
            Action::Reject { status, reason, by, .. } => {
                Some(Refusal { status: *status, reason: reason.as_deref(), by: *by })
            }
            _ => None,
        }
    }
}

// === impl Refusal ===

impl Refusal<'_> {
    /// What depends on the object's state counts as `never`: whether a name is free or an object live is known to the
    /// client as well, and an answer against it is a lie.
    fn legality(&self, verb: Verb, x: Option<&Exchange<'_>>) -> Legality {
        let is = |known: bool| if known { Legality::Always } else { Legality::Never };
        match (self.status, self.by) {
            // A webhook chooses status and reason by itself, and is asked about writes only
            // (`k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go`).
            (400..=500, Some(Refuser::Webhook)) => is(verb.is_write()),
            _ if !self.has_its_reason() => Legality::Never,
            (403, None | Some(Refuser::Rbac)) => Legality::Always,
            // `k8s.io/apiserver/pkg/admission/plugin/resourcequota/admission.go` handles these only.
            (403, Some(Refuser::Quota)) => is(matches!(verb, Verb::Create | Verb::Update | Verb::Patch)),
            (429, Some(Refuser::Budget)) => {
                is(verb == Verb::Create && x.is_none_or(|x| x.info.subresource.as_deref() == Some("eviction")))
            }
            // One of several API servers may not know of a custom resource yet, or still.
            (404, Some(Refuser::Path)) => is(x.is_none_or(|x| is_custom(x.info))),
            (_, Some(_)) => Legality::Never,
            (401 | 429 | 500 | 502 | 503 | 504, None) => Legality::Always,
            // Only a name that the API server made up can be taken without anybody's knowing.
            (409, None) if self.reason == Some("AlreadyExists") => is(x.is_some_and(has_generated_name)),
            (409, None) => is(may_conflict(verb, x)),
            (410, None) => is(may_be_too_old(verb, x)),
            _ => Legality::Never,
        }
    }

    /// Whether the reason is one that the API server gives with this status.
    fn has_its_reason(&self) -> bool {
        let Some(given) = self.reason else { return true };
        let known: &[&str] = match self.status {
            401 => &["Unauthorized"],
            403 => &["Forbidden"],
            404 => &["NotFound"],
            409 => &["Conflict", "AlreadyExists"],
            410 => &["Expired"],
            429 => &["TooManyRequests"],
            500 => &["InternalError", "ServerTimeout"],
            503 => &["ServiceUnavailable"],
            504 => &["Timeout"],
            _ => &[],
        };
        known.contains(&given)
    }
}

fn has_generated_name(x: &Exchange<'_>) -> bool {
    x.info.verb == Verb::Create && x.name().is_none() && x.bodies.generate_name.is_some()
}

/// Whether somebody else's write in between could be the reason. Without a version of its own a request is tried again
/// by the API server until it is through (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`, `Update`).
fn may_conflict(verb: Verb, x: Option<&Exchange<'_>>) -> bool {
    matches!(verb, Verb::Update | Verb::Patch | Verb::Delete) && x.is_none_or(Exchange::can_conflict)
}

/// Whether the request rests on a version that may have been compacted.
fn may_be_too_old(verb: Verb, x: Option<&Exchange<'_>>) -> bool {
    let of = |key: &str| x.and_then(|x| x.info.query.get(key)).map(String::as_str).filter(|v| !v.is_empty());
    match verb {
        Verb::Watch => x.is_none() || of("resourceVersion").is_some_and(|v| v != "0"),
        Verb::List => {
            of("continue").is_some() || of("resourceVersionMatch") == Some("Exact") && of("resourceVersion").is_some()
        }
        _ => false,
    }
}

/// Whether a request is about an API group that a CRD or an aggregated API server may have added.
fn is_custom(info: &RequestInfo) -> bool {
    let group = match &info.resource {
        Some(resource) => resource.group.as_str(),
        None => info.path.strip_prefix("/apis/").and_then(|rest| rest.split('/').next()).unwrap_or_default(),
    };
    group.contains('.') && !group.ends_with(".k8s.io")
}
