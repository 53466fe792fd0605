//! One request from arrival to reply: let in, read, asked about, sent, answered, replied to; recorded all the way.

use crate::{
    answer::AnswerBody,
    bodies,
    body::{self, Body, Cut, Ended, Observed},
    connection::Connection,
    edit, exec,
    fault::Course,
    headers,
    path::{InFlight, Path},
    status::{Refusal, Told},
    tunnel, watch,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version, header, request::Parts};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as _, Incoming};
use spiritlevel_model::{
    Actor, RequestId, RequestInfo, Verb,
    fault::{Action, At, Bodies, Exchange, Firing},
    history::{Answer, Event, Reply, ReplyOutcome, Request as RequestRecord, Speech},
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Largest body of a write; the API server's own limit is 3 MiB.
const BODY_LIMIT: usize = 16 * 1024 * 1024;
/// Until a handed-over reply has left for the client: the next turn of its connection's task.
pub(crate) const FLUSH: Duration = Duration::from_millis(10);

type ReplySender = oneshot::Sender<Result<Response<Body>, Cut>>;

/// A request on its way.
pub(crate) struct Transit {
    pub(crate) path: Arc<Path>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: RequestId,
    pub(crate) actor: Actor,
    pub(crate) user_agent: Option<String>,
    method: Method,
    pub(crate) info: RequestInfo,
    pub(crate) bodies: Bodies,
    pub(crate) firing: Option<Firing>,
    pub(crate) client: Client,
    user: Option<String>,
    pub(crate) token: Option<http::HeaderValue>,
    in_flight: InFlight,
}

/// The client's end of an exchange.
pub(crate) struct Client {
    reply: ReplySender,
    connection: Arc<Connection>,
    version: Version,
}

/// Notes how an exchange ended, once.
pub(crate) struct Receipt {
    path: Arc<Path>,
    connection: Arc<Connection>,
    id: RequestId,
    _in_flight: InFlight,
}

/// Takes a request from its arrival to its end.
pub(crate) async fn run(path: Arc<Path>, connection: Arc<Connection>, request: Request<Incoming>, reply: ReplySender) {
    let in_flight = path.enter();
    let mut client = Client { reply, connection: connection.clone(), version: request.version() };
    let let_in = async {
        path.unless_blackhole().await;
        path.slowly().await;
        path.through_gate().await;
    };
    if client.unless_gone(let_in).await.is_none() {
        return;
    }
    let (mut parts, incoming) = request.into_parts();
    let url = parts.uri.path_and_query().map_or("/", |p| p.as_str());
    let mut info = RequestInfo::classify(parts.method.as_str(), url);
    // A watch over WebSocket would pass unseen. Answered without the upgrade, clients ask again for a plain stream; the
    // answer must have an end, since some read all of a refused handshake first (Vert.x).
    let asked = headers::upgrade(&parts.headers);
    let declined = asked.is_some() && info.verb == Verb::Watch;
    let upgrade = asked.clone().filter(|_| !declined);
    let buffered = info.verb.is_write() && upgrade.is_none() && !headers::is_raw(&info);
    let content_type = text(&parts.headers, &header::CONTENT_TYPE);
    let speech = Speech {
        http: if client.is_http2() { "2" } else { "1.1" }.into(),
        accept: text(&parts.headers, &header::ACCEPT),
        upgrade: asked.and_then(|v| v.to_str().ok().map(Into::into)),
    };
    let mut bodies = Bodies::default();
    let mut sent = Bytes::new();
    let upgraded = upgrade.is_some().then(|| parts.extensions.remove::<hyper::upgrade::OnUpgrade>()).flatten();
    let body = if buffered {
        match client.unless_gone(Limited::new(incoming, BODY_LIMIT).collect()).await {
            Some(Ok(read)) => {
                let bytes = read.to_bytes();
                bodies = bodies::read(&info, content_type.as_deref(), &bytes);
                sent = bytes.clone();
                body::whole(bytes)
            }
            Some(Err(e)) if e.is::<http_body_util::LengthLimitError>() => {
                let (told, bodies) = (Told::status(413), Bodies::default());
                let refusal = Refusal { told, method: &parts.method, info: &info, bodies: &bodies, user: None };
                client.hand_over(refusal.response());
                return;
            }
            // Half a request is none.
            _ => return,
        }
    } else if incoming.is_end_stream() {
        body::whole(Bytes::new())
    } else {
        incoming.map_err(Into::into).boxed_unsync()
    };
    if info.name.is_none() && info.verb == Verb::Create {
        info.name.clone_from(&bodies.name);
    }
    if info.verb == Verb::Create
        && info.subresource.is_none()
        && info.resource.as_ref().is_some_and(|r| r.resource == "namespaces" && r.group.is_empty())
    {
        info.namespace.clone_from(&bodies.name);
    }
    let user_agent = text(&parts.headers, &header::USER_AGENT);
    let mut transit = Transit {
        id: path.numbers.request(),
        actor: path.director.actor(&path.actor, user_agent.as_deref()),
        user: user_of(&parts.headers),
        token: parts.headers.get(header::AUTHORIZATION).cloned(),
        path,
        connection,
        user_agent,
        method: parts.method.clone(),
        info,
        bodies,
        firing: None,
        client,
        in_flight,
    };
    transit.record_arrival(content_type.filter(|_| buffered), speech);
    if declined {
        transit.record_answer(StatusCode::OK, AnswerBody::default());
        return transit.deliver_whole(Response::new(body::whole(""))).await;
    }
    prepare_headers(&mut parts, &transit.info, upgrade.as_ref());
    if buffered && transit.path.director.asks_for_outcome(&transit.view()) {
        transit.foresee(&parts, sent).await;
    }
    transit.firing = transit.path.director.on_request(&transit.view());
    if let Some(fault) = transit.path.refuses(transit.token.as_ref()).filter(|_| transit.firing.is_none()) {
        transit.firing = Some(Firing::new(&fault, Action::ExpireToken {}, At::BeforeSend, transit.id));
    }
    if let Some(firing) = &transit.firing {
        edit::request(&mut parts, firing);
    }
    let request = Request::from_parts(parts, body);
    transit.go(request, upgraded).await;
}

fn prepare_headers(parts: &mut Parts, info: &RequestInfo, upgrade: Option<&http::HeaderValue>) {
    headers::strip_hop_by_hop(&mut parts.headers);
    for name in [header::HOST, header::EXPECT] {
        parts.headers.remove(name);
    }
    if headers::speaks_objects(info) {
        headers::ask_for_json(&mut parts.headers);
    }
    if let Some(protocol) = upgrade {
        parts.headers.insert(header::CONNECTION, http::HeaderValue::from_static("Upgrade"));
        parts.headers.insert(header::UPGRADE, protocol.clone());
    } else {
        for name in [
            header::SEC_WEBSOCKET_KEY,
            header::SEC_WEBSOCKET_VERSION,
            header::SEC_WEBSOCKET_EXTENSIONS,
            header::SEC_WEBSOCKET_PROTOCOL,
        ] {
            parts.headers.remove(name);
        }
    }
    parts.extensions.clear();
}

// === impl Transit ===

impl Transit {
    async fn go(mut self, request: Request<Body>, upgraded: Option<hyper::upgrade::OnUpgrade>) {
        match self.act(At::BeforeSend).await {
            Course::On => {}
            course => return self.finish(course),
        }
        let let_out = {
            let path = self.path.clone();
            async move {
                path.unless_blackhole().await;
                path.through_gate().await;
            }
        };
        if self.client.unless_gone(let_out).await.is_none() {
            return self.finish(Course::Gone);
        }
        let path = self.path.clone();
        if let (Some(to_client), Some("exec" | "attach")) = (&upgraded, self.info.subresource.as_deref())
            && let Some(answer) = path.director.exec(&self.view())
        {
            let to_client = to_client.clone();
            let (parts, _) = request.into_parts();
            return exec::answer(self, &parts, to_client, answer).await;
        }
        let sent = path.api_server.send(request);
        // A write goes on without its client: what the API server made of it must be known.
        let answered = if self.info.verb.is_write() { Some(sent.await) } else { self.client.unless_gone(sent).await };
        let mut response = match answered {
            Some(Ok(response)) => response,
            Some(Err(e)) => {
                let unreachable = e.is_connect();
                self.record_no_answer(&e);
                if unreachable {
                    // A dead API server is dead: no connection stays open or is accepted, and nothing answers 502.
                    self.path.lose_server();
                }
                return self.finish(Course::Break);
            }
            None => return self.finish(Course::Gone),
        };
        let to_server =
            (response.status() == StatusCode::SWITCHING_PROTOCOLS).then(|| hyper::upgrade::on(&mut response));
        let (mut parts, incoming) = response.into_parts();
        self.tell_past(parts.status);
        let protocol = parts.headers.get(header::UPGRADE).cloned();
        headers::strip_hop_by_hop(&mut parts.headers);

        if let (Some(to_server), Some(to_client)) = (to_server, upgraded) {
            self.record_answer(parts.status, AnswerBody::default());
            match self.act(At::AfterCommit).await {
                Course::On => {}
                course => return self.finish(course),
            }
            return tunnel::open(self, parts, protocol, to_client, to_server).await;
        }
        if self.info.verb == Verb::Watch && parts.status == StatusCode::OK {
            self.record_answer(parts.status, AnswerBody::default());
            match self.act(At::AfterCommit).await {
                Course::On => {}
                course => return self.finish(course),
            }
            return watch::open(self, parts, incoming).await;
        }
        if self.is_small(parts.status) {
            let read = incoming.collect();
            let read = if self.info.verb.is_write() { Some(read.await) } else { self.client.unless_gone(read).await };
            let bytes = match read {
                Some(Ok(read)) => read.to_bytes(),
                Some(Err(e)) => {
                    self.record_no_answer(&e);
                    return self.finish(Course::Break);
                }
                None => return self.finish(Course::Gone),
            };
            self.record_answer(parts.status, AnswerBody::read(&bytes));
            let bytes = self.edited(&mut parts, bytes);
            if let Some(firing) = self.firing.as_ref().filter(|f| matches!(f.action, Action::Conflict {})) {
                path.director.answered(firing, &self.view()).await;
            }
            match self.act(At::AfterCommit).await {
                Course::On => self.deliver_whole(Response::from_parts(parts, body::whole(bytes))).await,
                course => self.finish(course),
            }
        } else {
            self.record_answer(parts.status, AnswerBody::default());
            match self.act(At::AfterCommit).await {
                Course::On => {
                    let body = incoming.map_err(Into::into).boxed_unsync();
                    self.deliver_stream(Response::from_parts(parts, body)).await;
                }
                course => self.finish(course),
            }
        }
    }

    /// Asks the API server what the request would make, and what is stored, for rules that look at it. Both requests are
    /// the client's own but for `dryRun`, so that they are answered as it would be; neither stores anything.
    async fn foresee(&mut self, parts: &Parts, body: Bytes) {
        let object = |answer: Option<Bytes>| answer.and_then(|b| serde_json::from_slice(&b).ok());
        if self.info.verb != Verb::Create && self.info.name.is_some() {
            self.bodies.stored = object(self.ask(edit::lookup(parts)).await);
        }
        self.bodies.outcome = match self.info.verb {
            Verb::Delete | Verb::DeleteCollection => self.bodies.stored.clone(),
            _ => object(self.ask(edit::dry_run(parts, body)).await),
        };
    }

    /// The body of a successful answer.
    async fn ask(&mut self, request: Option<Request<Body>>) -> Option<Bytes> {
        let sent = self.path.api_server.send(request?);
        let response = sent.await.ok().filter(|r| r.status().is_success())?;
        Some(response.into_body().collect().await.ok()?.to_bytes())
    }

    /// What a fault makes of the API server's answer.
    fn edited(&self, parts: &mut http::response::Parts, bytes: Bytes) -> Bytes {
        let Some(firing) = self.firing.as_ref().filter(|_| parts.status.is_success()) else { return bytes };
        match edit::answer(&firing.action, &self.info, parts, &bytes) {
            Some((edited, what)) => {
                self.path.effect(&firing.fault, what);
                edited
            }
            None => bytes,
        }
    }

    /// The effect of what was rewritten in the request.
    fn tell_past(&self, status: StatusCode) {
        let Some(firing) = self.firing.as_ref().filter(|f| !f.rewrite.is_empty() && status.is_success()) else {
            return;
        };
        let of = firing.rewrite.iter().find(|(key, _)| key == "resourceVersion").and_then(|(_, v)| v.as_deref());
        if let Some(revision) = of {
            let what = format!("{} was answered as of resourceVersion {revision}", self.info);
            self.path.effect(&firing.fault, what);
        }
    }

    /// Whether the answer is read before it is passed on: one object or a refusal, never a list.
    fn is_small(&self, status: StatusCode) -> bool {
        let one = self.info.verb.is_write() || self.info.verb == Verb::Get;
        let edited = self.firing.as_ref().is_some_and(|f| edit::is_edited(&f.action));
        !headers::is_raw(&self.info) && (one || edited || !status.is_success())
    }

    pub(crate) async fn deliver_whole(mut self, response: Response<Body>) {
        if self.client.unless_gone(self.path.clone().unless_blackhole_owned()).await.is_none() {
            return self.finish(Course::Gone);
        }
        let status = response.status().as_u16();
        let made_conflict = self.firing.as_ref().filter(|f| matches!(f.action, Action::Conflict {}) && status == 409);
        if let Some(firing) = made_conflict {
            self.path.effect(&firing.fault, "the API server answered 409");
        }
        let fault = made_conflict.map(|f| f.fault.clone());
        let after = self.firing.as_ref().is_some_and(|f| f.at == At::AfterReply);
        if !after {
            let (client, receipt) = self.split();
            receipt.close(ReplyOutcome::Delivered(status), fault);
            client.hand_over(response);
            return;
        }
        self.deliver_then_act(response, fault).await;
    }

    async fn deliver_stream(mut self, response: Response<Body>) {
        if self.client.unless_gone(self.path.clone().unless_blackhole_owned()).await.is_none() {
            return self.finish(Course::Gone);
        }
        if self.firing.as_ref().is_some_and(|f| f.at == At::AfterReply) {
            return self.deliver_then_act(response, None).await;
        }
        let status = response.status().as_u16();
        let (client, receipt) = self.split();
        let response = response.map(|body| Observed::wrap(body, move |ended| receipt.close_streamed(ended, status)));
        client.hand_over(response);
    }

    /// The actor's gate is shut from the moment at which the reply can reach it.
    async fn deliver_then_act(self, response: Response<Body>, fault: Option<String>) {
        let held = self.path.hold_gate();
        let status = response.status().as_u16();
        let (ended, end) = oneshot::channel();
        let response = response.map(|body| {
            Observed::wrap(body, move |how| {
                let _ = ended.send(how);
            })
        });
        let Transit { path, connection, id, actor, user_agent, info, bodies, firing, client, in_flight, .. } = self;
        client.hand_over(response);
        let how = end.await.unwrap_or(Ended::Dropped);
        let receipt = Receipt { path: path.clone(), connection, id, _in_flight: in_flight };
        match fault {
            Some(fault) if how == Ended::Complete => receipt.close(ReplyOutcome::Delivered(status), Some(fault)),
            _ => receipt.close_streamed(how, status),
        }
        tokio::time::sleep(FLUSH).await;
        let Some(firing) = firing else { return };
        let view = Exchange { id, actor: &actor, user_agent: user_agent.as_deref(), info: &info, bodies: &bodies };
        crate::fault::act_after_reply(&path, &firing, &view).await;
        drop(held);
    }

    /// Ends the exchange without the API server's answer.
    pub(crate) fn finish(self, course: Course) {
        let fault = self.firing.as_ref().map(|f| f.fault.clone());
        match course {
            Course::Refuse(response) => {
                let status = response.status().as_u16();
                if let Some(fault) = &fault {
                    self.path.effect(fault, format!("the request was answered {status}"));
                }
                let (client, receipt) = self.split();
                receipt.close(ReplyOutcome::Forged(status), fault);
                client.hand_over(response);
            }
            Course::Deny(response) => {
                let status = response.status().as_u16();
                let (client, receipt) = self.split();
                receipt.close(ReplyOutcome::Delivered(status), None);
                client.hand_over(response);
            }
            Course::Cut => {
                if let Some(fault) = &fault {
                    self.path.effect(fault, "the exchange was cut off");
                }
                let (client, receipt) = self.split();
                receipt.close(ReplyOutcome::Broken, fault);
                client.cut();
            }
            Course::Break => {
                let (client, receipt) = self.split();
                receipt.close(ReplyOutcome::Broken, None);
                client.cut();
            }
            // `on` is no end.
            Course::On | Course::Gone => {
                let (_, receipt) = self.split();
                receipt.close(ReplyOutcome::Gone, None);
            }
        }
    }

    pub(crate) fn split(self) -> (Client, Receipt) {
        let receipt = Receipt { path: self.path, connection: self.connection, id: self.id, _in_flight: self.in_flight };
        (self.client, receipt)
    }

    pub(crate) fn view(&self) -> Exchange<'_> {
        Exchange {
            id: self.id,
            actor: &self.actor,
            user_agent: self.user_agent.as_deref(),
            info: &self.info,
            bodies: &self.bodies,
        }
    }

    /// The API server's words for a refusal of this request.
    pub(crate) fn refuse(&self, told: Told<'_>) -> Response<Body> {
        let (method, user) = (&self.method, self.user.as_deref());
        Refusal { told, method, info: &self.info, bodies: &self.bodies, user }.response()
    }

    fn record_arrival(&self, content_type: Option<String>, speech: Speech) {
        self.path.director.record(Event::Request(RequestRecord {
            id: self.id,
            actor: self.actor.clone(),
            info: self.info.clone(),
            user_agent: self.user_agent.clone(),
            content_type,
            body: self.bodies.json.clone(),
            uid: self.bodies.uid.clone(),
            resource_version: self.bodies.resource_version.clone(),
            speech: Some(speech),
        }));
    }

    pub(crate) fn record_answer(&self, status: StatusCode, body: AnswerBody) {
        let AnswerBody { reason, message, object } = body;
        let status = Some(status.as_u16());
        self.path.director.record(Event::Answer(Answer { id: self.id, status, reason, message, object }));
    }

    fn record_no_answer(&self, error: &dyn std::error::Error) {
        self.record_silence(causes(error));
    }

    pub(crate) fn record_silence(&self, why: String) {
        let message = Some(why);
        self.path.director.record(Event::Answer(Answer {
            id: self.id,
            status: None,
            reason: None,
            message,
            object: None,
        }));
    }
}

// === impl Client ===

impl Client {
    /// Waits for something, but not longer than the client does.
    pub(crate) async fn unless_gone<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.reply.closed() => None,
            // Known a turn earlier: what waits at a gate must not slip through it after a crash.
            () = self.connection.ended.cancelled() => None,
            done = work => Some(done),
        }
    }

    pub(crate) fn hand_over(self, response: Response<Body>) {
        // A client that has just gone is seen by the body's end, or never.
        let _ = self.reply.send(Ok(response));
    }

    /// HTTP/2: the stream is reset; HTTP/1.1: the connection.
    pub(crate) fn cut(self) {
        if self.version < Version::HTTP_2 {
            self.connection.reset_when_closed();
        }
        let _ = self.reply.send(Err(Cut));
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.version >= Version::HTTP_2
    }
}

// === impl Receipt ===

impl Receipt {
    /// Records the end; a connection that a partition broke is its doing.
    pub(crate) fn close(self, outcome: ReplyOutcome, fault: Option<String>) {
        let (outcome, fault) = match (outcome, self.connection.ended_by()) {
            (ReplyOutcome::Gone, Some(fault)) => (ReplyOutcome::Broken, Some(fault.to_owned())),
            given => (given.0, fault),
        };
        self.path.director.record(Event::Reply(Reply { id: self.id, outcome, fault }));
    }

    fn close_streamed(self, ended: Ended, status: u16) {
        self.close(
            match ended {
                Ended::Complete => ReplyOutcome::Delivered(status),
                Ended::Failed => ReplyOutcome::Broken,
                Ended::Dropped => ReplyOutcome::Gone,
            },
            None,
        );
    }
}

fn text(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(Into::into)
}

/// The subject of a ServiceAccount token. Not verified: it only fills the words of a forged 403.
fn user_of(headers: &HeaderMap) -> Option<String> {
    let token = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<serde_json::Value>(&claims).ok()?["sub"].as_str().map(Into::into)
}

/// An error with its causes, in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
