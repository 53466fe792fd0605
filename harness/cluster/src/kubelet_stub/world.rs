//! All that the stub knows, and its answer to "what next?" for every object. No IO: events come in, actions go out.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::{
    api::{
        core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
        storage::v1::StorageClass,
    },
    jiff::Timestamp,
};

use super::{
    action::{Action, Write},
    addresses::Addresses,
    cache::{Cache, Listing, Name},
    pod::{self, Claim, Moment, Stage},
    rules::{KubeletRules, Outlook, PodState},
    status::Surroundings,
    volume,
};

/// The object that an action is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A pod.
    Pod(Name),
    /// A claim.
    Claim(Name),
    /// A volume.
    Volume(Name),
}

/// News from a watch or from an answer.
#[derive(Debug)]
pub(super) enum Change<K> {
    /// A version of an object.
    Applied(Box<K>),
    /// The end of an object.
    Deleted(Box<K>),
    /// All objects there are.
    Listed(Vec<K>, Listing),
}

/// News of any kind.
#[derive(Debug)]
pub(super) enum News {
    /// Of a pod.
    Pod(Change<Pod>),
    /// Of a claim.
    Claim(Change<PersistentVolumeClaim>),
    /// Of a volume.
    Volume(Change<PersistentVolume>),
    /// Of a StorageClass.
    Class(Change<StorageClass>),
}

/// Now, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Since the stub began.
    pub(super) elapsed: Duration,
    /// The wall clock.
    pub(super) wall: Timestamp,
}

/// Caches, rules, and when each pod entered its stage.
#[derive(Debug, Default)]
pub(super) struct World {
    pods: Cache<Pod>,
    claims: Cache<PersistentVolumeClaim>,
    volumes: Cache<PersistentVolume>,
    classes: Cache<StorageClass>,
    rules: BTreeMap<String, KubeletRules>,
    states: BTreeMap<Name, Imposed>,
    memories: BTreeMap<String, Memory>,
    addresses: Addresses,
    /// Versions on which a write changed nothing: writing again would be a loop.
    settled: BTreeMap<Key, String>,
}

/// What a `setPod` step imposed on a name, or on one pod of that name.
#[derive(Clone, Debug)]
struct Imposed {
    state: PodState,
    uid: Option<String>,
}

/// What is remembered of one pod.
#[derive(Clone, Copy, Debug)]
struct Memory {
    stage: Stage,
    since: Duration,
    killed: bool,
}

// === impl Key ===

impl Key {
    pub(super) fn name(&self) -> &Name {
        match self {
            Self::Pod(name) | Self::Claim(name) | Self::Volume(name) => name,
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, (_, name)) = match self {
            Self::Pod(name) => ("pod", name),
            Self::Claim(name) => ("persistentvolumeclaim", name),
            Self::Volume(name) => ("persistentvolume", name),
        };
        write!(f, "{kind} {name}")
    }
}

// === impl World: what is imposed ===

impl World {
    pub(super) fn set_rules(&mut self, namespace: &str, rules: KubeletRules) {
        self.rules.insert(namespace.to_owned(), rules);
    }

    pub(super) fn forget(&mut self, namespace: &str) {
        self.rules.remove(namespace);
        self.states.retain(|(of, _), _| of != namespace);
    }

    pub(super) fn set_pod(&mut self, name: Name, state: Option<PodState>) {
        match state {
            None => {
                self.states.remove(&name);
            }
            Some(state) => {
                let uid = self.pods.get(&name).and_then(|pod| pod.metadata.uid.clone());
                self.states.insert(name, Imposed { state, uid: uid.filter(|_| state.ends_pod()) });
            }
        }
    }

    /// Whether there was a running pod to kill.
    pub(super) fn kill_pod(&mut self, name: &Name, now: Now) -> bool {
        let Some(pod) = self.pods.get(name).filter(|pod| Stage::of(pod) == Stage::Running) else {
            return false;
        };
        let uid = uid_of(pod);
        self.remember(name, now);
        self.memories.get_mut(&uid).map(|memory| memory.killed = true).is_some()
    }
}

// === impl World: what is heard ===

impl World {
    /// Whether every kind was listed.
    pub(super) fn is_synced(&self) -> bool {
        self.pods.is_synced() && self.claims.is_synced() && self.volumes.is_synced() && self.classes.is_synced()
    }

    /// Believes nothing until every kind was listed again.
    pub(super) fn distrust(&mut self) {
        self.pods.distrust();
        self.claims.distrust();
        self.volumes.distrust();
        self.classes.distrust();
    }

    /// Takes news in; the objects whose next action may be another now.
    pub(super) fn hear(&mut self, news: News, now: Now) -> BTreeSet<Key> {
        match news {
            News::Pod(change) => {
                let names = take(&mut self.pods, change);
                for name in &names {
                    self.remember(name, now);
                }
                self.forget_dead_pods();
                names.into_iter().map(Key::Pod).collect()
            }
            News::Claim(change) => {
                let names = take(&mut self.claims, change);
                names.into_iter().flat_map(|name| self.around_claim(name)).collect()
            }
            News::Volume(change) => {
                let names = take(&mut self.volumes, change);
                let claims: Vec<Name> = names.iter().filter_map(|name| claim_of(self.volumes.get(name)?)).collect();
                let around = claims.into_iter().flat_map(|claim| self.around_claim(claim)).collect::<Vec<_>>();
                names.into_iter().map(Key::Volume).chain(around).collect()
            }
            News::Class(change) => {
                take(&mut self.classes, change);
                self.keys()
            }
        }
    }

    /// A read found the object gone, or another one in its place.
    pub(super) fn bury(&mut self, key: &Key, uid: &str) {
        match key {
            Key::Pod(name) => self.pods.bury(name, uid),
            Key::Claim(name) => self.claims.bury(name, uid),
            Key::Volume(name) => self.volumes.bury(name, uid),
        };
        self.forget_dead_pods();
    }

    /// A write about this version of the object was answered with the same version.
    pub(super) fn settle(&mut self, key: Key, version: String) {
        let mut settled = std::mem::take(&mut self.settled);
        settled.retain(|key, _| self.identity(key).is_some());
        settled.insert(key, version);
        self.settled = settled;
    }

    /// The uid and the resourceVersion of an object as known.
    pub(super) fn identity(&self, key: &Key) -> Option<(String, String)> {
        let meta = match key {
            Key::Pod(name) => &self.pods.get(name)?.metadata,
            Key::Claim(name) => &self.claims.get(name)?.metadata,
            Key::Volume(name) => &self.volumes.get(name)?.metadata,
        };
        Some((meta.uid.clone()?, meta.resource_version.clone()?))
    }

    /// Everything there is to look at.
    pub(super) fn keys(&self) -> BTreeSet<Key> {
        let pods = self.pods.iter().map(|(name, _)| Key::Pod(name.clone()));
        let claims = self.claims.iter().map(|(name, _)| Key::Claim(name.clone()));
        let volumes = self.volumes.iter().map(|(name, _)| Key::Volume(name.clone()));
        pods.chain(claims).chain(volumes).collect()
    }

    /// A claim, its volume, and the pods that wait for it.
    fn around_claim(&self, name: Name) -> Vec<Key> {
        let volume = self.claims.get(&name).map(|claim| Key::Volume((String::new(), volume::volume_of(claim))));
        let gone = self.claims.get(&name).is_none();
        let released = self.volumes.iter().filter(|(_, volume)| gone && claim_of(volume).as_ref() == Some(&name));
        let waiting = self.pods.iter().filter(|((namespace, _), pod)| {
            *namespace == name.0 && Stage::of(pod) == Stage::Unscheduled && pod::claim_names(pod).contains(&name.1)
        });
        let keys: Vec<Key> = volume
            .into_iter()
            .chain(released.map(|(name, _)| Key::Volume(name.clone())))
            .chain(waiting.map(|(name, _)| Key::Pod(name.clone())))
            .collect();
        keys.into_iter().chain([Key::Claim(name)]).collect()
    }

    fn remember(&mut self, name: &Name, now: Now) {
        let Some(pod) = self.pods.get(name) else { return };
        let (uid, stage) = (uid_of(pod), Stage::of(pod));
        if let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok()) {
            self.addresses.claim(&uid, address);
        }
        let fresh = Memory { stage, since: now.elapsed, killed: false };
        let memory = self.memories.entry(uid.clone()).or_insert(fresh);
        if memory.stage != stage {
            *memory = fresh;
        }
        // A state that ends a pod is for the first pod of that name.
        if let Some(imposed) = self.states.get_mut(name).filter(|imposed| imposed.state.ends_pod()) {
            imposed.uid.get_or_insert(uid);
        }
    }

    fn forget_dead_pods(&mut self) {
        if self.memories.len() <= self.pods.iter().count() {
            return;
        }
        let alive: BTreeSet<String> = self.pods.iter().map(|(_, pod)| uid_of(pod)).collect();
        self.memories.retain(|uid, _| {
            let lives = alive.contains(uid);
            if !lives {
                self.addresses.release(uid);
            }
            lives
        });
    }
}

// === impl World: what is to be done ===

impl World {
    /// The next action about one object.
    pub(super) fn next(&mut self, key: &Key, now: Now) -> Action {
        let action = match key {
            Key::Pod(name) => self.next_pod(name, now),
            Key::Claim(name) => self.next_claim(name, now),
            Key::Volume(name) => match self.volumes.get(name) {
                Some(volume) => {
                    let claim = claim_of(volume).and_then(|claim| self.claims.get(&claim));
                    volume::next_volume(volume, claim)
                }
                None => Action::Rest,
            },
        };
        match (&action, self.settled.get(key)) {
            (Action::Write(Write::PodStatus { .. } | Write::ClaimStatus { .. }), Some(settled))
                if self.identity(key).is_some_and(|(_, version)| version == *settled) =>
            {
                Action::Rest
            }
            _ => action,
        }
    }

    /// What is still to be done in `namespace`, one line for each object; nothing means idle.
    pub(super) fn busy(&mut self, namespace: &str, now: Now) -> Vec<String> {
        if !self.is_synced() {
            return vec!["the kubelet stub has not yet listed pods, claims and volumes".to_owned()];
        }
        let keys: Vec<Key> = self.keys().into_iter().filter(|key| self.namespace(key) == namespace).collect();
        keys.into_iter().filter_map(|key| Some(format!("{key}: {}", self.next(&key, now).pending()?))).collect()
    }

    fn namespace<'a>(&'a self, key: &'a Key) -> &'a str {
        match key {
            Key::Pod(name) | Key::Claim(name) => &name.0,
            Key::Volume(name) => self
                .volumes
                .get(name)
                .and_then(|volume| volume.spec.as_ref()?.claim_ref.as_ref()?.namespace.as_deref())
                .unwrap_or_default(),
        }
    }

    fn next_pod(&mut self, name: &Name, now: Now) -> Action {
        self.remember(name, now);
        let Some(pod) = self.pods.get(name) else { return Action::Rest };
        let uid = uid_of(pod);
        let Some(memory) = self.memories.get(&uid).copied() else { return Action::Rest };
        let claims = match memory.stage {
            Stage::Unscheduled => pod::claim_names(pod).into_iter().map(|claim| self.claim(&name.0, claim)).collect(),
            _ => Vec::new(),
        };
        let moment = Moment {
            elapsed: now.elapsed.saturating_sub(memory.since),
            killed: memory.killed,
            around: Surroundings { now: whole_seconds(now.wall), address: self.addresses.of(&uid) },
        };
        pod::next(pod, &claims, &self.outlook(name, pod), &moment)
    }

    fn next_claim(&self, name: &Name, now: Now) -> Action {
        let Some(claim) = self.claims.get(name) else { return Action::Rest };
        volume::next_claim(claim, self.class(claim), self.volume(claim), whole_seconds(now.wall))
    }

    fn outlook(&self, name: &Name, pod: &Pod) -> Outlook {
        let rules =
            self.rules.get(&name.0).map_or_else(|| KubeletRules::default().outlook(pod), |rules| rules.outlook(pod));
        let imposed = self
            .states
            .get(name)
            .filter(|imposed| imposed.uid.is_none() || imposed.uid == pod.metadata.uid)
            .map(|imposed| imposed.state);
        Outlook { state: imposed.or(rules.state), ..rules }
    }

    fn claim(&self, namespace: &str, name: String) -> Claim {
        let claim = self.claims.get(&(namespace.to_owned(), name.clone()));
        Claim {
            name,
            standing: volume::standing(
                claim,
                claim.and_then(|claim| self.class(claim)),
                claim.and_then(|claim| self.volume(claim)),
            ),
            resource_version: claim.and_then(|claim| claim.metadata.resource_version.clone()),
        }
    }

    fn class(&self, claim: &PersistentVolumeClaim) -> Option<&StorageClass> {
        self.classes.get(&(String::new(), volume::class_name(claim)?.to_owned()))
    }

    fn volume(&self, claim: &PersistentVolumeClaim) -> Option<&PersistentVolume> {
        self.volumes.get(&(String::new(), volume::volume_of(claim)))
    }
}

fn take<K: kube::Resource>(cache: &mut Cache<K>, change: Change<K>) -> BTreeSet<Name> {
    match change {
        Change::Applied(object) => cache.apply(*object).into_iter().collect(),
        Change::Deleted(object) => cache.delete(&object).into_iter().collect(),
        Change::Listed(objects, listing) => cache.list(objects, listing),
    }
}

fn claim_of(volume: &PersistentVolume) -> Option<Name> {
    let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some((reference.namespace.clone()?, reference.name.clone()?))
}

fn uid_of(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).expect("a whole second of a valid time is valid")
}

#[cfg(test)]
mod tests;
