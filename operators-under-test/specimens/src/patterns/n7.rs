//! N7: correct as long as no event gets lost in a live watch; a negative control.
//!
//! An ordinary controller: it acts on its informer's copy of a Sample and never looks at the clock, as the watch contract
//! lets it. A watch that ends, expires or falls silent is made good by its informer. One event taken out of a watch that
//! goes on is not, and no API server does that. **Seen in** every controller without a resync period. **Fault.**
//! `dropEvents`: the event of an edit vanishes. **Right verdict.** Pass, with a finding of class `robustness`: the edit is
//! not observed until the next event.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    runtime::{Controller, controller::Action, watcher},
};

use crate::{
    backoff::Backoff,
    child::{self, Owner},
    control::log,
    error::{Error, Result},
    operator::Operator,
    sample::Sample,
    status,
};

struct N7 {
    operator: Operator,
    backoff: Backoff,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator) {
    let children = watcher::Config::default().labels(child::SELECTOR);
    Controller::new(operator.samples(), watcher::Config::default())
        .owns(operator.api::<ConfigMap>(), children)
        .run(reconcile, try_again, Arc::new(N7 { operator, backoff: Backoff::default() }))
        .for_each(|result| async { log(result) })
        .await;
}

async fn reconcile(sample: Arc<Sample>, n7: Arc<N7>) -> Result<Action> {
    if !sample.is_being_deleted() {
        child::keep(&n7.operator, &child::config_map(&sample, "settings", Owner::Sample)).await?;
        status::done(&n7.operator, &sample).await?;
    }
    n7.backoff.succeeded(&sample.name_any());
    Ok(Action::await_change())
}

fn try_again(sample: Arc<Sample>, error: &Error, n7: Arc<N7>) -> Action {
    let name = sample.name_any();
    let wait = n7.backoff.after_failure(&name);
    tracing::warn!(sample = name, ?wait, "failed to {}; will try again", error.chain());
    Action::requeue(wait)
}
