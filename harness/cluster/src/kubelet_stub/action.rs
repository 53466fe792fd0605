//! What the pure core answers, and the writes it can ask for.

use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolume;
use serde_json::Value;

/// The next thing to do about one object.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Nothing, until somebody else changes something.
    Rest,
    /// Nothing here: another controller is about to act, and says so by an event.
    Await(String),
    /// Nothing before this much more time has passed.
    Wait(Duration, String),
    /// One request, which changes something.
    Write(Write),
}

/// A request that changes one object. Each carries what makes it fail, not harm, when the object is no longer the one
/// that was decided about.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// `pods/binding` to our node.
    Bind {
        /// The pod's uid.
        uid: String,
    },
    /// Strategic merge patch of `pods/status`, with the uid in it.
    PodStatus {
        /// The patch.
        patch: Value,
        /// For `busy` and the log.
        why: String,
    },
    /// The kubelet's last word: DELETE without grace period.
    DeletePod {
        /// The pod's uid.
        uid: String,
    },
    /// Merge patch of another object than the one looked at: the claim of a pod that waits for its first consumer.
    SelectNode {
        /// The claim's name, in the pod's namespace.
        claim: String,
        /// The patch, with the claim's resourceVersion.
        patch: Value,
    },
    /// POST of a volume for a claim.
    CreateVolume(Box<PersistentVolume>),
    /// Merge patch of a claim's volume.
    PatchVolume {
        /// The volume's name.
        name: String,
        /// The patch, with the volume's resourceVersion.
        patch: Value,
    },
    /// Merge patch of `persistentvolumeclaims/status`, with the resourceVersion in it.
    ClaimStatus {
        /// The patch.
        patch: Value,
    },
    /// DELETE of a released volume.
    DeleteVolume {
        /// The volume's uid.
        uid: String,
    },
}

// === impl Action ===

impl Action {
    /// What is still to be done, in a few words; `None` when nothing is.
    pub(crate) fn pending(&self) -> Option<String> {
        match self {
            Self::Rest => None,
            Self::Await(why) | Self::Wait(_, why) => Some(why.clone()),
            Self::Write(write) => Some(write.purpose().to_owned()),
        }
    }
}

// === impl Write ===

impl Write {
    /// What the request is for.
    pub(crate) fn purpose(&self) -> &str {
        match self {
            Self::Bind { .. } => "to be bound to the node",
            Self::PodStatus { why, .. } => why,
            Self::DeletePod { .. } => "stopped, to be removed",
            Self::SelectNode { .. } => "its claim waits for the choice of a node",
            Self::CreateVolume(_) => "to be provisioned",
            Self::PatchVolume { .. } | Self::ClaimStatus { .. } => "to be expanded",
            Self::DeleteVolume { .. } => "released, to be reclaimed",
        }
    }
}
