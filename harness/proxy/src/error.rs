//! What can go wrong while a proxy is set up. What goes wrong on the wire is recorded, not returned.

use std::{io, net::SocketAddr};

/// An error of the proxy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Certificates could not be made.
    #[error("make the proxy's certificates")]
    Certificates(#[from] rcgen::Error),
    /// The TLS library refused a setting.
    #[error("set up TLS")]
    Tls(#[from] rustls::Error),
    /// The API server's certificate authority cannot be read.
    #[error("read the API server's certificate authority: give at least one certificate in PEM")]
    UpstreamCa,
    /// The API server's URL cannot be used.
    #[error("use {url:?} as the API server's URL: write https://HOST:PORT without a path")]
    UpstreamUrl {
        /// As given.
        url: String,
    },
    /// The listening socket cannot be made.
    #[error("listen on {address}: is the port taken?")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}
