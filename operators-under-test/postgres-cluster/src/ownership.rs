//! Whose object is it? Asked before anything is changed or deleted; a name alone proves nothing.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use kube::{Resource, ResourceExt};

use crate::children::{CLUSTER_LABEL, MANAGED_BY_LABEL, MANAGER};
use crate::crd::PostgresCluster;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This cluster controls it: the controller reference has our **uid**.
    Ours,
    /// It bears our labels and nobody controls it: retained on purpose, or its reference was stripped. We may take it
    /// (back): no controller's object is stolen, as in Kubernetes' own ReplicaSets and StatefulSets.
    Orphan,
    /// A cluster of our kind and name controls it, with another uid: our predecessor's. The garbage collector removes
    /// it; we wait, since saving it would keep data alive that its owner ordered deleted.
    Former,
    /// Someone else's. Hands off.
    Foreign,
}

// === impl Ownership ===

impl Ownership {
    /// Decides it from the object's controller reference and labels.
    pub fn of(object: &DynamicObject, cluster: &PostgresCluster) -> Self {
        let name = cluster.name_any();
        match object.owner_references().iter().find(|owner| owner.controller == Some(true)) {
            Some(owner) if Some(&owner.uid) == cluster.uid().as_ref() => Self::Ours,
            Some(owner) if owner.kind == PostgresCluster::kind(&()) && owner.name == name => Self::Former,
            Some(_) => Self::Foreign,
            None => {
                let has = |label, value| object.labels().get(label).is_some_and(|found| found == value);
                if has(MANAGED_BY_LABEL, MANAGER) && has(CLUSTER_LABEL, name.as_str()) {
                    Self::Orphan
                } else {
                    Self::Foreign
                }
            }
        }
    }
}

/// The reference that makes a child ours. `blockOwnerDeletion` makes a foreground deletion wait for the child.
pub fn owner_reference(cluster: &PostgresCluster) -> OwnerReference {
    OwnerReference {
        api_version: PostgresCluster::api_version(&()).into_owned(),
        kind: PostgresCluster::kind(&()).into_owned(),
        name: cluster.name_any(),
        uid: cluster.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
