//! What can go wrong in a specimen.

use std::{error::Error as _, process::ExitCode};

use crate::patterns::Pattern;

/// The result of everything here that can fail.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, to complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line asks for what does not exist.
    #[error("run the bug build of {0:?}: it is a negative control and has none; leave out `--build`")]
    NoBugBuild(Pattern),
    /// Neither a service account nor a kubeconfig was found.
    #[error("find a cluster: run it in one, or set KUBECONFIG")]
    Config(#[source] kube::config::InferConfigError),
    /// The client could not be made from the configuration found.
    #[error("make a Kubernetes client from the configuration found")]
    Client(#[source] kube::Error),
    /// The signal that asks for a stop cannot be waited for.
    #[error("listen for SIGTERM")]
    Signal(#[source] std::io::Error),
    /// The webhook cannot be served.
    #[error("serve the webhook")]
    Webhook(#[source] std::io::Error),
    /// The CRD does not fit YAML.
    #[error("write the CRD as YAML")]
    Yaml(#[from] serde_yaml::Error),
    /// An object does not fit JSON.
    #[error("write an object as JSON")]
    Json(#[from] serde_json::Error),
    /// A request failed, or was answered with an error.
    #[error("{0}")]
    Request(String, #[source] kube::Error),
    /// An object of that name is there, made by somebody else.
    #[error("take {kind} {name}: it belongs to somebody else; remove it, or rename the Sample")]
    Foreign {
        /// The kind of the object in the way.
        kind: String,
        /// Its name.
        name: String,
    },
}

// === impl Error ===

impl Error {
    /// Wraps a client error with what was tried, such as "create ConfigMap a-settings".
    pub(crate) fn request(tried: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let tried = tried.into();
        |source| Self::Request(tried, source)
    }

    /// The HTTP status that the API server answered with, if it is why this failed.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Request(_, kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// The whole chain on one line, for the log; of an answer what the API server said.
    pub(crate) fn chain(&self) -> String {
        if let Self::Request(tried, kube::Error::Api(status)) = self {
            return format!("{tried}: {} ({} {})", status.message, status.code, status.reason);
        }
        let mut line = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            line = format!("{line}: {error}");
            cause = error.source();
        }
        line
    }

    /// Prints what failed; the exit code is 2 for a wrong command line and 1 for everything else.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("specimens: failed to {}", self.chain());
        ExitCode::from(if matches!(self, Self::NoBugBuild(_)) { 2 } else { 1 })
    }
}
