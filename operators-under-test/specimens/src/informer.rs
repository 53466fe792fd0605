//! A home-made informer: list, watch, and a queue of work; for specimens whose bug lies in exactly that.

use std::{fmt::Debug, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    backoff::Backoff,
    child,
    control::{Reconcile, look},
    error::Result,
    operator::Operator,
};

/// Between the end of one watch and the next list.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// What a watch says about an object.
#[derive(Debug)]
pub(crate) enum Seen<K> {
    /// It was listed, added or modified.
    Present(K),
    /// A `DELETED` event came for it.
    Deleted(K),
}

/// How a watch ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    /// The server closed it in good order, as it does every few minutes.
    #[error("closed")]
    Closed,
    /// 410: the version to go on from is no longer known; as an answer or as an event in the stream.
    #[error("expired")]
    Expired,
    /// A request failed or the connection broke.
    #[error("broken: {0}")]
    Broken(#[from] kube::Error),
}

/// A piece of work.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Look at the Sample of this name.
    Look(String),
    /// The Sample of this name was seen to vanish.
    Vanished(String),
}

/// Where work is put.
pub(crate) type Queue = mpsc::UnboundedSender<Task>;

/// Lists the objects once and watches them from there, until the watch ends.
pub(crate) async fn list_and_watch<K>(api: &Api<K>, labels: Option<&str>, mut seen: impl FnMut(Seen<K>)) -> End
where
    K: Clone + DeserializeOwned + Debug,
{
    let (mut list, mut watch) = (ListParams::default(), WatchParams::default());
    list.label_selector = labels.map(str::to_owned);
    watch.label_selector.clone_from(&list.label_selector);
    let listed = match api.list(&list).await {
        Ok(listed) => listed,
        Err(error) => return End::Broken(error),
    };
    let version = listed.metadata.resource_version.unwrap_or_default();
    listed.items.into_iter().for_each(|object| seen(Seen::Present(object)));
    let events = match api.watch(&watch, &version).await {
        Ok(events) => events,
        Err(kube::Error::Api(status)) if status.code == 410 => return End::Expired,
        Err(error) => return End::Broken(error),
    };
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => seen(Seen::Present(object)),
            Ok(WatchEvent::Deleted(object)) => seen(Seen::Deleted(object)),
            Ok(WatchEvent::Bookmark(_)) => {}
            Ok(WatchEvent::Error(status)) if status.code == 410 => return End::Expired,
            Ok(WatchEvent::Error(status)) => return End::Broken(kube::Error::Api(status)),
            Err(error) => return End::Broken(error),
        }
    }
    End::Closed
}

/// Watches the ConfigMaps of all Samples for ever, and lists again however a watch ends.
pub(crate) async fn follow_children(operator: &Operator, queue: &Queue) {
    let children = operator.api::<ConfigMap>();
    loop {
        let end = list_and_watch(&children, Some(child::SELECTOR), |seen| {
            let (Seen::Present(child) | Seen::Deleted(child)) = seen;
            if let Some(name) = child::sample_of(&child) {
                put(queue, Task::Look(name));
            }
        })
        .await;
        tracing::info!(%end, "the watch of ConfigMaps ended; listing again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Puts a piece of work into the queue.
pub(crate) fn put(queue: &Queue, task: Task) {
    // The other end lives as long as the process: it is polled together with this one.
    let _ = queue.send(task);
}

/// Does the work in the order it comes; what failed comes again after a while.
pub(crate) async fn work<R: Reconcile>(operator: &Operator, mut queue: mpsc::UnboundedReceiver<Task>, reconciler: R) {
    let backoff = Backoff::default();
    let mut later = JoinSet::new();
    loop {
        let task = tokio::select! {
            Some(task) = queue.recv() => task,
            Some(Ok(task)) = later.join_next() => task,
            else => return,
        };
        let done: Result<()> = match &task {
            Task::Look(name) => look(operator, name, &reconciler).await,
            Task::Vanished(name) => reconciler.vanished(name).await,
        };
        let (Task::Look(name) | Task::Vanished(name)) = &task;
        match done {
            Ok(()) => backoff.succeeded(name),
            Err(error) => {
                let wait = backoff.after_failure(name);
                tracing::warn!(sample = name, ?wait, "failed to {}; will try again", error.chain());
                later.spawn(async move {
                    tokio::time::sleep(wait).await;
                    task
                });
            }
        }
    }
}
