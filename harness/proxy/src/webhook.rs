//! An admission webhook of the harness's own, which a scenario puts in the way: it refuses, is late, is not there, or has a
//! certificate that nobody should trust.

use crate::{Error, certificates::Certificates};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use serde_json::{Value, json};
use std::{convert::Infallible, net::SocketAddr, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// A port at which nobody listens: `tcpmux`, which no system offers.
const NOBODY: u16 = 1;
/// Longer than the API server is told to wait.
const TOO_LATE: Duration = Duration::from_secs(5);

/// What a webhook does with who asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookDoes {
    /// Refuses, in these words.
    Deny,
    /// Answers when the API server has given up.
    Slow,
    /// Cannot be trusted: its certificate is signed by somebody else than [`Webhook::ca_pem`] says.
    WrongCertificate,
    /// Refuses connections.
    Down,
}

/// A running webhook. It ends when dropped.
pub struct Webhook {
    address: SocketAddr,
    ca_pem: String,
    stop: CancellationToken,
}

// === impl Webhook ===

impl Webhook {
    /// Listens on a free port of this machine.
    pub async fn start(does: WebhookDoes) -> Result<Self, Error> {
        let certificates = Certificates::make(&[])?;
        let ca_pem = match does {
            WebhookDoes::WrongCertificate => Certificates::make(&[])?.ca_pem,
            _ => certificates.ca_pem,
        };
        let stop = CancellationToken::new();
        if does == WebhookDoes::Down {
            return Ok(Self { address: SocketAddr::from(([127, 0, 0, 1], NOBODY)), ca_pem, stop });
        }
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let in_bind = |source| Error::Bind { address: any, source };
        let listener = TcpListener::bind(any).await.map_err(in_bind)?;
        let address = listener.local_addr().map_err(in_bind)?;
        tokio::spawn(accept(listener, TlsAcceptor::from(certificates.server), does, stop.clone()));
        Ok(Self { address, ca_pem, stop })
    }

    /// For `clientConfig.url`.
    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }

    /// For `clientConfig.caBundle`, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, does: WebhookDoes, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        // A connection that fails is its client's business.
        if let Ok((stream, _)) = accepted {
            let (tls, stop) = (tls.clone(), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = serve(stream, tls, does) => {}
                }
            });
        }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, does: WebhookDoes) {
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(move |request| answer(request, does));
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, does: WebhookDoes) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    if does == WebhookDoes::Slow {
        tokio::time::sleep(TOO_LATE).await;
    }
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"], "allowed": does != WebhookDoes::Deny,
            "status": {"code": 403, "message": "the scenario's webhook refuses"},
        },
    });
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    Ok(response.body(Full::new(review.to_string().into())).expect("a constant header is valid"))
}
