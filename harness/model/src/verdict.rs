//! The verdict of a run, and `verdict.json`, the interface that carries it.

use crate::{RequestId, Seed, fault::Legality, finding::Finding, history::Settled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of `verdict.json`.
pub const VERDICT_VERSION: u32 = 1;

/// The four verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// All invariants hold, every declared fault fired with effect.
    Pass,
    /// An invariant is violated under a fault that gates.
    Fail,
    /// Nothing can be said.
    Inconclusive,
    /// The surroundings failed.
    Error,
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Error => "error",
        })
    }
}

impl VerdictKind {
    /// The process exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Inconclusive => 2,
            Self::Error => 3,
        }
    }

    /// The worst of several: fail, then error, then inconclusive, then pass.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        let rank = |v: Self| match v {
            Self::Fail => 3,
            Self::Error => 2,
            Self::Inconclusive => 1,
            Self::Pass => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

/// `verdict.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// [`VERDICT_VERSION`].
    pub schema_version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The suite's name.
    pub suite: String,
    /// The variant, where the suite has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The matrix values, `replicas=3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// `local`.
    pub provider: String,
    /// The seed.
    pub seed: Seed,
    /// The verdict.
    pub verdict: VerdictKind,
    /// Why, where it is inconclusive or an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// From the beginning of arrange to the judging.
    pub duration_ms: f64,
    /// The declared faults.
    pub faults: Vec<FaultSummary>,
    /// What was found, in order.
    pub findings: Vec<Finding>,
    /// The settle phases.
    pub settle: Vec<Settled>,
    /// The operator's writes.
    pub writes: Writes,
    /// The expectation, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedOutcome>,
}

/// What became of a declared fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultSummary {
    /// Its name.
    pub name: String,
    /// `crash`, `reject`, …
    pub action: String,
    /// How legal.
    pub legality: Legality,
    /// Whether it was armed.
    pub armed: bool,
    /// Requests or events that matched.
    pub matched: u64,
    /// How often it fired.
    pub fired: u64,
    /// What it did, the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The first request on which it fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_request: Option<RequestId>,
    /// When it fired first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at_ms: Option<f64>,
}

/// The operator's writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Writes {
    /// Those that changed something.
    pub effective: u64,
    /// Those that changed nothing.
    pub no_op: u64,
}

/// How a run compares with its expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedOutcome {
    /// The verdict that was expected.
    pub verdict: VerdictKind,
    /// What differs; empty when the run got what was expected.
    pub mismatches: Vec<String>,
}

impl Verdict {
    /// What counts for the exit code: a run that gets what is expected has passed.
    pub fn outcome(&self) -> VerdictKind {
        match &self.expected {
            Some(e) if e.mismatches.is_empty() => VerdictKind::Pass,
            Some(_) if self.verdict == VerdictKind::Error => VerdictKind::Error,
            Some(_) => VerdictKind::Fail,
            None => self.verdict,
        }
    }
}
