//! Leader election by a Lease, so that of several replicas one writes.
//!
//! The rules are client-go's: the holder renews; others watch the Lease's resourceVersion, and take over when it has not
//! moved for a lease duration **by their own clock** (clocks of two machines are never compared). Every write carries
//! the resourceVersion it was decided on, so of two takers one gets a conflict. The holder stops *before* others may
//! start: it gives up after the renew deadline, which is shorter than the lease.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;

/// How a Lease is held.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Where the Lease is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are; unique for each process.
    pub identity: String,
    /// How long others wait after the last sign of life.
    pub duration: Duration,
    /// How long the holder goes on without a successful renewal. Less than `duration`.
    pub renew_deadline: Duration,
    /// How often it is renewed, or looked at.
    pub retry_period: Duration,
}

/// The right to write, as long as it lasts. Cheap to clone; without leader election it lasts for ever.
#[derive(Clone, Debug, Default)]
pub struct Leadership(Option<Arc<Mutex<Instant>>>);

/// Takes part in the election.
pub struct Elector {
    api: Api<Lease>,
    settings: LeaseSettings,
    /// The last Lease of others that was seen, and when it was first seen so.
    seen: Option<(Option<String>, Instant)>,
}

// === impl Leadership ===

impl Leadership {
    /// Asked before every write. A process that was stopped for a minute (SIGSTOP, a paused machine) finds here that
    /// its time is over, before it has renewed anything.
    pub fn check(&self) -> Result<(), Error> {
        let Some(until) = &self.0 else { return Ok(()) };
        let until = *until.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() < until { Ok(()) } else { Err(Error::LeaseLost) }
    }

    fn extend(&self, until: Instant) {
        if let Some(valid) = &self.0 {
            *valid.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }
}

// === impl Elector ===

impl Elector {
    /// A candidate.
    pub fn new(client: Client, settings: LeaseSettings) -> Self {
        Self { api: Api::namespaced(client, &settings.namespace), settings, seen: None }
    }

    /// Waits until the Lease is ours.
    pub async fn acquire(&mut self) -> Leadership {
        loop {
            let asked = Instant::now();
            match self.bounded(Self::try_acquire).await {
                Ok(true) => {
                    let until = asked + self.settings.renew_deadline;
                    tracing::info!(identity = self.settings.identity, "leading");
                    return Leadership(Some(Arc::new(Mutex::new(until))));
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "cannot take the lease"),
            }
            sleep(self.settings.retry_period).await;
        }
    }

    /// Renews the Lease for as long as possible; returns when it is lost.
    pub async fn hold(&mut self, leadership: &Leadership) -> Error {
        loop {
            sleep(self.settings.retry_period).await;
            let asked = Instant::now();
            match self.bounded(Self::try_acquire).await {
                Ok(true) => leadership.extend(asked + self.settings.renew_deadline),
                // Somebody else holds it: over at once.
                Ok(false) => return Error::LeaseLost,
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "cannot renew the lease"),
            }
            if let Err(lost) = leadership.check() {
                return lost;
            }
        }
    }

    /// Gives the Lease back, so that the next leader need not wait for it to run out.
    pub async fn release(&mut self) -> Result<(), Error> {
        let Some(mut lease) = self.get().await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
            return Ok(());
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(now());
        self.replace(&lease).await
    }

    /// One attempt, which never outlasts the time there is for it.
    async fn bounded(&mut self, attempt: impl AsyncFnOnce(&mut Self) -> Result<bool, Error>) -> Result<bool, Error> {
        let limit = self.settings.renew_deadline / 2;
        timeout(limit, attempt(self)).await.unwrap_or(Err(Error::TimedOut(limit)))
    }

    /// Takes or renews the Lease; `false` when it is somebody else's and not run out. A reply that was lost does no
    /// harm: the next attempt finds us as the holder.
    async fn try_acquire(&mut self) -> Result<bool, Error> {
        let Some(mut lease) = self.get().await? else {
            let spec = LeaseSpec { lease_transitions: Some(0), acquire_time: Some(now()), ..self.spec() };
            let metadata = ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(spec) };
            let created = self.api.create(&PostParams::default(), &lease).await;
            return created.map(|_| true).map_err(Error::api(format!("create Lease {}", self.settings.name)));
        };
        let version = lease.resource_version();
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if holder == self.settings.identity {
            lease.spec = Some(LeaseSpec { renew_time: Some(now()), ..spec });
        } else {
            if !holder.is_empty() && !self.has_run_out(version, &spec) {
                return Ok(false);
            }
            let transitions = spec.lease_transitions.unwrap_or_default() + 1;
            let taken = LeaseSpec { lease_transitions: Some(transitions), acquire_time: Some(now()), ..self.spec() };
            lease.spec = Some(taken);
        }
        self.replace(&lease).await.map(|()| true)
    }

    /// Whether a Lease has not moved for its duration, by our own clock from when we first saw it so.
    fn has_run_out(&mut self, version: Option<String>, spec: &LeaseSpec) -> bool {
        let now = Instant::now();
        match &self.seen {
            Some((seen, since)) if *seen == version => {
                let seconds = spec.lease_duration_seconds.unwrap_or_default();
                now.duration_since(*since) > Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
            }
            _ => {
                self.seen = Some((version, now));
                false
            }
        }
    }

    fn spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: i32::try_from(self.settings.duration.as_secs()).ok(),
            renew_time: Some(now()),
            ..LeaseSpec::default()
        }
    }

    async fn get(&self) -> Result<Option<Lease>, Error> {
        let name = &self.settings.name;
        self.api.get_opt(name).await.map_err(Error::api(format!("read Lease {name}")))
    }

    async fn replace(&self, lease: &Lease) -> Result<(), Error> {
        let name = &self.settings.name;
        let replaced = self.api.replace(name, &PostParams::default(), lease).await;
        replaced.map(|_| ()).map_err(Error::api(format!("update Lease {name}")))
    }
}

fn now() -> MicroTime {
    MicroTime(jiff::Timestamp::now())
}
