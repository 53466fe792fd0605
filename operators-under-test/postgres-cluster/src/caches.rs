//! One watch per kind: it fills a cache *and* triggers reconciles, in this order.
//!
//! An event says only "look again"; what there is to see comes from the caches. Three things make that safe:
//!
//! * A cache is empty between the start of the process and the end of its first list. Nothing is decided before
//!   [`Caches::look`] has waited for all of them: "I know of no pods" is not "there are no pods".
//! * After a gap a watch lists again and *replaces* the cache. Objects that went away in the gap vanish without an event
//!   of their own, so the end of every list triggers all clusters.
//! * After a write we wait until the cache shows it ([`Caches::wait_until`]), and do not act on a world without it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch as signal;

use crate::backoff::JitteredBackoff;
use crate::children::{CLUSTER_LABEL, ChildKey, Kind, MANAGED_BY_LABEL, MANAGER};
use crate::crd::PostgresCluster;
use crate::error::Error;
use crate::observed::Observed;

/// A watch that the server leaves open without a word is taken for dead 5 s after this.
const WATCH_SECONDS: u32 = 60;

/// The caches, readable.
pub struct Caches {
    clusters: Store<PostgresCluster>,
    children: BTreeMap<Kind, Store<DynamicObject>>,
    changed: signal::Sender<()>,
    images: Arc<str>,
}

/// The triggers that fill the caches as they are polled.
pub struct Triggers {
    /// Clusters that changed.
    pub clusters: BoxStream<'static, Result<PostgresCluster, watcher::Error>>,
    /// Children that changed.
    pub children: Vec<(ApiResource, BoxStream<'static, Result<DynamicObject, watcher::Error>>)>,
    /// A kind was listed anew.
    pub relisted: UnboundedReceiver<()>,
}

/// Starts to watch one namespace. Only children with our label are seen: other people's Secrets are none of our
/// business, and not in our memory.
pub fn watch_namespace(client: &Client, namespace: &str, images: &str) -> (Caches, Triggers) {
    let (changed, _) = signal::channel(());
    let (relist, relisted) = unbounded();

    let writer = Writer::<PostgresCluster>::default();
    let clusters = writer.as_reader();
    let api: Api<PostgresCluster> = Api::namespaced(client.clone(), namespace);
    let cluster_triggers = triggers(api, watcher::Config::default(), writer, changed.clone(), relist.clone());

    let mut stores = BTreeMap::new();
    let mut children = Vec::new();
    for kind in Kind::ALL {
        let resource = kind.api_resource();
        let writer = Writer::new(resource.clone());
        stores.insert(kind, writer.as_reader());
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let config = watcher::Config::default().labels(&format!("{MANAGED_BY_LABEL}={MANAGER}"));
        children.push((resource, triggers(api, config, writer, changed.clone(), relist.clone()).boxed()));
    }
    let caches = Caches { clusters, children: stores, changed, images: images.into() };
    (caches, Triggers { clusters: cluster_triggers.boxed(), children, relisted })
}

fn triggers<K>(
    api: Api<K>,
    config: watcher::Config,
    writer: Writer<K>,
    changed: signal::Sender<()>,
    relist: UnboundedSender<()>,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
{
    watch(api, config.timeout(WATCH_SECONDS))
        .backoff(JitteredBackoff::default())
        .reflect(writer)
        .inspect(move |event| {
            changed.send_replace(());
            if matches!(event, Ok(Event::InitDone)) {
                // Fails only while the controller shuts down, and then nobody needs to look.
                let _ = relist.unbounded_send(());
            }
        })
        .touched_objects()
        // Each watch retries by itself. Passed on, an error of one would make the controller pause all of them.
        .filter_map(|item| async {
            item.inspect_err(|error| tracing::warn!(%error, "a watch failed and is retried")).ok().map(Ok)
        })
}

/// The cluster that a child belongs to, by its label: retained volumes and children whose ownerReference was stripped
/// have no other tie.
pub fn cluster_of(child: &DynamicObject) -> Option<ObjectRef<PostgresCluster>> {
    let name = child.labels().get(CLUSTER_LABEL)?;
    Some(ObjectRef::new(name).within(&child.namespace()?))
}

// === impl Caches ===

impl Caches {
    /// The clusters, for the controller.
    pub fn clusters(&self) -> Store<PostgresCluster> {
        self.clusters.clone()
    }

    /// The children of one cluster as far as the caches know them, as soon as they know anything.
    pub async fn look(&self, cluster: &PostgresCluster) -> Result<Observed, Error> {
        let mut observed = Observed::at(jiff::Timestamp::now(), Arc::clone(&self.images));
        let name = cluster.name_any();
        let belongs = |child: &DynamicObject| {
            child.labels().get(CLUSTER_LABEL) == Some(&name) && child.namespace() == cluster.namespace()
        };
        for (kind, store) in &self.children {
            store.wait_until_ready().await.map_err(|_| Error::CacheClosed)?;
            for child in store.state_filter(belongs) {
                observed.see(*kind, child);
            }
        }
        Ok(observed)
    }

    /// Waits until the caches look a certain way, or not: `false` when they still do not `within` that time. A watch
    /// may be broken, and then acting on old news is for the API server to refuse.
    pub async fn wait_until(&self, within: Duration, expected: impl Fn(&Self) -> bool) -> bool {
        let mut changes = self.changed.subscribe();
        let seen = async {
            while !expected(self) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(within, seen).await.is_ok()
    }

    /// Whether the cache has the child in that version or a later one.
    pub fn shows(&self, namespace: &str, key: &ChildKey, written: &DynamicObject) -> bool {
        self.child(namespace, key).is_some_and(|seen| is_at_least(&seen.metadata, &written.metadata))
    }

    /// Whether the cache knows that the object with that uid is gone, or on its way out.
    pub fn shows_gone(&self, namespace: &str, key: &ChildKey, uid: &str) -> bool {
        self.child(namespace, key)
            .is_none_or(|seen| seen.uid().as_deref() != Some(uid) || seen.metadata.deletion_timestamp.is_some())
    }

    /// Whether the cache has the cluster in that version or a later one.
    pub fn shows_cluster(&self, written: &PostgresCluster) -> bool {
        let seen = self.clusters.get(&ObjectRef::from_obj(written));
        seen.is_some_and(|seen| is_at_least(&seen.metadata, &written.metadata))
    }

    fn child(&self, namespace: &str, key: &ChildKey) -> Option<Arc<DynamicObject>> {
        let store = self.children.get(&key.kind)?;
        store.get(&ObjectRef::new_with(&key.name, key.kind.api_resource()).within(namespace))
    }
}

/// resourceVersions of one resource are comparable as numbers (KEP-5504, in effect since etcd3).
fn is_at_least(seen: &kube::api::ObjectMeta, written: &kube::api::ObjectMeta) -> bool {
    let number = |meta: &kube::api::ObjectMeta| meta.resource_version.as_ref()?.parse::<u64>().ok();
    match (number(seen), number(written)) {
        (Some(seen), Some(written)) => seen >= written,
        _ => seen.resource_version == written.resource_version,
    }
}
