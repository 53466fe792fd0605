//! What a cluster is made of, rendered from its spec: pure functions from a `PostgresCluster` to objects.
//!
//! Names are deterministic (`pg-1-0`, `pg-1-0-data`, …). That is what makes a lost reply harmless: who asks again with
//! the same name gets `AlreadyExists`, not a second object.

mod backup;
mod instance;
mod shared;

pub use backup::{backup, backup_volume, backup_volume_name};
pub use instance::{
    Bootstrap, INSTANCE_CONTAINER, instance, instance_name, ordinal, volume, volume_name, volume_ordinal,
};
pub use shared::{config, credentials, disruption_budget, headless_service, primary_service};

use kube::ResourceExt;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Map, Value, json};

use crate::crd::PostgresCluster;
use crate::ownership::owner_reference;

/// On every child: the cluster's name. Caches select by it, and events find their cluster by it.
pub const CLUSTER_LABEL: &str = "cluster";
/// On every child: who made it.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY_LABEL`], and the field manager of every write.
pub const MANAGER: &str = "postgres-cluster";
/// On pods: `primary` or `replica`. The primary Service selects by it.
pub const ROLE_LABEL: &str = "role";
/// On volumes: the uid of the cluster that uses them. A retained volume keeps the uid of its former cluster until the
/// new one takes it into use; what this cluster never used, it never deletes.
pub const USED_BY_ANNOTATION: &str = "db.example.com/used-by";

/// On volumes: `true` when every acknowledged row is on it. Only an instance with such a volume becomes the primary. It
/// stands on the volume because it is said of the data: they outlive the pod, and even the cluster.
pub const COMPLETE_ANNOTATION: &str = "db.example.com/complete";
/// On the primary's pod: the instances that must have a row before it is acknowledged, with commas; or [`ALONE`].
/// Whoever has a complete volume is among them.
pub const CONFIRMED_BY_ANNOTATION: &str = "db.example.com/confirmed-by";
/// The value of [`CONFIRMED_BY_ANNOTATION`] when there is nobody else. Without an annotation nothing is acknowledged.
pub const ALONE: &str = "alone";
/// On pods: whether an empty volume becomes a new database (`new`) or is filled from the primary (`join`).
pub const BOOTSTRAP_ANNOTATION: &str = "db.example.com/bootstrap";

/// The kinds of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The password.
    Secret,
    /// What an instance runs, and its settings.
    ConfigMap,
    /// The headless and the primary Service.
    Service,
    /// At most one instance away at a time.
    PodDisruptionBudget,
    /// The scheduled dump.
    CronJob,
    /// The data of an instance.
    PersistentVolumeClaim,
    /// An instance.
    Pod,
}

/// Which child: deterministic, therefore also the answer to "is it there already?".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildKey {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

/// A child as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Which one.
    pub key: ChildKey,
    /// The whole object, for its creation.
    pub create: Value,
    /// The part that is kept level by server-side apply. Smaller than `create` where a field cannot change (a pod's
    /// spec) or must not (a password).
    pub keep: Value,
    /// Whether it belongs to the cluster by an ownerReference, and so is collected with it.
    pub owned: bool,
}

// === impl Kind ===

impl Kind {
    /// Every kind, in the order of [`Kind`].
    pub const ALL: [Self; 7] = [
        Self::Secret,
        Self::ConfigMap,
        Self::Service,
        Self::PodDisruptionBudget,
        Self::CronJob,
        Self::PersistentVolumeClaim,
        Self::Pod,
    ];

    /// How the API server calls it.
    pub fn api_resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::Secret => ("", "Secret", "secrets"),
            Self::ConfigMap => ("", "ConfigMap", "configmaps"),
            Self::Service => ("", "Service", "services"),
            Self::PodDisruptionBudget => ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
            Self::CronJob => ("batch", "CronJob", "cronjobs"),
            Self::PersistentVolumeClaim => ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Pod => ("", "Pod", "pods"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
    }

    /// The key of a child of this kind.
    pub fn named(self, name: impl Into<String>) -> ChildKey {
        ChildKey { kind: self, name: name.into() }
    }
}

impl std::fmt::Display for ChildKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.kind, self.name)
    }
}

// === impl Child ===

impl Child {
    /// A child whose every rendered field is kept level.
    fn kept_whole(cluster: &PostgresCluster, key: ChildKey, fields: Value) -> Self {
        let whole = object(cluster, &key, true, fields);
        Self { key, create: whole.clone(), keep: whole, owned: true }
    }

    /// The whole object, typed for the client.
    pub fn to_create(&self) -> DynamicObject {
        serde_json::from_value(self.create.clone()).expect("children are rendered with apiVersion, kind and metadata")
    }
}

/// The selector that finds the children of one cluster.
pub fn selector(cluster: &str) -> String {
    format!("{CLUSTER_LABEL}={cluster},{MANAGED_BY_LABEL}={MANAGER}")
}

/// The labels that every child carries.
fn labels(cluster: &PostgresCluster) -> Map<String, Value> {
    Map::from_iter([
        (CLUSTER_LABEL.to_owned(), json!(cluster.name_any())),
        (MANAGED_BY_LABEL.to_owned(), json!(MANAGER)),
    ])
}

/// Adds apiVersion, kind and metadata to the fields of a child.
fn object(cluster: &PostgresCluster, key: &ChildKey, owned: bool, fields: Value) -> Value {
    let resource = key.kind.api_resource();
    let mut object = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": key.name,
            "namespace": cluster.namespace(),
            "labels": labels(cluster),
        },
    });
    if owned {
        object["metadata"]["ownerReferences"] = json!([owner_reference(cluster)]);
    }
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    object
}
