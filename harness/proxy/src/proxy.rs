//! One proxy per control plane: its certificate authority, and the numbers that all its listeners share.

use crate::{Bind, Director, Error, Listener, Upstream, certificates::Certificates, upstream::ApiServer};
use spiritlevel_model::{Actor, RequestId, StreamId};
use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The proxy in front of one API server.
pub struct Proxy {
    upstream: Upstream,
    certificates: Certificates,
    numbers: Arc<Numbers>,
}

/// Counts requests and streams over all listeners, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    requests: AtomicU64,
    streams: AtomicU64,
}

impl Proxy {
    /// With a certificate authority of its own.
    pub fn new(upstream: Upstream) -> Result<Self, Error> {
        Self::reached_at(upstream, &[])
    }

    /// One that clients may reach at further addresses of this machine.
    pub fn reached_at(upstream: Upstream, addresses: &[IpAddr]) -> Result<Self, Error> {
        upstream.base()?;
        upstream.tls()?;
        Ok(Self { upstream, certificates: Certificates::make(addresses)?, numbers: Arc::default() })
    }

    /// What clients must trust, in PEM. Its certificate is valid for 127.0.0.1, localhost and the names of the
    /// `kubernetes` Service.
    pub fn ca_pem(&self) -> &str {
        &self.certificates.ca_pem
    }

    /// Opens a listener for `actor`. Must be called inside a tokio runtime; the listener lives until it is stopped or
    /// dropped.
    pub fn listen(&self, actor: Actor, bind: Arc<dyn Bind>, director: Arc<dyn Director>) -> Result<Listener, Error> {
        let api_server = ApiServer::new(self.upstream.base()?, self.upstream.tls()?);
        Listener::start(actor, bind, director, api_server, self.certificates.server.clone(), self.numbers.clone())
    }
}

// === impl Numbers ===

impl Numbers {
    pub(crate) fn request(&self) -> RequestId {
        RequestId(self.requests.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn stream(&self) -> StreamId {
        StreamId(self.streams.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
