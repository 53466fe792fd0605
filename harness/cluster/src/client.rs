//! Clients that do what they are told, once.

use std::time::Duration;

use kube::{Client, Config, config::AuthInfo};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use crate::{Endpoint, Error};

/// A client for `endpoint` that presents `token` and never retries on its own: a retry would hide from the caller, and
/// from the history, that a request had failed.
pub fn connect(endpoint: &Endpoint, token: &str) -> Result<Client, Error> {
    // `ring` everywhere; the error only says that somebody else installed a provider first.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let url: http::Uri = endpoint.url.parse().map_err(|source: http::uri::InvalidUri| Error::Endpoint {
        url: endpoint.url.clone(),
        source: Box::new(source),
    })?;
    let roots = CertificateDer::pem_slice_iter(endpoint.ca_pem.as_bytes())
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| Error::Endpoint { url: endpoint.url.clone(), source: Box::new(source) })?;

    let mut config = Config::new(url);
    config.root_cert = Some(roots);
    config.auth_info = auth(token);
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    Client::try_from(config).map_err(|source| Error::kube(format!("make a client for {}", endpoint.url), source))
}

/// Goes through the kubeconfig form because the token's secret type is not ours to name.
fn auth(token: &str) -> AuthInfo {
    serde_json::from_value(serde_json::json!({ "token": token })).expect("a token alone is a valid user entry")
}
