//! An API server of a few URLs, over TLS and HTTP/1.1.

use super::soon;
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::{Notify, mpsc},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

type Body = UnsyncBoxBody<Bytes, Infallible>;

pub struct ApiServer {
    address: SocketAddr,
    pub ca_pem: String,
    pub state: Arc<State>,
    watches: tokio::sync::Mutex<mpsc::UnboundedReceiver<Feed>>,
    opened: mpsc::UnboundedSender<Feed>,
    tls: TlsAcceptor,
    stop: Mutex<CancellationToken>,
}

/// What a watch sends: bytes as they are; dropped at its clean end.
pub type Feed = mpsc::UnboundedSender<Bytes>;

#[derive(Default)]
pub struct State {
    /// Writes that were done.
    pub commits: AtomicU64,
    /// Whether the next PUT meets a newer version.
    pub conflict: AtomicBool,
    pub requests: Mutex<Vec<(String, HeaderMap, Bytes)>>,
    /// Methods and whole URLs.
    pub urls: Mutex<Vec<String>>,
    /// A write waits for it where `slow_writes` is set.
    pub slow_writes: AtomicBool,
    pub let_write_go: Notify,
    /// The rest of a long list waits for it.
    pub let_list_go: Notify,
}

impl ApiServer {
    pub async fn start() -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(vec![]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
        let certificate = leaf.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let tls = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (opened, watches) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, acceptor.clone(), state.clone(), opened.clone(), stop.clone()));
        Self { address, ca_pem, state, watches: watches.into(), opened, tls: acceptor, stop: stop.into() }
    }

    /// Back at the same address.
    pub async fn revive(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let stop = CancellationToken::new();
        *self.stop.lock().unwrap() = stop.clone();
        tokio::spawn(accept(listener, self.tls.clone(), self.state.clone(), self.opened.clone(), stop));
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The next watch that arrives.
    pub async fn next_watch(&self) -> Feed {
        soon("a watch at the server", async { self.watches.lock().await.recv().await.unwrap() }).await
    }

    pub fn commits(&self) -> u64 {
        self.state.commits.load(Ordering::SeqCst)
    }

    /// As if it was killed.
    pub fn kill(&self) {
        self.stop.lock().unwrap().cancel();
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    state: Arc<State>,
    watches: mpsc::UnboundedSender<Feed>,
    stop: CancellationToken,
) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted.unwrap().0,
        };
        let _ = stream.set_nodelay(true);
        let (tls, state, watches, stop) = (tls.clone(), state.clone(), watches.clone(), stop.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |r| answer(r, state.clone(), watches.clone()));
            let serve = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            tokio::select! {
                () = stop.cancelled() => {}
                _ = serve => {}
            }
        });
    }
}

async fn answer(
    mut request: Request<Incoming>,
    state: Arc<State>,
    watches: mpsc::UnboundedSender<Feed>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    if path.ends_with("/exec") {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.unwrap());
            let mut buffer = [0; 1024];
            while let Ok(n @ 1..) = io.read(&mut buffer).await {
                io.write_all(&buffer[..n]).await.unwrap();
            }
        });
        let response = Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header("connection", "Upgrade")
            .header("upgrade", "echo");
        return Ok(response.body(whole("")).unwrap());
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Ok(Response::new(whole(""))) };
    let body = body.to_bytes();
    state.urls.lock().unwrap().push(format!("{} {}", parts.method, parts.uri));
    state.requests.lock().unwrap().push((format!("{} {path}", parts.method), parts.headers.clone(), body.clone()));
    if query.contains("watch=true") {
        let (feed, source) = mpsc::unbounded_channel::<Bytes>();
        watches.send(feed).unwrap();
        let stream =
            futures::stream::unfold(source, |mut source| async move { source.recv().await.map(|b| (b, source)) });
        let body = StreamBody::new(stream.map(|b| Ok(Frame::data(b)))).boxed_unsync();
        return Ok(json_response(200, body));
    }
    if path.ends_with("/selfsubjectaccessreviews") {
        let allowed = parts.headers.get("authorization").is_some_and(|a| a == "Bearer may");
        let review = json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}});
        return Ok(json_response(201, whole(review.to_string())));
    }
    if query.contains("dryRun=All") {
        return Ok(json_response(200, whole(json!({"metadata": {"name": "x"}, "data": {"n": "new"}}).to_string())));
    }
    if parts.method != Method::GET {
        if state.slow_writes.load(Ordering::SeqCst) {
            state.let_write_go.notified().await;
        }
        if parts.method == Method::PUT && state.conflict.swap(false, Ordering::SeqCst) {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
                                "message": "the object has been modified", "details": {"name": "x", "uid": "uid-x"}});
            return Ok(json_response(409, whole(status.to_string())));
        }
        let revision = 10 + state.commits.fetch_add(1, Ordering::SeqCst);
        let code = if parts.method == Method::POST { 201 } else { 200 };
        return Ok(json_response(code, whole(object("x", revision))));
    }
    if let Some(count) = query.strip_prefix("count=").and_then(|c| c.parse::<u64>().ok()) {
        // A list of so many objects of 2 KB, made while it is sent.
        let padding = "x".repeat(2000);
        let item = move |i| {
            let object = json!({"kind": "Pod", "metadata": {"name": format!("p-{i}"), "annotations": {"x": padding}}});
            Bytes::from(format!("{object},"))
        };
        let head = Bytes::from(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":["#);
        let items = futures::stream::iter((1..count).map(item));
        let end = Bytes::from(r#"{"kind":"Pod","metadata":{"name":"last"}}]}"#);
        let stream = futures::stream::iter([head]).chain(items).chain(futures::stream::iter([end]));
        return Ok(json_response(200, StreamBody::new(stream.map(|b| Ok(Frame::data(b)))).boxed_unsync()));
    }
    if path.ends_with("/secrets") {
        // A list of 8 MB: half of it at once, the rest when the test has seen the first byte.
        let half = Bytes::from(vec![b' '; 64 * 1024]);
        let first = futures::stream::iter(vec![half.clone(); 64]);
        let second = futures::stream::once(async move {
            state.let_list_go.notified().await;
            futures::stream::iter(vec![half; 64])
        });
        let stream = first.chain(second.flatten());
        return Ok(json_response(200, StreamBody::new(stream.map(|b| Ok(Frame::data(b)))).boxed_unsync()));
    }
    if path.ends_with("/services") {
        let list = json!({"kind": "ServiceList", "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "x"}}]});
        return Ok(json_response(200, whole(list.to_string())));
    }
    if path == "/apis" {
        let list = json!({"kind": "APIGroupList", "groups": [{"name": "apps"}, {"name": "db.example.com"}]});
        let mut response = json_response(200, whole(list.to_string()));
        response.headers_mut().insert("etag", "\"1\"".parse().unwrap());
        return Ok(response);
    }
    if path.ends_with("/missing") {
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
        return Ok(json_response(404, whole(status.to_string())));
    }
    Ok(json_response(200, whole(object("x", 7))))
}

fn object(name: &str, revision: u64) -> String {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": revision.to_string()}})
        .to_string()
}

fn whole(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

fn json_response(status: u16, body: Body) -> Response<Body> {
    Response::builder().status(status).header("content-type", "application/json").body(body).unwrap()
}
