//! Where an API server, or a proxy in front of it, is reached.

use serde::{Deserialize, Serialize};

/// An address together with what is needed to trust it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Base URL, such as `https://127.0.0.1:34567`.
    pub url: String,
    /// Certificates that may have signed the server's own, as PEM.
    pub ca_pem: String,
}
