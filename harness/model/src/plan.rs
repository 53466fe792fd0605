//! A plan: a scenario with every choice made. Replayable.

use crate::{
    Seed,
    expect::Expect,
    invariants::Effective,
    scenario::ScenarioSpec,
    suite::{ProcessSpec, SuiteSpec},
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;

/// Version of `plan.yaml`.
pub const PLAN_VERSION: u32 = 1;

/// What will be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub schema_version: u32,
    /// The suite's name.
    pub suite_name: String,
    /// The scenario's name.
    pub scenario_name: String,
    /// The variant, where the suite has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The matrix values of this run.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub matrix: IndexMap<String, Value>,
    /// The seed.
    pub seed: Seed,
    /// Which repetition, from 0.
    #[serde(default)]
    pub repetition: u32,
    /// The suite's folder, relative to where the harness was started.
    pub suite_dir: String,
    /// The scenario's folder, likewise: relative files start here.
    pub scenario_dir: String,
    /// The namespace of the subjects.
    pub namespace: String,
    /// The operator's own namespace: its ServiceAccount and leases.
    pub operator_namespace: String,
    /// Every binding that is known before the run.
    pub bindings: IndexMap<String, Value>,
    /// The suite with the variant applied and bindings put in.
    pub suite: SuiteSpec,
    /// The operator's process with the variant applied.
    pub process: ProcessSpec,
    /// The scenario with bindings put in; what a step's outputs decide stays open until then.
    pub scenario: ScenarioSpec,
    /// The invariants' settings.
    pub invariants: Effective,
    /// What the run is meant to get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

impl Plan {
    /// `suite/scenario`, with variant and matrix values: how reports speak of the run.
    pub fn title(&self) -> String {
        let mut title = format!("{}/{}", self.suite_name, self.scenario_name);
        if let Some(variant) = &self.variant {
            let _ = write!(title, " [{variant}]");
        }
        if let Some(matrix) = self.matrix_text() {
            let _ = write!(title, " ({matrix})");
        }
        title
    }

    /// `replicas=3, size=1Gi`.
    pub fn matrix_text(&self) -> Option<String> {
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), Into::into);
        let all: Vec<String> = self.matrix.iter().map(|(k, v)| format!("{k}={}", text(v))).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}
