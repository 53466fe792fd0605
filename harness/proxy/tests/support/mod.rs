//! A small API server, a director that does as it is told, and clients over both HTTP versions.
#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, unreachable_pub, missing_docs, reason = "test support")]

mod director;
mod server;

pub use director::Script;
pub use server::ApiServer;

use bytes::Bytes;
use http::{Method, Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client as Hyper, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use spiritlevel_model::Actor;
use spiritlevel_proxy::{HostPort, Listener, Proxy, Upstream};
use std::{future::Future, sync::Arc, time::Duration};

pub const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];
pub const CONFIGMAPS: &str = "/api/v1/namespaces/a/configmaps";
pub const PODS: &str = "/api/v1/namespaces/a/pods";

/// No test waits longer for anything.
pub async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(20), work).await;
    done.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Server, proxy, listener and director of one test.
pub struct World {
    pub server: ApiServer,
    pub script: Arc<Script>,
    pub proxy: Proxy,
    pub listener: Arc<Listener>,
}

impl World {
    pub async fn new() -> Self {
        let server = ApiServer::start().await;
        let proxy = Proxy::new(Upstream { url: server.url(), ca_pem: server.ca_pem.clone() }).unwrap();
        let script = Arc::new(Script::default());
        let listener = proxy.listen(Actor::operator(0), Arc::new(HostPort::new()), script.clone()).unwrap();
        let listener = Arc::new(listener);
        script.attach(&listener);
        Self { server, script, proxy, listener }
    }

    pub fn client(&self, version: Version) -> Client {
        Client::new(&self.listener.url(), self.proxy.ca_pem(), version)
    }

    /// A client without the proxy.
    pub fn direct(&self) -> Client {
        Client::new(&self.server.url(), &self.server.ca_pem, Version::HTTP_11)
    }
}

pub fn tls(ca_pem: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[derive(Clone)]
pub struct Client {
    hyper: Hyper<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: String,
}

impl Client {
    pub fn new(url: &str, ca_pem: &str, version: Version) -> Self {
        // As Go's net and client-go: what is written goes out.
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls(ca_pem)).https_only();
        let mut builder = Hyper::builder(TokioExecutor::new());
        builder.retry_canceled_requests(false);
        let hyper = if version == Version::HTTP_2 {
            builder.http2_only(true).build(https.enable_http2().wrap_connector(tcp))
        } else {
            builder.build(https.enable_http1().wrap_connector(tcp))
        };
        Self { hyper, url: url.into() }
    }

    /// Sends; the error's text tells how it broke.
    pub async fn send(&self, method: Method, path: &str, body: &str) -> Result<Response<Incoming>, String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .header("user-agent", "test/1")
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        self.hyper.request(request).await.map_err(|e| causes(&e))
    }

    pub async fn get_with(&self, path: &str, header: &str, value: &str) -> Result<u16, String> {
        let request = Request::get(format!("{}{path}", self.url)).header(header, value).body(Full::default()).unwrap();
        let response = self.hyper.request(request).await.map_err(|e| causes(&e))?;
        let status = response.status().as_u16();
        response.into_body().collect().await.map_err(|e| causes(&e))?;
        Ok(status)
    }

    /// With a bearer token.
    pub async fn get_as(&self, path: &str, token: &str) -> Result<u16, String> {
        self.get_with(path, "authorization", &format!("Bearer {token}")).await
    }

    pub async fn send_upgrade(&self, path: &str, protocol: &str) -> Result<Response<Incoming>, String> {
        let request = Request::get(format!("{}{path}", self.url))
            .header("connection", "Upgrade")
            .header("upgrade", protocol)
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("sec-websocket-version", "13")
            .body(Full::default())
            .unwrap();
        self.hyper.request(request).await.map_err(|e| causes(&e))
    }

    /// Status and body, or how it broke.
    pub async fn whole(&self, method: Method, path: &str, body: &str) -> Result<(u16, String), String> {
        let response = self.send(method, path, body).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|e| causes(&e))?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    pub async fn get(&self, path: &str) -> Result<(u16, String), String> {
        self.whole(Method::GET, path, "").await
    }

    /// Opens a watch of pods.
    pub async fn watch(&self) -> Result<WatchClient, String> {
        let response = self.send(Method::GET, &format!("{PODS}?watch=true&resourceVersion=5"), "").await?;
        Ok(WatchClient { status: response.status().as_u16(), body: response.into_body(), rest: Vec::new() })
    }
}

/// The client's end of a watch.
pub struct WatchClient {
    pub status: u16,
    body: Incoming,
    rest: Vec<u8>,
}

impl WatchClient {
    /// The next line; `None` at the clean end, an error where the stream breaks.
    pub async fn line(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line = self.rest.drain(..=end).collect();
                return Ok(Some(String::from_utf8(line).unwrap().trim_end().into()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.rest.extend_from_slice(frame.data_ref().unwrap()),
                Some(Err(e)) => return Err(causes(&e)),
                None => return Ok(None),
            }
        }
    }

    /// The name of the object in the next event, or `end`, or `broken`.
    pub async fn next(&mut self) -> String {
        match soon("a watch event", self.line()).await {
            Ok(Some(line)) => {
                let event: serde_json::Value = serde_json::from_str(&line).unwrap();
                let code = event["object"]["code"].as_u64();
                match event["object"]["metadata"]["name"].as_str() {
                    Some(name) => name.into(),
                    None => format!("{} {}", event["type"].as_str().unwrap(), code.unwrap_or_default()),
                }
            }
            Ok(None) => "end".into(),
            Err(_) => "broken".into(),
        }
    }
}

/// A watch event as the API server writes it.
pub fn event(kind: &str, name: &str, revision: u64) -> String {
    let object = serde_json::json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "a", "uid": format!("uid-{name}"), "resourceVersion": revision.to_string()},
    });
    serde_json::json!({"type": kind, "object": object}).to_string() + "\n"
}

pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
