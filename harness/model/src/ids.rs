//! Names and numbers that must not be mixed up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number from which every choice of a plan is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// One request in a history, counted from 1 in order of arrival at the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// One watch stream in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StreamId(pub u64);

/// The uid of an object: changes when an object is deleted and made again under the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(pub String);

/// A resourceVersion, read as the etcd revision that it is; ordered across kinds within one etcd epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// Who made a request: `operator/0`, `garbage-collector`, `user`, `kubelet-stub`, `harness/conflict`, …
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Actor(pub String);

impl Actor {
    /// The operator's replica number `replica`, counted from 0.
    pub fn operator(replica: usize) -> Self {
        Self(format!("operator/{replica}"))
    }

    /// The scenario's own steps.
    pub fn user() -> Self {
        Self("user".into())
    }

    /// The stand-in for kubelet, scheduler and volume provisioner.
    pub fn kubelet_stub() -> Self {
        Self("kubelet-stub".into())
    }

    /// A write that the harness itself makes for `purpose` (a touch, a released lease, drift).
    pub fn harness(purpose: &str) -> Self {
        Self(format!("harness/{purpose}"))
    }

    /// A built-in controller by the name of its ServiceAccount, such as `generic-garbage-collector`.
    pub fn controller(service_account: &str) -> Self {
        Self(match service_account {
            "generic-garbage-collector" => "garbage-collector".into(),
            other => other.into(),
        })
    }

    /// The replica's number when this is the operator under test.
    pub fn replica(&self) -> Option<usize> {
        self.0.strip_prefix("operator/")?.parse().ok()
    }

    /// Whether this is the operator under test.
    pub fn is_operator(&self) -> bool {
        self.replica().is_some()
    }

    /// Whether the harness or the scenario made the request.
    pub fn is_ours(&self) -> bool {
        self.0 == "user" || self.0 == "kubelet-stub" || self.0.starts_with("harness/")
    }
}

macro_rules! display {
    ($($name:ident),*) => { $(impl fmt::Display for $name {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
    })* };
}
display!(Seed, RequestId, StreamId, Uid, Revision, Actor);
