//! What all runs on a control plane share: versions from the witness, and exchanges of the built-in controllers and of the
//! kubelet stub. Each goes to the run whose namespace it is about; what is cluster-scoped goes to every run.

use futures::future::BoxFuture;
use serde_json::Value;
use spiritlevel_model::{
    Actor, Meta, RequestId, ResourceKey,
    fault::{Exchange, Firing, Frame, FrameFate, Stream, Until},
    history::{Event, KindInfo, Reply, Version, VersionType},
    world::is_heartbeat,
};
use spiritlevel_proxy::Director;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A run as the hub sees it.
pub trait Guest: Director {
    /// The run's own name on this control plane: its namespace.
    fn key(&self) -> &str;

    /// Whether this namespace is one of the run's.
    fn owns(&self, namespace: &str) -> bool;
}

/// Routes to runs.
#[derive(Default)]
pub struct Hub {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    guests: Vec<Arc<dyn Guest>>,
    kinds: Vec<KindInfo>,
    /// Live cluster-scoped objects: what a run finds when it begins.
    cluster: BTreeMap<(ResourceKey, String), Version>,
    /// Which runs heard of a request, for its answer.
    exchanges: BTreeMap<RequestId, Vec<Arc<dyn Guest>>>,
}

impl Hub {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kinds that are served.
    pub(crate) fn kinds(&self) -> Vec<KindInfo> {
        self.inner().kinds.clone()
    }

    /// Other kinds are served now.
    pub(crate) fn set_kinds(&self, kinds: Vec<KindInfo>) {
        let mut inner = self.inner();
        inner.kinds = kinds;
        let event = Event::Kinds(inner.kinds.clone());
        inner.guests.iter().for_each(|g| g.record(event.clone()));
    }

    /// A run begins: it hears the kinds and what is there.
    pub fn join(&self, guest: Arc<dyn Guest>) {
        let mut inner = self.inner();
        guest.record(Event::Kinds(inner.kinds.clone()));
        for version in inner.cluster.values() {
            let found = Version { kind: VersionType::Found, ..version.clone() };
            if concerns(guest.as_ref(), &found) {
                guest.record(Event::Version(found));
            }
        }
        inner.guests.push(guest);
    }

    /// A run is over.
    pub fn leave(&self, guest: &Arc<dyn Guest>) {
        let mut inner = self.inner();
        inner.guests.retain(|g| !Arc::ptr_eq(g, guest));
        inner.exchanges.retain(|_, gs| !gs.iter().any(|g| Arc::ptr_eq(g, guest)));
    }

    /// The witness saw a version.
    pub(crate) fn version(&self, version: Version) {
        let mut inner = self.inner();
        if version.object.namespace().is_none() {
            let key = (version.resource.clone(), version.object.name().unwrap_or_default().to_owned());
            if version.kind == VersionType::Deleted {
                inner.cluster.remove(&key);
            } else {
                inner.cluster.insert(key, version.clone());
            }
        }
        for guest in inner.guests.iter().filter(|g| concerns(g.as_ref(), &version)) {
            guest.record(Event::Version(version.clone()));
        }
    }

    /// The witness lost its place, and with it versions of this object.
    pub(crate) fn witness_lost(&self, resource: &ResourceKey, object: &Value, why: &str) {
        // Nodes and the heart-beats of the cluster's own parts change all the time, and nobody is judged by them.
        if is_heartbeat(resource, object) || resource.resource == "nodes" {
            return;
        }
        for guest in self.inner().guests.iter().filter(|g| is_of(g.as_ref(), resource, object)) {
            guest.record(Event::WitnessLost { resource: resource.clone(), why: why.into() });
        }
    }

    fn guest(&self, namespace: Option<&str>) -> Option<Arc<dyn Guest>> {
        let namespace = namespace?;
        self.inner().guests.iter().find(|g| g.owns(namespace)).cloned()
    }

    /// On a shared listener a fault is known by its run as well: runs of one scenario have faults of one name.
    fn by_fault<'a>(&self, qualified: &'a str) -> Option<(Arc<dyn Guest>, &'a str)> {
        let (key, fault) = qualified.split_once(SEPARATOR)?;
        Some((self.inner().guests.iter().find(|g| g.key() == key).cloned()?, fault))
    }
}

/// Stands in no name of a namespace or fault.
const SEPARATOR: char = '\u{1f}';

/// Whether a version is a run's business.
fn concerns(guest: &dyn Guest, version: &Version) -> bool {
    is_of(guest, &version.resource, &version.object)
}

fn is_of(guest: &dyn Guest, resource: &ResourceKey, object: &Value) -> bool {
    let namespace = match (object.namespace(), resource.resource.as_str()) {
        (Some(namespace), _) => Some(namespace),
        (None, "namespaces") => object.name(),
        // A volume belongs to its claim.
        (None, "persistentvolumes") => object["spec"]["claimRef"]["namespace"].as_str(),
        // An address belongs to its Service.
        (None, "ipaddresses") => object["spec"]["parentRef"]["namespace"].as_str(),
        _ => None,
    };
    namespace.is_none_or(|n| guest.owns(n))
}

impl Director for Hub {
    fn on_request(&self, exchange: &Exchange<'_>) -> Option<Firing> {
        let guest = self.guest(exchange.info.namespace.as_deref())?;
        let firing = guest.on_request(exchange)?;
        Some(Firing { fault: format!("{}{SEPARATOR}{}", guest.key(), firing.fault), ..firing })
    }

    fn asks_for_outcome(&self, exchange: &Exchange<'_>) -> bool {
        let guest = self.guest(exchange.info.namespace.as_deref());
        guest.is_some_and(|g| g.asks_for_outcome(exchange))
    }

    fn on_frame(&self, _: &Stream, _: &Frame<'_>) -> FrameFate {
        // Built-in controllers watch all namespaces at once; their streams are nobody's.
        FrameFate::Deliver
    }

    fn on_stream_end(&self, _: &Stream) {}

    fn perform<'a>(&'a self, firing: &'a Firing, exchange: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some((guest, fault)) = self.by_fault(&firing.fault) {
                guest.perform(&Firing { fault: fault.into(), ..firing.clone() }, exchange).await;
            }
        })
    }

    fn answered<'a>(&'a self, firing: &'a Firing, exchange: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some((guest, fault)) = self.by_fault(&firing.fault) {
                guest.answered(&Firing { fault: fault.into(), ..firing.clone() }, exchange).await;
            }
        })
    }

    fn released<'a>(&'a self, fault: &'a str, until: &'a Until) -> BoxFuture<'a, String> {
        Box::pin(async move {
            match self.by_fault(fault) {
                Some((guest, fault)) => guest.released(fault, until).await,
                None => "its run is over".into(),
            }
        })
    }

    fn healed<'a>(&'a self, fault: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some((guest, fault)) = self.by_fault(fault) {
                guest.healed(fault).await;
            }
        })
    }

    /// kube-controller-manager names each controller's ServiceAccount at the end of its User-Agent
    /// (`--use-service-account-credentials`).
    fn actor(&self, listener: &Actor, user_agent: Option<&str>) -> Actor {
        let account = user_agent.and_then(|u| u.rsplit_once("/system:serviceaccount:kube-system:"));
        account.map_or_else(|| listener.clone(), |(_, name)| Actor::controller(name))
    }

    fn record(&self, mut event: Event) {
        if let Event::Fault(record) = &mut event {
            let Some((guest, fault)) = self.by_fault(&record.name) else { return };
            record.name = fault.to_owned();
            guest.record(event);
            return;
        }
        if let Event::Reply(Reply { fault: Some(fault), .. }) = &mut event
            && let Some((_, name)) = fault.split_once(SEPARATOR)
        {
            *fault = name.to_owned();
        }
        let mut inner = self.inner();
        let guests = match &event {
            // Reads of the controllers are nobody's business.
            Event::Request(r) if !r.info.verb.is_write() => Vec::new(),
            Event::Request(r) => {
                let all = inner.guests.iter();
                let guests: Vec<_> = match r.info.namespace.as_deref() {
                    Some(namespace) => all.filter(|g| g.owns(namespace)).cloned().collect(),
                    None => all.cloned().collect(),
                };
                if !guests.is_empty() {
                    inner.exchanges.insert(r.id, guests.clone());
                }
                guests
            }
            Event::Answer(a) => inner.exchanges.get(&a.id).cloned().unwrap_or_default(),
            Event::Reply(r) => inner.exchanges.remove(&r.id).unwrap_or_default(),
            _ => Vec::new(),
        };
        drop(inner);
        for guest in guests {
            guest.record(event.clone());
        }
    }
}
