//! The thin edge around the planner: look, ask for the next step, take it, see it land. One write per reconcile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};

use crate::backoff::JitteredBackoff;
use crate::caches::Caches;
use crate::children::{Kind, selector};
use crate::crd::PostgresCluster;
use crate::error::Error;
use crate::lease::Leadership;
use crate::observed::{Observed, Role};
use crate::perform::{Outcome, perform};
use crate::plan::{Step, next_step};

/// A reconcile that takes longer hangs in a request that nobody answers.
const LIMIT: Duration = Duration::from_secs(15);
/// After a step comes the next look, at once.
const NOW: Duration = Duration::ZERO;
/// How long we wait for our own write to come back by the watch.
const ECHO: Duration = Duration::from_secs(1);
/// A look without any event, in case one was missed in a way we did not think of.
const RESYNC: Duration = Duration::from_secs(5 * 60);
/// The same while something is in the way that no watch of ours can see.
const RESYNC_DEGRADED: Duration = Duration::from_secs(5);

/// What reconciles share. None of it is progress: killed at any moment, the next process starts with an empty one and
/// misses nothing.
pub struct Shared {
    /// To the API server.
    pub client: Client,
    /// What there is.
    pub caches: Caches,
    /// The right to write.
    pub leadership: Leadership,
    /// Kubernetes Events, for people.
    pub recorder: Recorder,
    /// How patient to be with each cluster that fails.
    pub backoffs: Mutex<HashMap<ObjectRef<PostgresCluster>, JitteredBackoff>>,
}

/// Takes the next step of one cluster.
pub async fn reconcile(cluster: Arc<PostgresCluster>, shared: Arc<Shared>) -> Result<Action, Error> {
    let action = tokio::time::timeout(LIMIT, shared.advance(&cluster)).await.unwrap_or(Err(Error::TimedOut(LIMIT)))?;
    shared.backoffs().remove(&ObjectRef::from_obj(&*cluster));
    Ok(action)
}

/// When to try again after an error.
pub fn after_error(cluster: Arc<PostgresCluster>, error: &Error, shared: Arc<Shared>) -> Action {
    let delay = shared.backoffs().entry(ObjectRef::from_obj(&*cluster)).or_default().next().unwrap_or(RESYNC);
    let delay = delay.max(error.retry_after().unwrap_or_default());
    let cause = error as &dyn std::error::Error;
    if error.is_conflict() {
        tracing::debug!(cluster = cluster.name_any(), ?delay, cause, "the world moved on");
    } else {
        tracing::warn!(cluster = cluster.name_any(), ?delay, cause, "trying again");
    }
    Action::requeue(delay)
}

// === impl Shared ===

impl Shared {
    async fn advance(&self, cluster: &PostgresCluster) -> Result<Action, Error> {
        let mut observed = self.caches.look(cluster).await?;
        // Turns only when nothing was written but something was learnt, such as that a name is taken.
        while let Some(step) = next_step(cluster, &observed) {
            if step.needs_fresh_look() {
                return self.advance_on_fresh_look(cluster, observed).await;
            }
            match self.take(cluster, &step).await? {
                Outcome::NameTaken(kind, holder) => observed.see(kind, holder),
                Outcome::Refused(key, message) => observed.see_refused(key, message),
                Outcome::Wrote(..) | Outcome::Told(_) | Outcome::Deleted(..) => return Ok(Action::requeue(NOW)),
            }
        }
        if let Some(key) = observed.refused().next() {
            return Err(Error::Rejected(key.clone()));
        }
        let degraded = cluster.status.as_ref().is_some_and(|status| status.is_true("Degraded"));
        Ok(Action::requeue(if degraded { RESYNC_DEGRADED } else { RESYNC }))
    }

    /// Decides on what the API server says now instead of what the caches remember.
    async fn advance_on_fresh_look(&self, cluster: &PostgresCluster, observed: Observed) -> Result<Action, Error> {
        let Some((cluster, observed)) = self.look_again(cluster, observed).await? else {
            return Ok(Action::await_change());
        };
        let step = next_step(&cluster, &observed).ok_or(Error::Stale)?;
        match self.take(&cluster, &step).await? {
            Outcome::NameTaken(..) | Outcome::Refused(..) => Err(Error::Stale),
            Outcome::Wrote(..) | Outcome::Told(_) | Outcome::Deleted(..) => Ok(Action::requeue(NOW)),
        }
    }

    /// The cluster, its pods and its volumes, past the caches; `None` when the cluster is gone or another of that name.
    async fn look_again(
        &self,
        cluster: &PostgresCluster,
        mut observed: Observed,
    ) -> Result<Option<(PostgresCluster, Observed)>, Error> {
        let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
        let clusters: Api<PostgresCluster> = Api::namespaced(self.client.clone(), &namespace);
        let fresh = clusters.get_opt(&name).await.map_err(Error::api(format!("read PostgresCluster {name}")))?;
        let Some(fresh) = fresh.filter(|fresh| fresh.uid() == cluster.uid()) else { return Ok(None) };
        for kind in [Kind::Pod, Kind::PersistentVolumeClaim] {
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind.api_resource());
            let list = ListParams::default().labels(&selector(&name));
            let children = api.list(&list).await.map_err(Error::api(format!("list the {kind:?}s of {name}")))?;
            observed.forget(kind);
            for child in children {
                observed.see(kind, Arc::new(child));
            }
        }
        Ok(Some((fresh, observed)))
    }

    /// Takes a step and waits until the caches show it.
    async fn take(&self, cluster: &PostgresCluster, step: &Step) -> Result<Outcome, Error> {
        self.leadership.check()?;
        let outcome = perform(&self.client, cluster, step).await?;
        tracing::info!(cluster = cluster.name_any(), step = %step, "took a step");
        let namespace = cluster.namespace().unwrap_or_default();
        let shown = |caches: &Caches| match &outcome {
            Outcome::Wrote(key, written) => caches.shows(&namespace, key, written),
            Outcome::Told(written) => caches.shows_cluster(written),
            Outcome::Deleted(key, uid) => caches.shows_gone(&namespace, key, uid),
            Outcome::NameTaken(..) | Outcome::Refused(..) => true,
        };
        if !self.caches.wait_until(ECHO, shown).await {
            tracing::debug!(step = %step, "the caches do not show the step yet");
        }
        self.tell_people(cluster, step).await;
        Ok(outcome)
    }

    /// An Event for what a person would ask about. Best effort: no step depends on it.
    async fn tell_people(&self, cluster: &PostgresCluster, step: &Step) {
        let (type_, reason) = match step {
            Step::SetRole { role: Role::Primary, .. } => (EventType::Normal, "Promoted"),
            Step::SetRole { role: Role::Replica, .. } => (EventType::Normal, "Demoted"),
            Step::RecordReplacement { .. } => (EventType::Warning, "InstanceLost"),
            Step::Delete { .. } => (EventType::Normal, "Deleted"),
            _ => return,
        };
        let event = Event {
            type_,
            reason: reason.to_owned(),
            action: reason.to_owned(),
            note: Some(step.to_string()),
            secondary: None,
        };
        let about = cluster.object_ref(&());
        match tokio::time::timeout(ECHO, self.recorder.publish(&event, &about)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "no event"),
            Err(_) => tracing::debug!("no event in time"),
        }
    }

    fn backoffs(&self) -> MutexGuard<'_, HashMap<ObjectRef<PostgresCluster>, JitteredBackoff>> {
        self.backoffs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
