//! Why a reconciliation failed.

use thiserror::Error;

/// Why a reconciliation failed; tried again in any case.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// A request failed.
    #[error("failed to {what}")]
    Request {
        /// What was tried.
        what: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// Somebody else has a claim.
    #[error("ConfigMap {0} is controlled by another")]
    Foreign(String),
    /// The Sample came without a uid.
    #[error("the Sample has no uid, so that nothing can be owned by it")]
    Anonymous,
}

// === impl Error ===

impl Error {
    /// For `map_err`.
    pub(crate) fn request(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        |source| Self::Request { what, source }
    }
}
