//! A scenario: steps, faults, invariants. One story a file.

use crate::{
    Period, Seed,
    fault::{Fault, Legality},
    invariants::Invariants,
    operation::{Operation, Step},
    suite::Named,
};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// `spiritlevel/v1alpha1`.
    pub api_version: String,
    /// `Scenario`.
    pub kind: String,
    /// Its name.
    pub metadata: Named,
    /// The story.
    pub spec: ScenarioSpec,
}

/// The body of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ScenarioSpec {
    /// The story in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Default: derived from the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// What the provider must be able to do; otherwise the scenario is skipped with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<Requires>,
    /// Values for `($name)`.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub bindings: IndexMap<String, Value>,
    /// One run per combination; the values are bindings.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub matrix: IndexMap<String, Vec<Value>>,
    /// Further namespaces, bound as `($namespaces.NAME)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Only these variants of the suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variants: Option<Vec<String>>,
    /// How many replicas of the operator run; default: the suite's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// What goes wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What is done.
    pub steps: Vec<Step>,
    /// The second round; `false` to leave it out.
    pub probe: Probe,
    /// Legalities whose violations fail the run; default always and some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Vec<Legality>>,
    /// Settings of invariants.
    pub invariants: Invariants,
}

impl ScenarioSpec {
    /// Whether it disturbs the control plane itself, so that no other run can share it.
    pub fn disturbs_control_plane(&self) -> bool {
        let operations = |s: &Step| s.attempt.iter().chain(&s.catch).chain(&s.finally).any(disturbs);
        self.steps.iter().any(operations)
    }
}

fn disturbs(operation: &Operation) -> bool {
    operation.action.disturbs_control_plane()
}

/// What a scenario needs from its provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Requires {
    /// Pods that run.
    pub real_pods: bool,
    /// At least so many nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
}

/// The second round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Probe {
    /// `true`: a touch of each subject and a second subject; `false`: none.
    Switch(bool),
    /// The scenario's own.
    Own(OwnProbe),
}

impl Default for Probe {
    fn default() -> Self {
        Self::Switch(true)
    }
}

/// A probe of the scenario's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct OwnProbe {
    /// A merge patch for each subject instead of a touch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// Whether a second subject is made, gets ready, is deleted and collected; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<bool>,
    /// How long; default T of `converges`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Period>,
}
