//! What a run is meant to get: `NAME.expect.yaml` beside a scenario, for specimens and lessons.

use crate::{finding::FindingClass, verdict::VerdictKind};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An expect file: keyed by variant, `default` without variants.
pub type ExpectFile = IndexMap<String, Vec<Expect>>;

/// What one run is meant to get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expect {
    /// Only for these matrix values; the first entry that applies counts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub when: IndexMap<String, Value>,
    /// The verdict.
    pub verdict: VerdictKind,
    /// Each must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ExpectedFinding>,
    /// Whether further violations are a mismatch; default true. Warnings and notes never are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// Invariants that must hold although the run fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
}

/// A finding that must be there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ExpectedFinding {
    /// The invariant's name.
    pub invariant: String,
    /// The object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ExpectedObject>,
    /// The fault that it is blamed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Or the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FindingClass>,
    /// Or: a consequence of the expected finding with this index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<usize>,
    /// Words that the message must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An object in an expectation; names with globs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ExpectedObject {
    /// Kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name, with globs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
