//! Answers `exec` and `attach` where no kubelet runs: with a given output and exit code, in the protocols of real
//! clients, after asking the API server whether the client may.

mod spdy;
mod websocket;

use crate::{
    answer::AnswerBody,
    body,
    exchange::{Transit, causes},
    fault::Course,
    status::Told,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use spiritlevel_model::history::ReplyOutcome;

/// What a command in a container would have given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecAnswer {
    /// Its exit code.
    pub exit_code: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
}

impl ExecAnswer {
    /// As a kubelet reports the end of a command (`k8s.io/kubelet/pkg/cri/streaming/remotecommand/exec.go`).
    fn status(&self) -> Vec<u8> {
        let status = match self.exit_code {
            0 => json!({"metadata": {}, "status": "Success"}),
            code => json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: exit code {code}"),
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
        };
        status.to_string().into_bytes()
    }
}

/// The protocols in which streams are told apart, best first.
enum Protocol {
    WebSocket { subprotocol: HeaderValue, accept: HeaderValue },
    Spdy,
}

const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// Of the versions over SPDY, the one that reports exit codes.
const V4: &str = "v4.channel.k8s.io";

/// Answers instead of the API server, if it allows the client to ask.
pub(crate) async fn answer(mut transit: Transit, parts: &Parts, upgraded: OnUpgrade, answer: ExecAnswer) {
    match may(&mut transit, parts).await {
        Course::On => {}
        course => return transit.finish(course),
    }
    let Some(protocol) = negotiate(&parts.headers) else {
        let message = "unable to upgrade: no protocol in common: v5.channel.k8s.io, v4.channel.k8s.io";
        let response = transit.refuse(Told::message(400, message));
        transit.record_answer(StatusCode::BAD_REQUEST, AnswerBody::default());
        return transit.deliver_whole(response).await;
    };
    let mut response = Response::new(body::whole(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    match &protocol {
        Protocol::WebSocket { subprotocol, accept } => {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, subprotocol.clone());
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.clone());
        }
        Protocol::Spdy => {
            headers.insert(header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));
            headers.insert(STREAM_PROTOCOL, HeaderValue::from_static(V4));
        }
    }
    transit.record_answer(StatusCode::SWITCHING_PROTOCOLS, AnswerBody::default());
    let streams = spdy::Streams::of(&transit.info);
    let connection = transit.connection.clone();
    let (client, receipt) = transit.split();
    receipt.close(ReplyOutcome::Delivered(StatusCode::SWITCHING_PROTOCOLS.as_u16()), None);
    client.hand_over(response);
    let Ok(io) = upgraded.await else { return };
    let talk = async {
        match protocol {
            Protocol::WebSocket { .. } => websocket::give(TokioIo::new(io), &answer).await,
            Protocol::Spdy => spdy::give(TokioIo::new(io), streams, &answer).await,
        }
    };
    tokio::select! {
        () = connection.ended.cancelled() => {}
        // A client that breaks off has what it wanted.
        _ = talk => {}
    }
}

/// Asks, in the client's own name, what the API server would ask: may it create this subresource?
async fn may(transit: &mut Transit, parts: &Parts) -> Course {
    let info = &transit.info;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": info.namespace, "verb": info.verb.as_str(), "group": "", "version": info.version,
            "resource": info.resource.as_ref().map(|r| r.resource.as_str()), "subresource": info.subresource, "name": info.name,
        }},
    });
    let mut request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(header::CONTENT_TYPE, "application/json")
        .body(body::whole(review.to_string()))
        .expect("a fixed URL and header are valid");
    if let Some(authorization) = parts.headers.get(header::AUTHORIZATION) {
        request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
    }
    let path = transit.path.clone();
    let asked = async {
        let response = path.api_server.send(request).await.map_err(|e| causes(&e))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|e| causes(&e))?.to_bytes();
        Ok::<_, String>((status, serde_json::from_slice::<Value>(&body).unwrap_or_default()))
    };
    match transit.client.unless_gone(asked).await {
        Some(Ok((status, review))) if status.is_success() && review["status"]["allowed"] == true => Course::On,
        Some(Ok((status, _))) => {
            let status = if status == StatusCode::UNAUTHORIZED { status } else { StatusCode::FORBIDDEN };
            transit.record_answer(status, AnswerBody::default());
            Course::Deny(transit.refuse(Told::status(status.as_u16())))
        }
        Some(Err(why)) => {
            transit.record_silence(why);
            Course::Break
        }
        None => Course::Gone,
    }
}

fn negotiate(headers: &HeaderMap) -> Option<Protocol> {
    let upgrade = headers.get(header::UPGRADE)?.to_str().ok()?;
    let offered = |name: &HeaderName| -> Vec<String> {
        let values = headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
        values.flat_map(|v| v.split(',')).map(|p| p.trim().to_owned()).collect()
    };
    if upgrade.eq_ignore_ascii_case("websocket") {
        let protocols = offered(&header::SEC_WEBSOCKET_PROTOCOL);
        let chosen = protocols.iter().find(|p| matches!(p.as_str(), "v5.channel.k8s.io" | "v4.channel.k8s.io"))?;
        let accept = websocket::accept(headers.get(header::SEC_WEBSOCKET_KEY)?.as_bytes());
        return Some(Protocol::WebSocket {
            subprotocol: HeaderValue::from_str(chosen).ok()?,
            accept: HeaderValue::from_str(&accept).ok()?,
        });
    }
    (upgrade.eq_ignore_ascii_case("SPDY/3.1") && offered(&STREAM_PROTOCOL).iter().any(|p| p == V4))
        .then_some(Protocol::Spdy)
}
