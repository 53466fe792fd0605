//! `Sample`, `clients.example.com/v1`: asks for ConfigMaps NAME-0 to NAME-(count - 1) with one text. The same in all stacks.

use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Sample asks for.
#[derive(Clone, Debug, Deserialize, Serialize, CustomResource, JsonSchema)]
#[kube(group = "clients.example.com", version = "v1", kind = "Sample", namespaced, status = "SampleStatus")]
pub(crate) struct SampleSpec {
    /// The content of every child.
    #[serde(default)]
    pub(crate) text: String,
    /// How many children there are.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub(crate) count: i32,
}

/// What the operator says about it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SampleStatus {
    /// The generation that this status speaks of.
    pub(crate) observed_generation: Option<i64>,
    /// How many children are as they should be.
    #[serde(default)]
    pub(crate) ready: i32,
    /// Only `Ready` is used.
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// A condition, with the fields that Kubernetes gives it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    /// The name of the condition.
    #[serde(rename = "type")]
    pub(crate) type_: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: String,
    /// Why, as one word.
    pub(crate) reason: String,
    /// Why, for people.
    pub(crate) message: String,
    /// The generation that the condition speaks of.
    pub(crate) observed_generation: Option<i64>,
    /// When `status` last changed, as RFC 3339.
    pub(crate) last_transition_time: String,
}

/// The CustomResourceDefinition as YAML.
pub(crate) fn definition() -> String {
    let mut crd = serde_json::to_value(Sample::crd()).expect("a CRD fits JSON");
    // By type, as Kubernetes' own kinds have them.
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions";
    let conditions = crd.pointer_mut(at).expect("the status has conditions");
    conditions["x-kubernetes-list-type"] = "map".into();
    conditions["x-kubernetes-list-map-keys"] = serde_json::json!(["type"]);
    serde_yaml::to_string(&crd).expect("JSON fits YAML")
}

fn one() -> i32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_definition_is_current() {
        assert_eq!(definition(), include_str!("../../crd.yaml"), "put what `--print-crd` prints into crd.yaml");
    }
}
