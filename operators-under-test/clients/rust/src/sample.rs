//! `Sample`, `clients.example.com/v1`: asks for ConfigMaps NAME-0 to NAME-(count - 1) with one text.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What a Sample asks for.
#[derive(Clone, Debug, Deserialize, Serialize, CustomResource)]
#[kube(
    group = "clients.example.com",
    version = "v1",
    kind = "Sample",
    namespaced,
    status = "SampleStatus",
    schema = "disabled"
)]
pub(crate) struct SampleSpec {
    /// The content of every child.
    #[serde(default)]
    pub(crate) text: String,
    /// How many children there are.
    pub(crate) count: usize,
}

/// What the operator says about it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SampleStatus {
    /// The generation that this status speaks of.
    pub(crate) observed_generation: Option<i64>,
    /// How many children are as they should be.
    #[serde(default)]
    pub(crate) ready: usize,
    /// Only `Ready` is used.
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}
