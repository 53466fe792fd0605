//! The usual loop: kube-rs's controller says *which* Sample to look at, a fresh read says *what* it is.

use std::{future::Future, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Resource, ResourceExt,
    runtime::{
        Controller, controller,
        controller::Action,
        reflector::{Lookup, ObjectRef},
        watcher,
    },
};
use serde::de::DeserializeOwned;

use crate::{
    backoff::Backoff,
    child,
    error::{Error, Result},
    operator::Operator,
    sample::Sample,
};

/// What a specimen does; a failed method is tried again with back-off.
pub(crate) trait Reconcile: Send + Sync + 'static {
    /// Brings the world to what a live Sample asks for.
    fn reconcile(&self, sample: &Sample) -> impl Future<Output = Result<()>> + Send;

    /// Takes the world down again: the Sample has a deletionTimestamp, and finalizers.
    fn clean_up(&self, _sample: &Sample) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Somebody saw the Sample of this name vanish; only the home-made informers tell.
    fn vanished(&self, _name: &str) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

/// The loop of most specimens.
pub(crate) struct Control {
    operator: Operator,
    controller: Controller<Sample>,
}

struct State<R> {
    operator: Operator,
    reconciler: R,
    backoff: Backoff,
}

// === impl Control ===

impl Control {
    /// A loop over the Samples.
    pub(crate) fn new(operator: &Operator) -> Self {
        let controller = Controller::new(operator.samples(), watcher::Config::default());
        Self { operator: operator.clone(), controller }
    }

    /// Looks at a Sample, too, when one of its children of kind `K` changes.
    pub(crate) fn watching<K>(self) -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Lookup<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let children = watcher::Config::default().labels(child::SELECTOR);
        let namespace = self.operator.namespace().to_owned();
        let controller = self.controller.watches(self.operator.api::<K>(), children, move |child: K| {
            child::sample_of(&child).map(|name| ObjectRef::new(&name).within(&namespace))
        });
        Self { controller, ..self }
    }

    /// Waits this long for further events before it looks.
    pub(crate) fn debounced(self, wait: Duration) -> Self {
        Self { controller: self.controller.with_config(controller::Config::default().debounce(wait)), ..self }
    }

    /// Runs until the process ends.
    pub(crate) async fn run<R: Reconcile>(self, reconciler: R) {
        let state = Arc::new(State { operator: self.operator, reconciler, backoff: Backoff::default() });
        self.controller.run(reconcile, try_again, state).for_each(|result| async { log(result) }).await;
    }
}

/// Reads a Sample and lets the specimen act on it; nothing is to be done for one that is gone.
pub(crate) async fn look<R: Reconcile>(operator: &Operator, name: &str, reconciler: &R) -> Result<()> {
    let read = operator.samples().get_opt(name).await.map_err(Error::request(format!("read Sample {name}")))?;
    match read {
        None => Ok(()),
        Some(sample) if sample.is_being_deleted() => reconciler.clean_up(&sample).await,
        Some(sample) => reconciler.reconcile(&sample).await,
    }
}

/// Logs a watch that failed; a failed reconciliation has been logged with its back-off already.
pub(crate) fn log<A, E: std::error::Error + 'static>(result: Result<A, controller::Error<E, watcher::Error>>) {
    if let Err(controller::Error::QueueError(error)) = result {
        tracing::warn!("failed to watch: {error}; will try again");
    }
}

async fn reconcile<R: Reconcile>(sample: Arc<Sample>, state: Arc<State<R>>) -> Result<Action> {
    let name = sample.name_any();
    look(&state.operator, &name, &state.reconciler).await?;
    state.backoff.succeeded(&name);
    Ok(Action::await_change())
}

fn try_again<R: Reconcile>(sample: Arc<Sample>, error: &Error, state: Arc<State<R>>) -> Action {
    let name = sample.name_any();
    let wait = state.backoff.after_failure(&name);
    tracing::warn!(sample = name, ?wait, "failed to {}; will try again", error.chain());
    Action::requeue(wait)
}
