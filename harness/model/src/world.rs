//! The state of the objects at a moment, folded from the witness's versions, and what the garbage collector will do about it.

use crate::{
    Meta, ObjectRef, OwnerReference, ResourceKey, Revision, Uid,
    history::{KindInfo, Version, VersionType},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where an object lies: resource, namespace, name.
pub type Place = (ResourceKey, Option<String>, String);

/// All live objects of a run.
#[derive(Clone, Debug, Default)]
pub struct World {
    kinds: Vec<KindInfo>,
    live: BTreeMap<Place, Live>,
    places: BTreeMap<Uid, Place>,
    gone: BTreeSet<Uid>,
}

/// A live object.
#[derive(Clone, Debug)]
pub struct Live {
    /// Its resource.
    pub resource: ResourceKey,
    /// Revision of its latest version.
    pub revision: Revision,
    /// Its latest version.
    pub object: Value,
}

/// An ownerReference compared with the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerState {
    /// It is there.
    Present,
    /// It is there and waits in a foreground deletion for its dependents to go first.
    WaitsForDependents,
    /// It is not there, or another object has its name.
    Absent,
    /// No such kind is served: the collector never decides.
    UnknownKind,
    /// A namespaced owner of a cluster-scoped object: the collector never decides.
    Unreachable,
}

/// An object that the garbage collector is going to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Which.
    pub object: ObjectRef,
    /// Its resource.
    pub resource: ResourceKey,
    /// The finalizers that keep it after the collector's DELETE.
    pub finalizers: Vec<String>,
}

impl World {
    /// Nothing is there; `kinds` say which kinds are served.
    pub fn new(kinds: Vec<KindInfo>) -> Self {
        Self { kinds, ..Self::default() }
    }

    /// The kinds that are served.
    pub fn kinds(&self) -> &[KindInfo] {
        &self.kinds
    }

    /// More kinds are served now.
    pub fn set_kinds(&mut self, kinds: Vec<KindInfo>) {
        self.kinds = kinds;
    }

    /// The kind behind `apiVersion` and `kind`; the version may be another one of the same group.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&KindInfo> {
        let group = api_version.split_once('/').map_or("", |(g, _)| g);
        self.kinds.iter().find(|k| k.group == group && k.kind == kind)
    }

    /// The kind of a resource.
    pub fn kind_of(&self, resource: &ResourceKey) -> Option<&KindInfo> {
        self.kinds.iter().find(|k| k.group == resource.group && k.resource == resource.resource)
    }

    /// Another etcd epoch begins: nothing of what was known holds.
    pub fn begin_epoch(&mut self) {
        self.live.clear();
        self.places.clear();
        self.gone.clear();
    }

    /// Goes on by one version.
    pub fn apply(&mut self, version: &Version) {
        let (Some(name), Some(uid)) = (version.object.name(), version.object.uid()) else { return };
        let place = (version.resource.clone(), version.object.namespace().map(Into::into), name.to_owned());
        match version.kind {
            VersionType::Deleted => {
                // A successor of the same name may have come first.
                if self.live.get(&place).is_some_and(|l| l.object.uid().as_ref() == Some(&uid)) {
                    self.live.remove(&place);
                }
                self.places.remove(&uid);
                self.gone.insert(uid);
            }
            VersionType::Found | VersionType::Added | VersionType::Modified => {
                if self.gone.contains(&uid) {
                    return;
                }
                self.places.insert(uid, place.clone());
                let live = Live {
                    resource: version.resource.clone(),
                    revision: version.revision,
                    object: version.object.clone(),
                };
                self.live.insert(place, live);
            }
        }
    }

    /// The live objects, ordered by place.
    pub fn live(&self) -> impl Iterator<Item = &Live> {
        self.live.values()
    }

    /// The live objects of a kind.
    pub fn of_kind<'a>(&'a self, api_version: &str, kind: &str) -> impl Iterator<Item = &'a Live> + use<'a> {
        let key = self.kind(api_version, kind).map(KindInfo::key);
        self.live.values().filter(move |l| Some(&l.resource) == key.as_ref())
    }

    /// The live object with this uid.
    pub fn by_uid(&self, uid: &Uid) -> Option<&Live> {
        self.live.get(self.places.get(uid)?).filter(|l| l.object.uid().as_ref() == Some(uid))
    }

    /// The live object at this place.
    pub fn at(&self, resource: &ResourceKey, namespace: Option<&str>, name: &str) -> Option<&Live> {
        self.live.get(&(resource.clone(), namespace.map(Into::into), name.to_owned()))
    }

    /// Whether an object with this uid was seen to go.
    pub fn is_gone(&self, uid: &Uid) -> bool {
        self.gone.contains(uid)
    }

    /// What the garbage collector finds for one reference, as in `attemptToDeleteItem` of
    /// `k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go`: it asks for kind and name in the
    /// dependent's namespace and compares the uid.
    pub fn owner_state(&self, dependent: &Value, owner: &OwnerReference) -> OwnerState {
        let Some(kind) = self.kind(&owner.api_version, &owner.kind) else { return OwnerState::UnknownKind };
        let namespace = dependent.namespace();
        if kind.namespaced && namespace.is_none() {
            return OwnerState::Unreachable;
        }
        let at = self.at(&kind.key(), namespace.filter(|_| kind.namespaced), &owner.name);
        match at.filter(|l| l.object.uid().as_ref() == Some(&owner.uid)) {
            None => OwnerState::Absent,
            Some(l) if l.object.is_terminating() && l.object.finalizers().contains(&"foregroundDeletion") => {
                OwnerState::WaitsForDependents
            }
            Some(_) => OwnerState::Present,
        }
    }

    /// Every collection that the owner graph predicts and that has not happened yet.
    pub fn predicted_collections(&self) -> Vec<Collection> {
        let doomed = |l: &&Live| {
            let owners = l.object.owners();
            let states: Vec<OwnerState> = owners.iter().map(|o| self.owner_state(&l.object, o)).collect();
            // Events and such are ignored by the collector.
            let watched =
                !matches!((l.resource.group.as_str(), l.resource.resource.as_str()), ("" | "events.k8s.io", "events"));
            watched
                && !states.is_empty()
                && states.iter().all(|s| matches!(s, OwnerState::Absent | OwnerState::WaitsForDependents))
        };
        let collection = |l: &Live| {
            Some(Collection {
                object: ObjectRef::of(&l.object)?,
                resource: l.resource.clone(),
                finalizers: l.object.finalizers().into_iter().map(Into::into).collect(),
            })
        };
        self.live.values().filter(doomed).filter_map(collection).collect()
    }
}

/// Objects whose writes are a matter of routine and never churn: leases and their predecessors, events.
pub fn is_heartbeat(resource: &ResourceKey, object: &Value) -> bool {
    let leader = "control-plane.alpha.kubernetes.io/leader";
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("coordination.k8s.io", "leases") | ("" | "events.k8s.io", "events") => true,
        ("", "configmaps" | "endpoints") => object["metadata"]["annotations"][leader].is_string(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
