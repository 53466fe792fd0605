//! What can go wrong around a run. A failing operator is a finding, never one of these.

use std::path::{Path, PathBuf};

/// Why a run could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file.
    #[error("failed to {action} {path}", path = path.display())]
    File {
        /// `read`, `write`, `create`.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The control plane.
    #[error("the control plane failed")]
    Cluster(#[from] spiritlevel_cluster::Error),
    /// The proxy.
    #[error("the proxy failed")]
    Proxy(#[from] spiritlevel_proxy::Error),
    /// The operator's process, sandbox or build.
    #[error("the operator could not be run")]
    Operator(#[from] spiritlevel_operator::Error),
    /// A request of the harness's own.
    #[error("failed to {what}")]
    Request {
        /// What was asked for.
        what: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The operator ended before the first step.
    #[error("the operator ended before the first step with {exit}; its last lines:\n{lines}")]
    EndedAtOnce {
        /// `exit code 1`, `signal 9`.
        exit: String,
        /// Its last lines of output.
        lines: String,
    },
    /// Something in the suite's or scenario's files.
    #[error("{0}")]
    Input(String),
    /// Ctrl-C.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// A file could not be read or written.
    pub fn file(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::File { action, path: path.into(), source }
    }

    /// A request failed.
    pub fn request(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Request { what, source: Box::new(source) }
    }

    /// The whole chain of causes in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(source) = cause {
            let next = source.to_string();
            if !text.contains(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            cause = source.source();
        }
        text
    }
}
