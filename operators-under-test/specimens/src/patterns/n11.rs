//! N11: an admission webhook in the operator's own process; a negative control that runs inside a cluster.
//!
//! Samples get the annotation `webhook: seen` when they are made, and one whose text is `forbidden` is refused. Besides, it
//! is N1. The certificate lies where projects made with kubebuilder look for it. **Fault.** Kills, as for N1. **Right verdict.**
//! Pass: the API server reaches the webhook through the Service of the run's own namespace.

use std::{convert::Infallible, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::n1;
use crate::{
    error::{Error, Result},
    operator::Operator,
};

const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";
const PORT: u16 = 9443;

/// Runs the specimen until the process ends, or its webhook cannot be served.
pub(super) async fn run(operator: Operator) {
    tokio::select! {
        () = n1::run(operator) => {}
        Err(error) = serve() => tracing::error!(%error, "the webhook ended"),
    }
}

async fn serve() -> Result<Infallible> {
    let acceptor = TlsAcceptor::from(Arc::new(certificate()?));
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await.map_err(Error::Webhook)?;
    loop {
        let Ok((connection, _)) = listener.accept().await else { continue };
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(connection) = acceptor.accept(connection).await else { return };
            // A client that goes away is none of our business.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service_fn(answer)).await;
        });
    }
}

fn certificate() -> Result<ServerConfig> {
    let invalid = |error: String| Error::Webhook(std::io::Error::new(std::io::ErrorKind::InvalidData, error));
    let certificates = CertificateDer::pem_file_iter(format!("{CERTIFICATES}/tls.crt"))
        .and_then(Iterator::collect)
        .map_err(|e| invalid(format!("{CERTIFICATES}/tls.crt: {e}")))?;
    let key = PrivateKeyDer::from_pem_file(format!("{CERTIFICATES}/tls.key"))
        .map_err(|e| invalid(format!("{CERTIFICATES}/tls.key: {e}")))?;
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|e| invalid(e.to_string()))
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = decide(&path, &review["request"]);
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}

/// The AdmissionReview that answers a request.
fn decide(path: &str, request: &Value) -> Value {
    let mut response = json!({"uid": request["uid"], "allowed": true});
    let sample = &request["object"];
    if path == "/mutate" {
        let patch = if sample["metadata"]["annotations"].is_object() {
            json!([{"op": "add", "path": "/metadata/annotations/webhook", "value": "seen"}])
        } else {
            json!([{"op": "add", "path": "/metadata/annotations", "value": {"webhook": "seen"}}])
        };
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(patch.to_string()));
    } else if sample["spec"]["text"] == "forbidden" {
        response["allowed"] = json!(false);
        response["status"] = json!({"code": 403, "message": "this text is forbidden"});
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_marks_and_it_refuses() {
        let request = |text: &str| json!({"uid": "u", "object": {"metadata": {}, "spec": {"text": text}}});
        let marked = decide("/mutate", &request("hello"));
        let patch =
            STANDARD.decode(marked["response"]["patch"].as_str().expect("there is a patch")).expect("it is base64");
        assert!(String::from_utf8_lossy(&patch).contains(r#""webhook":"seen""#));
        assert_eq!(decide("/validate", &request("hello"))["response"], json!({"uid": "u", "allowed": true}));
        assert_eq!(decide("/validate", &request("forbidden"))["response"]["allowed"], json!(false));
    }
}
