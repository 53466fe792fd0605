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
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::JoinSet;

/// Shared by all runs on a control plane.
pub(crate) struct Witness {
    client: Client,
    hub: Arc<Hub>,
    watched: Mutex<BTreeSet<ResourceKey>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Witness {
    /// Watches nothing yet.
    pub(crate) fn new(client: Client, hub: Arc<Hub>) -> Self {
        Self { client, hub, watched: Mutex::default(), tasks: Mutex::default() }
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
            let (client, hub) = (self.client.clone(), self.hub.clone());
            lists.spawn(async move {
                let mut watch = KindWatch { client, hub, kind, known: BTreeMap::new() };
                let revision = watch.list(First::Yes).await?;
                Ok::<_, kube::Error>((watch, revision))
            });
        }
        while let Some(listed) = lists.join_next().await {
            let Ok(listed) = listed else { continue };
            let (watch, revision) = listed.map_err(Error::request("list every kind for the witness"))?;
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.spawn(watch.follow(revision));
        }
        Ok(kinds)
    }

    /// Ends all watches.
    pub(crate) async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }
}

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
}

struct KindWatch {
    client: Client,
    hub: Arc<Hub>,
    kind: KindInfo,
    /// The latest version of each object by uid: what a new list is compared with.
    known: BTreeMap<String, Known>,
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

    /// Lists; what is there the first time was found, later differences mean that versions were missed.
    async fn list(&mut self, first: First) -> Result<u64, kube::Error> {
        let list: Value = self.client.request(self.request("limit=0")?).await?;
        let revision = list.revision().map_or(0, |r| r.0);
        if first == First::No {
            self.forget_missing(&list);
        }
        for item in list["items"].as_array().into_iter().flatten() {
            let mut object = item.clone();
            // Items of a list leave out what the list says.
            object["apiVersion"] = json!(self.kind.api_version());
            object["kind"] = json!(self.kind.kind);
            let (Some(uid), Some(at)) = (object.uid(), object.revision()) else { continue };
            let before = self.known.insert(uid.0, Known::of(&object, at.0));
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
    fn forget_missing(&mut self, list: &Value) {
        let there: BTreeSet<String> =
            list["items"].as_array().into_iter().flatten().filter_map(|o| Some(o.uid()?.0)).collect();
        let missing: Vec<String> = self.known.keys().filter(|uid| !there.contains(*uid)).cloned().collect();
        for uid in missing {
            let Some(known) = self.known.remove(&uid) else { continue };
            let revision = list.revision().unwrap_or_default();
            let object = json!({
                "apiVersion": self.kind.api_version(), "kind": self.kind.kind,
                "metadata": {"name": known.name, "namespace": known.namespace, "uid": uid,
                    "resourceVersion": revision.0.to_string()},
            });
            let resource = self.kind.key();
            self.hub.witness_lost(&resource, &object, "the watch expired and a deletion was missed");
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
                self.known.remove(&uid.0);
            } else {
                self.known.insert(uid.0, Known::of(&object, at.0));
            }
            self.hub.version(Version { resource: self.kind.key(), kind, revision: Revision(at.0), object });
        }
        Ok(())
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
