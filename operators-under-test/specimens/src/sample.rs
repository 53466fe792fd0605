//! The one custom resource of all specimens: `Sample`, `specimens.example.com/v1`.

use kube::{CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// What a Sample asks for.
#[derive(Clone, Debug, Deserialize, Serialize, CustomResource, JsonSchema)]
#[kube(
    group = "specimens.example.com",
    version = "v1",
    kind = "Sample",
    namespaced,
    status = "SampleStatus",
    doc = "What every specimen serves: a text to be kept in children.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SampleSpec {
    /// The content of every child.
    #[serde(default)]
    pub(crate) text: String,
    /// How many numbered children there are, for the specimens that number them.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub(crate) count: i32,
}

/// What the operator says about a Sample.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SampleStatus {
    /// The generation that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    /// How far the work has come.
    #[serde(default)]
    pub(crate) phase: Phase,
    /// The conditions; only `Ready` is used.
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
    /// How often the operator has looked at it; S26 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reconciles: Option<i64>,
}

/// How far the work on a Sample has come.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is finished; goes to `FirstMade` or straight to `Done`.
    #[default]
    Pending,
    /// The first of two children is there; goes to `Done`.
    FirstMade,
    /// All children are there.
    Done,
}

/// A condition, with the fields that Kubernetes gives it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    /// The name of the condition, such as `Ready`.
    #[serde(rename = "type")]
    pub(crate) type_: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: String,
    /// Why, as one word.
    pub(crate) reason: String,
    /// Why, for people.
    pub(crate) message: String,
    /// The generation that the condition speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    /// When `status` last changed, as RFC 3339.
    pub(crate) last_transition_time: String,
}

// === impl Sample ===

impl Sample {
    /// Whether somebody asked for its deletion.
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The name of one of its children.
    pub(crate) fn child(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name_any())
    }

    /// How far the work has come, as its status has it.
    pub(crate) fn phase(&self) -> Phase {
        self.status.as_ref().map(|status| status.phase).unwrap_or_default()
    }
}

/// The CustomResourceDefinition as YAML.
pub(crate) fn definition() -> Result<String> {
    Ok(serde_yaml::to_string(&Sample::crd())?)
}

fn one() -> i32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_definition_is_current() {
        assert_eq!(
            definition().expect("a CRD fits YAML"),
            include_str!("../crd.yaml"),
            "run `cargo run -p specimens -- crd > operators-under-test/specimens/crd.yaml`"
        );
    }
}
