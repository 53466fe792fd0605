//! What can go wrong at the edge. The planner cannot fail.

use std::time::Duration;

use crate::children::ChildKey;

/// An error of this operator. Each says what to do about it, or that a retry does it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("failed to {what}")]
    Api {
        /// What was tried.
        what: String,
        /// What the client says.
        #[source]
        source: kube::Error,
    },
    /// A child was refused for what it is: repeating it soon will not help.
    #[error("failed to write {0}: the API server refuses it, see the condition Degraded; it is tried again")]
    Rejected(ChildKey),
    /// We saw a difference, applied our fields, and nothing changed.
    #[error("failed to level {0}: the apply had no effect; a field is compared wrongly, please report it")]
    NoEffect(ChildKey),
    /// The caches lag behind the API server. Their next event leads to the next look.
    #[error("failed to decide: the caches lag behind the API server; looking again")]
    Stale,
    /// A name was taken and free again between two looks.
    #[error("failed to create {0}: its name was just taken; looking again")]
    NameInUse(ChildKey),
    /// A reconcile hung.
    #[error("failed to reconcile within {0:?}: the API server does not answer; trying again")]
    TimedOut(Duration),
    /// A reflector ended.
    #[error("failed to read the caches: a watch task ended; restart the operator")]
    CacheClosed,
    /// Another replica may lead by now.
    #[error("failed to keep the lease: no renewal within the deadline; this replica must end")]
    LeaseLost,
    /// No way to reach a cluster.
    #[error("failed to find a cluster: run in a pod or set KUBECONFIG")]
    NoCluster(#[source] kube::config::InferConfigError),
    /// The operating system refused something at the start.
    #[error("failed to start")]
    Start(#[source] std::io::Error),
    /// The CRD could not be printed.
    #[error("failed to print the CRD")]
    Print(#[source] serde_yaml::Error),
}

// === impl Error ===

impl Error {
    /// For `map_err`: what was tried, around the client's error.
    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Api { what, source }
    }

    /// How long the API server asked us to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let Self::Api { source: kube::Error::Api(status), .. } = self else { return None };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// Whether the world simply moved on: normal, not worth a warning.
    pub(crate) fn is_conflict(&self) -> bool {
        match self {
            Self::Api { source: kube::Error::Api(status), .. } => status.code == 409,
            Self::Stale | Self::NameInUse(_) => true,
            _ => false,
        }
    }
}
