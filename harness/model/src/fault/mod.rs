//! Faults as declared: which exchange or stream (`match`), the point in it (`at`), what happens (`do`).

mod action;
mod legality;
mod matching;
mod past;
mod rule;
mod rules;
#[cfg(test)]
mod tests;

pub use action::{Action, CloseWatch, DisconnectAs, Moment, PartitionAs, Signal, Then, Until};
pub use legality::Legality;
pub use matching::{Bodies, Exchange, Frame, FrameType, Match, OneOrMany, Scope, Stream, glob};
pub use rules::{Firing, FrameFate, RuleEvent, RuleSet};

use crate::Period;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fault: `{name, match, at, do, arm, for, gate}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Fault {
    /// How steps, findings and reports speak of it.
    pub name: String,
    /// Which exchange or stream; empty means every one of the operator's.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// The point in the exchange; streams have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
    /// What happens.
    #[serde(rename = "do")]
    pub action: Action,
    /// Whether it waits for an `inject` step.
    #[serde(default)]
    pub arm: Arm,
    /// How long it lasts once it has begun; healed at the latest before judging.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Period>,
    /// Whether violations under this fault fail the run; default: by its legality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
}

/// The point in an exchange at which a fault acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum At {
    /// The server never sees the request.
    BeforeSend,
    /// The server answered, the client knows nothing yet.
    AfterCommit,
    /// The answer has been flushed to the client.
    AfterReply,
}

/// When a fault begins to match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Arm {
    /// From the start of the steps.
    #[default]
    Start,
    /// By an `inject` step.
    Manual,
}

impl Fault {
    /// The point at which it acts, with the action's own default.
    pub fn point(&self) -> At {
        self.at.unwrap_or(match self.action {
            // A crash or pause without a point means: once the write is there.
            Action::Crash { .. } | Action::Pause { .. } | Action::Mark {} => At::AfterCommit,
            _ => At::BeforeSend,
        })
    }
}
