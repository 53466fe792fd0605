//! Wires watches to the reconciler.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use kube::Client;
use kube::runtime::Controller;
use kube::runtime::events::{Recorder, Reporter};

use crate::caches::{Triggers, cluster_of, watch_namespace};
use crate::children::MANAGER;
use crate::lease::Leadership;
use crate::reconcile::{Shared, after_error, reconcile};

/// Reconciles the clusters of one namespace until `stop` completes; steps under way are finished.
///
/// The watches start here, after the lease was won: their first lists are quorum reads, so this leader sees all that the
/// one before it wrote.
pub async fn run(
    client: Client,
    namespace: &str,
    images: &str,
    identity: &str,
    leadership: Leadership,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) {
    let (caches, triggers) = watch_namespace(&client, namespace, images);
    let Triggers { clusters, children, relisted } = triggers;
    let mut controller = Controller::for_stream(clusters, caches.clusters());
    for (resource, stream) in children {
        controller = controller.watches_stream_with(stream, |child| cluster_of(&child), resource);
    }
    let reporter = Reporter { controller: MANAGER.to_owned(), instance: Some(identity.to_owned()) };
    let shared = Shared {
        recorder: Recorder::new(client.clone(), reporter),
        client,
        caches,
        leadership,
        backoffs: Mutex::new(HashMap::new()),
    };
    controller
        .reconcile_all_on(relisted)
        .graceful_shutdown_on(stop)
        .run(reconcile, after_error, Arc::new(shared))
        // `after_error` has told of the errors already.
        .for_each(|_| std::future::ready(()))
        .await;
}
