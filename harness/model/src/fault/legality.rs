//! How legal a fault is: whether a correct API server could do this to a client.

use super::{Action, Fault};
use crate::Verb;
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
    /// As far as the declaration tells, before the request is known.
    pub fn legality(&self) -> Legality {
        match &self.action {
            Action::DropEvents { .. }
            | Action::DuplicateEvents { .. }
            | Action::ReplayFromOlder { .. }
            | Action::EmptyList {} => Legality::Never,
            // At best: what the client asks for decides.
            Action::StaleView { .. } => Legality::Some,
            Action::Reject { status, reason, .. } => reject(*status, reason.as_deref(), &self.matches.verbs()),
            _ => Legality::Always,
        }
    }
}

/// A table over status, reason and verbs. What depends on the object's state counts as `never`: whether a name is free
/// or an object live is known to the client as well, and an answer against it is a lie.
fn reject(status: u16, reason: Option<&str>, verbs: &[Verb]) -> Legality {
    let only_writes_with_revision =
        !verbs.is_empty() && verbs.iter().all(|v| matches!(v, Verb::Update | Verb::Patch | Verb::Delete));
    match (status, reason) {
        (409, Some("AlreadyExists")) => Legality::Never,
        // A conflict can always have been caused by somebody else's write in between.
        (409, _) if only_writes_with_revision => Legality::Always,
        (409, _) => Legality::Never,
        // Only a watch, or a list that continues or names a version, can be too old.
        (410, _) if verbs == [Verb::Watch] => Legality::Always,
        (404 | 410 | 422 | 405 | 406 | 415, _) => Legality::Never,
        (401 | 403 | 408 | 429 | 500..=599, _) => Legality::Always,
        _ => Legality::Never,
    }
}
