//! The way to the API server: HTTP/1.1, one connection per open request, so that no limit of concurrent HTTP/2 streams
//! is shared between watches and an upgrade needs no other path.

use crate::{Error, body::Body, certificates};
use http::{Request, Response, Uri, uri::PathAndQuery};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use std::time::Duration;

/// Shorter than the 90 s after which kube-apiserver closes an idle connection: a request must never meet a connection
/// that is just being closed, since nothing is sent twice.
const IDLE: Duration = Duration::from_secs(30);

/// The API server behind a proxy.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// `https://127.0.0.1:6443`.
    pub url: String,
    /// The certificate authority of its certificate, in PEM.
    pub ca_pem: String,
}

impl Upstream {
    pub(crate) fn base(&self) -> Result<Uri, Error> {
        let bad = || Error::UpstreamUrl { url: self.url.clone() };
        let uri: Uri = self.url.parse().map_err(|_| bad())?;
        (uri.scheme_str() == Some("https") && uri.authority().is_some() && uri.path() == "/")
            .then_some(uri)
            .ok_or_else(bad)
    }

    pub(crate) fn tls(&self) -> Result<ClientConfig, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.ca_pem.as_bytes()) {
            roots.add(certificate.map_err(|_| Error::UpstreamCa)?)?;
        }
        if roots.is_empty() {
            return Err(Error::UpstreamCa);
        }
        Ok(ClientConfig::builder_with_provider(certificates::provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth())
    }
}

/// A client with its own connections.
#[derive(Clone)]
pub(crate) struct ApiServer {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    base: Uri,
}

impl ApiServer {
    pub(crate) fn new(base: Uri, tls: ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(Duration::from_secs(5)));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(false)
            .set_host(true)
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(https);
        Self { client, base }
    }

    /// Whether anybody listens there.
    pub(crate) async fn takes_connections(&self) -> bool {
        let Some(authority) = self.base.authority() else { return false };
        let address = (authority.host().trim_matches(['[', ']']), authority.port_u16().unwrap_or(443));
        tokio::net::TcpStream::connect(address).await.is_ok()
    }

    /// Sends a request whose URI is still the client's, once.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(path);
        *request.uri_mut() = Uri::from_parts(parts).expect("scheme, authority and path are there");
        *request.version_mut() = http::Version::HTTP_11;
        self.client.request(request).await
    }
}
