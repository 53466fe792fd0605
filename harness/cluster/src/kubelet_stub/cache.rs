//! The newest known version of every object of one kind.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kube::Resource;

/// `(namespace, name)`; cluster-scoped objects have an empty namespace.
pub(super) type Name = (String, String);

/// What the watch, and the answers to our own writes, say. Both arrive in any order: an older version never replaces a
/// newer one, and what is known to be gone stays gone.
#[derive(Debug)]
pub(super) struct Cache<K> {
    objects: BTreeMap<Name, K>,
    /// Uids of the last objects that are gone.
    buried: VecDeque<String>,
    synced: bool,
}

/// Answers and events overtake each other by a few objects, not by thousands.
const BURIED: usize = 1024;

/// How a listing relates to what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// The same history goes on: newer versions known from answers stay.
    Continues,
    /// History may have been rewritten (a restored etcd): only the listing counts.
    Replaces,
}

// === impl Cache ===

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), buried: VecDeque::new(), synced: false }
    }
}

impl<K: Resource> Cache<K> {
    pub(super) fn get(&self, name: &Name) -> Option<&K> {
        self.objects.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &K)> {
        self.objects.iter()
    }

    /// Whether a first listing was taken in.
    pub(super) fn is_synced(&self) -> bool {
        self.synced
    }

    /// Waits for the next listing before anything is believed.
    pub(super) fn distrust(&mut self) {
        self.synced = false;
    }

    /// Takes in one version; the name if it was news.
    pub(super) fn apply(&mut self, object: K) -> Option<Name> {
        let name = name(&object)?;
        if self.is_buried(&object) || self.objects.get(&name).is_some_and(|known| !is_newer(&object, known)) {
            return None;
        }
        self.objects.insert(name.clone(), object);
        Some(name)
    }

    /// The watch reports the end of an object.
    pub(super) fn delete(&mut self, object: &K) -> Option<Name> {
        let name = name(object)?;
        self.bury(&name, object.meta().uid.as_deref()?).then_some(name)
    }

    /// The object of `uid` is gone, by a read or by the watch; whether it was known.
    pub(super) fn bury(&mut self, name: &Name, uid: &str) -> bool {
        self.buried.push_back(uid.to_owned());
        if self.buried.len() > BURIED {
            self.buried.pop_front();
        }
        let known = self.objects.get(name).is_some_and(|known| known.meta().uid.as_deref() == Some(uid));
        if known {
            self.objects.remove(name);
        }
        known
    }

    /// Takes in a complete listing; every name that was or is there.
    pub(super) fn list(&mut self, objects: Vec<K>, listing: Listing) -> BTreeSet<Name> {
        let mut before = std::mem::take(&mut self.objects);
        let mut names: BTreeSet<Name> = before.keys().cloned().collect();
        if listing == Listing::Replaces {
            self.buried.clear();
            before.clear();
        }
        for object in objects {
            let Some(name) = name(&object) else { continue };
            if self.is_buried(&object) {
                continue;
            }
            let newest = match before.remove(&name) {
                Some(known) if !is_newer(&object, &known) => known,
                _ => object,
            };
            names.insert(name.clone());
            self.objects.insert(name, newest);
        }
        self.synced = true;
        names
    }

    fn is_buried(&self, object: &K) -> bool {
        object.meta().uid.as_ref().is_some_and(|uid| self.buried.contains(uid))
    }
}

fn name<K: Resource>(object: &K) -> Option<Name> {
    let meta = object.meta();
    Some((meta.namespace.clone().unwrap_or_default(), meta.name.clone()?))
}

/// Versions of one kind are ordered by resourceVersion (a documented number since KEP-5504).
fn is_newer<K: Resource>(new: &K, known: &K) -> bool {
    let version = |object: &K| object.meta().resource_version.as_ref().and_then(|text| text.parse::<u64>().ok());
    match (version(new), version(known)) {
        (Some(new), Some(known)) => new > known,
        _ => true,
    }
}
