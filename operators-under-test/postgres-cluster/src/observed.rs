//! What is there: one consistent look at a cluster's children, taken anew for every reconcile and never kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::Value;

use crate::children::{
    COMPLETE_ANNOTATION, CONFIRMED_BY_ANNOTATION, ChildKey, INSTANCE_CONTAINER, Kind, ROLE_LABEL, ordinal,
    volume_ordinal,
};
use crate::crd::PostgresCluster;
use crate::ownership::Ownership;

/// The children seen, by kind and name.
#[derive(Clone, Debug)]
pub struct Observed {
    /// When the look was taken. The planner has no clock of its own.
    pub now: Timestamp,
    /// The image for a version, see [`Observed::image`]. Nor has it a command line.
    images: Arc<str>,
    children: BTreeMap<ChildKey, Arc<DynamicObject>>,
    refusals: BTreeMap<ChildKey, String>,
}

/// A pod of this cluster, as far as the planner cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The pod's name.
    pub name: String,
    /// The number in its name.
    pub ordinal: i32,
    /// The pod's uid.
    pub uid: String,
    /// For writes that must fail when the pod changed since we looked.
    pub resource_version: String,
    /// What the label `role` says.
    pub role: Option<Role>,
    /// The pod's condition Ready: a primary, or a replica without which the primary acknowledges no row.
    pub ready: bool,
    /// Its PostgreSQL does what the role says.
    pub answers: bool,
    /// Every acknowledged row is on its volume. True of all while there has never been a primary.
    pub complete: bool,
    /// A primary's annotation `confirmed-by`.
    pub confirmed_by: Option<String>,
    /// It has a deletionTimestamp: still there, no longer counted on.
    pub terminating: bool,
    /// Phase Failed or Succeeded: it will never run again.
    pub finished: bool,
    /// The image it was told to run.
    pub image: Option<String>,
    /// Whether that is the image of the cluster's version.
    pub up_to_date: bool,
}

/// What an instance does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes writes. At most one.
    Primary,
    /// Follows the primary.
    Replica,
}

// === impl Observed ===

impl Observed {
    /// A look at nothing. `images` names the image for a version, such as `postgres:{version}`.
    pub fn at(now: Timestamp, images: Arc<str>) -> Self {
        Self { now, images, children: BTreeMap::new(), refusals: BTreeMap::new() }
    }

    /// The image for the cluster's version.
    pub fn image(&self, cluster: &PostgresCluster) -> String {
        self.images.replace("{version}", &cluster.spec.version)
    }

    /// Adds an object, or replaces an older look at it.
    pub fn see(&mut self, kind: Kind, object: Arc<DynamicObject>) {
        self.children.insert(kind.named(object.name_any()), object);
    }

    /// Forgets all objects of a kind, before they are looked at again.
    pub fn forget(&mut self, kind: Kind) {
        self.children.retain(|key, _| key.kind != kind);
    }

    /// The API server would not have this child, as was seen during this very look.
    pub fn see_refused(&mut self, key: ChildKey, message: String) {
        self.refusals.insert(key, message);
    }

    /// Why the API server would not have this child.
    pub fn refusal(&self, key: &ChildKey) -> Option<&str> {
        self.refusals.get(key).map(String::as_str)
    }

    /// The children that were refused.
    pub fn refused(&self) -> impl Iterator<Item = &ChildKey> {
        self.refusals.keys()
    }

    /// The object of that kind and name.
    pub fn get(&self, key: &ChildKey) -> Option<&DynamicObject> {
        self.children.get(key).map(AsRef::as_ref)
    }

    /// The objects of a kind, by name.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &DynamicObject> {
        self.children.iter().filter(move |(key, _)| key.kind == kind).map(|(_, object)| object.as_ref())
    }

    /// The instances that belong to the cluster, by ordinal.
    pub fn instances(&self, cluster: &PostgresCluster) -> Vec<Instance> {
        let complete = self.complete_volumes(cluster);
        let is_complete = |ordinal| complete.contains(&ordinal) || !self.is_initialized(cluster);
        let mut instances: Vec<_> = self
            .of_kind_and_ours(Kind::Pod, cluster)
            .filter_map(|pod| Instance::of(pod, cluster))
            .map(|instance| Instance {
                complete: is_complete(instance.ordinal),
                up_to_date: instance.image.as_deref() == Some(self.image(cluster).as_str()),
                ..instance
            })
            .collect();
        instances.sort_by_key(|instance| instance.ordinal);
        instances
    }

    /// The ordinals of the volumes that have every acknowledged row.
    pub fn complete_volumes(&self, cluster: &PostgresCluster) -> BTreeSet<i32> {
        self.of_kind_and_ours(Kind::PersistentVolumeClaim, cluster)
            .filter(|volume| volume.annotations().get(COMPLETE_ANNOTATION).is_some_and(|complete| complete == "true"))
            .filter_map(|volume| volume_ordinal(&cluster.name_any(), &volume.name_any()))
            .collect()
    }

    /// Whether there has ever been a primary; kept volumes know it of a former cluster.
    pub fn is_initialized(&self, cluster: &PostgresCluster) -> bool {
        cluster.status.as_ref().is_some_and(|status| status.initialized)
            || !self.complete_volumes(cluster).is_empty()
            || self.of_kind_and_ours(Kind::Pod, cluster).any(|pod| Role::of(pod) == Some(Role::Primary))
    }

    fn of_kind_and_ours(&self, kind: Kind, cluster: &PostgresCluster) -> impl Iterator<Item = &DynamicObject> {
        self.of_kind(kind)
            .filter(|object| matches!(Ownership::of(object, cluster), Ownership::Ours | Ownership::Orphan))
    }
}

// === impl Instance ===

impl Instance {
    /// What the pod tells; the rest is for [`Observed::instances`].
    fn of(pod: &DynamicObject, cluster: &PostgresCluster) -> Option<Self> {
        let name = pod.name_any();
        let status = &pod.data["status"];
        let ready = items(&status["conditions"]).any(|c| c["type"] == "Ready" && c["status"] == "True");
        let answers =
            items(&status["containerStatuses"]).any(|c| c["name"] == INSTANCE_CONTAINER && c["ready"] == true);
        let finished = status["phase"] == "Failed" || status["phase"] == "Succeeded";
        let terminating = pod.metadata.deletion_timestamp.is_some();
        let image_of_pod = items(&pod.data["spec"]["containers"])
            .find(|container| container["name"] == INSTANCE_CONTAINER)
            .and_then(|container| container["image"].as_str().map(str::to_owned));
        Some(Self {
            ordinal: ordinal(&cluster.name_any(), &name)?,
            uid: pod.uid().unwrap_or_default(),
            resource_version: pod.resource_version().unwrap_or_default(),
            role: Role::of(pod),
            // A pod that is going away may still say Ready.
            ready: ready && !terminating && !finished,
            answers: answers && !terminating && !finished,
            complete: false,
            confirmed_by: pod.annotations().get(CONFIRMED_BY_ANNOTATION).cloned(),
            terminating,
            finished,
            up_to_date: false,
            image: image_of_pod,
            name,
        })
    }

    /// Whether the instance is one of those that the spec asks for.
    pub fn is_wanted(&self, cluster: &PostgresCluster) -> bool {
        self.ordinal < cluster.spec.replicas
    }
}

impl Role {
    fn of(pod: &DynamicObject) -> Option<Self> {
        match pod.labels().get(ROLE_LABEL).map(String::as_str) {
            Some("primary") => Some(Self::Primary),
            Some("replica") => Some(Self::Replica),
            _ => None,
        }
    }

    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Replica => "replica",
        }
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
