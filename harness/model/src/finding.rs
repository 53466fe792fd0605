//! One violated invariant: what, which object, why, which request, which fault, when.

use crate::{ObjectRef, RequestId, fault::Legality};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The invariant's name, `noOrphans`.
    pub invariant: String,
    /// How much it counts.
    pub class: FindingClass,
    /// The object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// What is wrong, in one line that begins with the object.
    pub message: String,
    /// Further lines, each with a key: `created`, `owner`, `status`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Detail>,
    /// Why, in one line.
    pub cause: String,
    /// The fault that fired before it and explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The step that explains it (a restart, a deletion while the operator was down).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Legality of the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legality: Option<Legality>,
    /// The request that did it, or should have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// When, in the history's milliseconds.
    pub at_ms: f64,
}

/// A further line of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// `created`, `owner`, `fault`, …
    pub key: String,
    /// The line.
    pub text: String,
}

/// How much a finding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingClass {
    /// Fails the run.
    Violation,
    /// Only under a fault that breaks the API's contract.
    Robustness,
    /// Not there yet, and still working on it.
    StillTrying,
    /// Stopped on purpose, with a condition that says so.
    StoppedSafe,
    /// Worth knowing.
    Warning,
}
