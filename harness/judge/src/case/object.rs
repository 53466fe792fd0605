//! The lives of objects, over all versions ever seen.

use spiritlevel_model::{
    Meta, ObjectRef, OwnerReference, ResourceKey, Uid,
    attribution::{Moment, Seen},
    history::VersionType,
};
use std::collections::BTreeMap;

/// One object from its first version to its last.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// Its uid.
    pub(crate) uid: Uid,
    /// How it is named.
    pub(crate) object: ObjectRef,
    /// Its resource.
    pub(crate) resource: ResourceKey,
    /// Places of its versions in the ledger, in order.
    pub(crate) versions: Vec<usize>,
    /// Every owner that any version named, in order of appearance.
    pub(crate) owners: Vec<OwnerReference>,
    /// Whether it was there before the witness came.
    pub(crate) found: bool,
    /// When the first version was stored.
    pub(crate) born: Moment,
    /// Place of its deletion in the ledger.
    pub(crate) deleted: Option<usize>,
    /// The first version that is terminating.
    pub(crate) terminating: Option<usize>,
}

/// All lives. What a restore of the store made vanish has none: nobody deleted it, and it is not there.
pub(super) fn read(versions: &[Seen]) -> BTreeMap<Uid, Life> {
    let mut all: BTreeMap<Uid, Life> = BTreeMap::new();
    for (index, seen) in versions.iter().enumerate() {
        let (Some(uid), Some(object)) = (seen.version.object.uid(), ObjectRef::of(&seen.version.object)) else {
            continue;
        };
        let life = all.entry(uid.clone()).or_insert_with(|| Life {
            uid,
            object,
            resource: seen.version.resource.clone(),
            versions: Vec::new(),
            owners: Vec::new(),
            found: seen.version.kind == VersionType::Found,
            born: seen.moment(),
            deleted: None,
            terminating: None,
        });
        let returns = life.versions.last().is_some_and(|last| versions[*last].epoch < seen.epoch);
        if returns {
            (life.deleted, life.terminating) = (None, None);
        }
        life.versions.push(index);
        for owner in seen.version.object.owners() {
            if !life.owners.contains(&owner) {
                life.owners.push(owner);
            }
        }
        if seen.version.kind == VersionType::Deleted {
            life.deleted = Some(index);
        }
        if seen.version.object.is_terminating() && life.terminating.is_none() {
            life.terminating = Some(index);
        }
    }
    let epoch = versions.last().map_or(0, |seen| seen.epoch);
    all.retain(|_, life| life.deleted.is_some() || versions[life.last()].epoch == epoch);
    all
}

// === impl Life ===

impl Life {
    /// Place of the first version in the ledger.
    pub(crate) fn first(&self) -> usize {
        self.versions.first().copied().expect("a life begins with a version")
    }

    /// Place of the last version in the ledger.
    pub(crate) fn last(&self) -> usize {
        self.versions.last().copied().expect("a life begins with a version")
    }
}
