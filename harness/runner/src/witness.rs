//! The witness: an independent watch on every kind, straight at the API server. What it sees is the truth about every
//! object version: each exactly once, each object's versions in order.

use crate::{Error, hub::Hub};
use futures::TryStreamExt;
use kube::{Client, core::WatchEvent};
use serde_json::{Value, json};
use spiritlevel_cluster::Kind;
use spiritlevel_model::{
    Meta, ResourceKey, Revision,
    history::{KindInfo, Version, VersionType},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::JoinSet, time::Instant};

/// Shared by all runs on a control plane.
pub(crate) struct Witness {
    client: Client,
    hub: Arc<Hub>,
    watched: Mutex<BTreeSet<ResourceKey>>,
    watches: Mutex<Vec<KindWatch>>,
    tasks: Mutex<JoinSet<()>>,
}

/// How much the witness may rely on what it knew before it paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// It had seen all, and since then only the API server itself can have written.
    CaughtUp,
    /// Something may have been missed.
    Doubtful,
    /// Another past begins: what it knew is void.
    Anew,
}

impl Witness {
    /// Watches nothing yet.
    pub(crate) fn new(client: Client, hub: Arc<Hub>) -> Self {
        Self { client, hub, watched: Mutex::default(), watches: Mutex::default(), tasks: Mutex::default() }
    }

    /// Discovers kinds and watches those that are new. Returns all, once every watch is open.
    pub(crate) async fn extend(&self) -> Result<Vec<Kind>, Error> {
        let kinds = spiritlevel_cluster::discovery::kinds(&self.client).await?;
        let infos: Vec<KindInfo> = kinds.iter().filter(|k| is_watched(k)).map(info).collect();
        self.hub.set_kinds(infos.clone());
        let new: Vec<KindInfo> = {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            infos.into_iter().filter(|k| watched.insert(k.key())).collect()
        };
        let mut lists = JoinSet::new();
        for kind in new {
            let watch = KindWatch { client: self.client.clone(), hub: self.hub.clone(), kind, known: Arc::default() };
            self.watches().push(watch.clone());
            lists.spawn(watch.listed(First::Yes));
        }
        self.follow_all(lists).await?;
        Ok(kinds)
    }

    fn watches(&self) -> MutexGuard<'_, Vec<KindWatch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow_all(&self, mut lists: JoinSet<Result<(KindWatch, u64), kube::Error>>) -> Result<(), Error> {
        while let Some(listed) = lists.join_next().await {
            let Ok(listed) = listed else { continue };
            let (watch, revision) = listed.map_err(Error::request("list every kind for the witness"))?;
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.spawn(watch.follow(revision));
        }
        Ok(())
    }

    /// Waits until all that the API server has is known here. Only for when nobody writes; says whether it came to that.
    pub(crate) async fn caught_up(&self, limit: Duration) -> bool {
        let watches = self.watches().clone();
        let all = async {
            for watch in &watches {
                // The watch brings what is missing; there is no event for its having brought all.
                while !watch.is_up_to_date().await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        tokio::time::timeout(limit, all).await.is_ok()
    }

    /// Lists every kind again and goes on watching. Nobody may write before this returns.
    pub(crate) async fn resume(&self, how: Resume) -> Result<(), Error> {
        let mut lists = JoinSet::new();
        for watch in self.watches().iter().cloned() {
            if how == Resume::Anew {
                watch.known().clear();
            }
            lists.spawn(watch.listed(match how {
                Resume::Anew => First::Yes,
                Resume::CaughtUp => First::Trusted,
                Resume::Doubtful => First::No,
            }));
        }
        self.follow_all(lists).await
    }

    /// Ends all watches, until [`Self::resume`].
    pub(crate) async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }
}

/// How long an API server that has just started may take to fill its caches.
const FILLS: Duration = Duration::from_secs(60);

/// Events are messages about objects, stored under two names; everything else that can be watched is.
fn is_watched(kind: &Kind) -> bool {
    kind.can("list") && kind.can("watch") && kind.plural != "events"
}

fn info(kind: &Kind) -> KindInfo {
    KindInfo {
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        resource: kind.plural.clone(),
        namespaced: kind.namespaced,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum First {
    Yes,
    No,
    /// Not the first, and nothing can have been missed but what the API server writes when it starts.
    Trusted,
}

#[derive(Clone)]
struct KindWatch {
    client: Client,
    hub: Arc<Hub>,
    kind: KindInfo,
    /// The latest version of each object by uid: what a new list is compared with.
    known: Arc<Mutex<BTreeMap<String, Known>>>,
}

struct Known {
    revision: u64,
    namespace: Option<String>,
    name: Option<String>,
}

impl Known {
    fn of(object: &Value, revision: u64) -> Self {
        Self { revision, namespace: object.namespace().map(Into::into), name: object.name().map(Into::into) }
    }
}

impl KindWatch {
    fn url(&self, query: &str) -> String {
        let root = if self.kind.group.is_empty() { "api" } else { "apis" };
        format!("/{root}/{}/{}?{query}", self.kind.api_version(), self.kind.resource)
    }

    fn request(&self, query: &str) -> Result<http::Request<Vec<u8>>, kube::Error> {
        http::Request::get(self.url(query)).body(Vec::new()).map_err(kube::Error::HttpError)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listed(mut self, first: First) -> Result<(Self, u64), kube::Error> {
        let begun = Instant::now();
        loop {
            match self.list(first).await {
                Ok(revision) => return Ok((self, revision)),
                // An API server that is ready may still say that it fills the cache of a kind.
                Err(kube::Error::Api(status)) if status.code == 429 && begun.elapsed() < FILLS => pause().await,
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether a list of now says nothing new.
    async fn is_up_to_date(&self) -> bool {
        let Ok(request) = self.request("limit=0") else { return false };
        let Ok(list) = self.client.request::<Value>(request).await else { return false };
        let known = self.known();
        let items = || list["items"].as_array().into_iter().flatten();
        let there: BTreeSet<String> = items().filter_map(|o| Some(o.uid()?.0)).collect();
        let new = |o: &Value| {
            let (Some(uid), Some(at)) = (o.uid(), o.revision()) else { return false };
            known.get(&uid.0).is_none_or(|k| k.revision < at.0)
        };
        !items().any(new) && known.keys().all(|uid| there.contains(uid))
    }

    /// Lists; what is there the first time was found, later differences mean that versions were missed.
    async fn list(&mut self, first: First) -> Result<u64, kube::Error> {
        let list: Value = self.client.request(self.request("limit=0")?).await?;
        let revision = list.revision().map_or(0, |r| r.0);
        if first != First::Yes {
            self.forget_missing(&list, first);
        }
        for item in list["items"].as_array().into_iter().flatten() {
            let mut object = item.clone();
            // Items of a list leave out what the list says.
            object["apiVersion"] = json!(self.kind.api_version());
            object["kind"] = json!(self.kind.kind);
            let (Some(uid), Some(at)) = (object.uid(), object.revision()) else { continue };
            let before = self.known().insert(uid.0, Known::of(&object, at.0));
            if before.is_some_and(|b| b.revision == at.0) {
                continue;
            }
            if first == First::No {
                self.hub.witness_lost(&self.kind.key(), &object, "the watch expired and a version was missed");
            }
            let kind = if first == First::Yes { VersionType::Found } else { VersionType::Modified };
            self.hub.version(Version { resource: self.kind.key(), kind, revision: at, object });
        }
        Ok(revision)
    }

    /// What a later list no longer has was deleted unseen.
    fn forget_missing(&mut self, list: &Value, first: First) {
        let there: BTreeSet<String> =
            list["items"].as_array().into_iter().flatten().filter_map(|o| Some(o.uid()?.0)).collect();
        let missing: Vec<String> = self.known().keys().filter(|uid| !there.contains(*uid)).cloned().collect();
        for uid in missing {
            let Some(known) = self.known().remove(&uid) else { continue };
            let revision = list.revision().unwrap_or_default();
            let object = json!({
                "apiVersion": self.kind.api_version(), "kind": self.kind.kind,
                "metadata": {"name": known.name, "namespace": known.namespace, "uid": uid,
                    "resourceVersion": revision.0.to_string()},
            });
            let resource = self.kind.key();
            if first == First::No {
                self.hub.witness_lost(&resource, &object, "the watch expired and a deletion was missed");
            }
            self.hub.version(Version { resource, kind: VersionType::Deleted, revision, object });
        }
    }

    /// Watches for ever, going on where it was.
    async fn follow(mut self, mut revision: u64) {
        loop {
            match self.watch(&mut revision).await {
                Ok(()) => {}
                Err(kube::Error::Api(status)) if status.code == 410 => match self.list(First::No).await {
                    Ok(at) => revision = at,
                    Err(_) => pause().await,
                },
                // The API server is away, or the CRD is: its objects go with it, and their deletions have been seen.
                Err(_) => pause().await,
            }
        }
    }

    async fn watch(&mut self, revision: &mut u64) -> Result<(), kube::Error> {
        let query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion={revision}");
        let events = self.client.request_events::<Value>(self.request(&query)?).await?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await? {
            let (kind, object) = match event {
                WatchEvent::Added(o) => (VersionType::Added, o),
                WatchEvent::Modified(o) => (VersionType::Modified, o),
                WatchEvent::Deleted(o) => (VersionType::Deleted, o),
                WatchEvent::Bookmark(b) => {
                    *revision = b.metadata.resource_version.parse().unwrap_or(*revision);
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
            let (Some(uid), Some(at)) = (object.uid(), object.revision()) else { continue };
            *revision = at.0;
            if kind == VersionType::Deleted {
                self.known().remove(&uid.0);
            } else {
                self.known().insert(uid.0, Known::of(&object, at.0));
            }
            self.hub.version(Version { resource: self.kind.key(), kind, revision: Revision(at.0), object });
        }
        Ok(())
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
