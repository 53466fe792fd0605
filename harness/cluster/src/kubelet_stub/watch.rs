//! One watch a kind over all namespaces, kept up through ends, 410s and restarts of the API server.

use std::{fmt::Debug, pin::pin, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Resource,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};

use super::{
    cache::Listing,
    world::{Change, News},
};

/// Sends every change of a kind, as `News` made by `wrap`, until nobody listens. A new `epoch` begins with a listing
/// that replaces all that was known.
pub(super) async fn follow<K>(
    api: Api<K>,
    mut epoch: watch::Receiver<u64>,
    out: mpsc::Sender<News>,
    wrap: fn(Change<K>) -> News,
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    K::DynamicType: Default,
{
    let mut listing = Listing::Continues;
    let mut failures = 0;
    loop {
        let mut events = pin!(watcher(api.clone(), watcher::Config::default()));
        let mut listed = Vec::new();
        loop {
            let event = tokio::select! {
                changed = epoch.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    listing = Listing::Replaces;
                    break;
                }
                event = events.next() => event,
            };
            let change = match event {
                None => break,
                Some(Err(error)) => {
                    tracing::debug!(%error, kind = %K::kind(&K::DynamicType::default()), "the watch failed, trying again");
                    failures += 1;
                    tokio::time::sleep(backoff(failures)).await;
                    if is_refused(&error) {
                        break;
                    }
                    continue;
                }
                Some(Ok(Event::Init)) => {
                    listed.clear();
                    continue;
                }
                Some(Ok(Event::InitApply(object))) => {
                    listed.push(object);
                    continue;
                }
                Some(Ok(Event::InitDone)) => {
                    Change::Listed(std::mem::take(&mut listed), std::mem::replace(&mut listing, Listing::Continues))
                }
                Some(Ok(Event::Apply(object))) => Change::Applied(Box::new(object)),
                Some(Ok(Event::Delete(object))) => Change::Deleted(Box::new(object)),
            };
            failures = 0;
            if out.send(wrap(change)).await.is_err() {
                return;
            }
        }
    }
}

/// Whether the API server refuses to go on from where we are. kube-runtime lists anew when a stream says 410, but asks
/// for the same version for ever when the answer itself is 410.
fn is_refused(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(_)))
}

/// 50 ms, doubling to 1 s: a restarted API server is found again soon.
pub(super) fn backoff(failures: u32) -> Duration {
    Duration::from_millis(50 << failures.saturating_sub(1).min(5)).min(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
