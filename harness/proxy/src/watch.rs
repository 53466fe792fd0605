//! A watch stream: every event is asked about, queued, and delivered, kept or lost in order.

use crate::{
    body::{Fed, Piece},
    connection::Connection,
    exchange::{FLUSH, Transit},
    frames::{LIMIT, Splitter, WatchEvent},
    path::{EndStream, Path, SLOW},
    status,
};
use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use http::{Response, header, response::Parts};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use spiritlevel_model::{
    Meta, Revision, Uid,
    fault::{Action, At, CloseWatch, Exchange, Firing, Frame, FrameFate, PartitionAs, Stream, Until},
    history::{ClosedBy, Event, Fate, FrameRecord, ReplyOutcome, StreamClosed, StreamOpened},
};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Bytes of events that may wait in one stream; then the API server has to.
const QUEUE: usize = 32 * 1024 * 1024;

/// Opens the stream to the client and keeps it going until it ends.
pub(crate) async fn open(transit: Transit, mut parts: Parts, upstream: Incoming) {
    parts.headers.remove(header::CONTENT_LENGTH);
    let path = transit.path.clone();
    let stream = Stream {
        id: path.numbers.stream(),
        request: transit.id,
        actor: transit.actor.clone(),
        user_agent: transit.user_agent.clone(),
        info: transit.info.clone(),
    };
    let orders = path.add_stream(stream.clone());
    if let Some(resource) = &stream.info.resource {
        path.director.record(Event::StreamOpened(StreamOpened {
            stream: stream.id,
            request: stream.request,
            actor: stream.actor.clone(),
            resource: resource.clone(),
            namespace: stream.info.namespace.clone(),
        }));
    }
    let (to_client, body) = mpsc::channel(16);
    let status = parts.status.as_u16();
    let connection = transit.connection.clone();
    let http2 = transit.client.is_http2();
    let shortens = |f: &&Firing| matches!(f.action, Action::ShortWatch { .. });
    let shortened_by = transit.firing.as_ref().filter(shortens).map(|f| f.fault.clone());
    let after_reply = transit.firing.clone().filter(|f| f.at == At::AfterReply);
    let bodies = transit.bodies.clone();
    let (client, receipt) = transit.split();
    receipt.close(ReplyOutcome::Delivered(status), None);
    let held = after_reply.is_some().then(|| path.hold_gate());
    client.hand_over(Response::from_parts(parts, Fed(body).boxed_unsync()));
    if let Some(firing) = after_reply {
        tokio::time::sleep(FLUSH).await;
        let view = Exchange {
            id: stream.request,
            actor: &stream.actor,
            user_agent: stream.user_agent.as_deref(),
            info: &stream.info,
            bodies: &bodies,
        };
        crate::fault::act_after_reply(&path, &firing, &view).await;
    }
    drop(held);
    let mut pump = Pump {
        path: path.clone(),
        connection: connection.clone(),
        shortened_by,
        stream,
        to_client,
        queue: VecDeque::new(),
        queued: 0,
        withheld_by: None,
        waiting: BTreeSet::new(),
        let_go: BTreeSet::new(),
        told: BTreeSet::new(),
        closing: None,
    };
    let end = pump.run(upstream, orders).await;
    if matches!(end, End::Fault(EndStream { how: CloseWatch::Reset, .. })) && !http2 {
        connection.reset_when_closed();
    }
    pump.close(end, connection.ended_by()).await;
}

/// One event on its way.
struct Waiting {
    line: Bytes,
    record: Option<FrameRecord>,
    /// When it is due; none while it waits for something else to happen.
    due: Option<Instant>,
    /// The fault that delays it.
    by: Option<String>,
    /// The stream ends after it.
    then: Option<EndStream>,
}

enum End {
    Server,
    Broken,
    Client,
    Fault(EndStream),
}

struct Pump {
    path: Arc<Path>,
    connection: Arc<Connection>,
    /// The fault because of which the API server ends it early.
    shortened_by: Option<String>,
    stream: Stream,
    to_client: mpsc::Sender<Piece>,
    queue: VecDeque<Waiting>,
    queued: usize,
    /// The fault that keeps everything from here on.
    withheld_by: Option<String>,
    /// Faults whose release is being waited for, and those that have let go.
    waiting: BTreeSet<String>,
    let_go: BTreeSet<String>,
    /// Faults whose effect on this stream has been told.
    told: BTreeSet<String>,
    /// The source has ended; what is queued still goes out.
    closing: Option<End>,
}

type Releases = FuturesUnordered<BoxFuture<'static, (String, String)>>;

impl Pump {
    async fn run(&mut self, mut upstream: Incoming, mut orders: mpsc::UnboundedReceiver<EndStream>) -> End {
        let mut splitter = Splitter::new(LIMIT);
        let mut condition = self.path.condition();
        let mut releases = Releases::new();
        let to_client = self.to_client.clone();
        loop {
            // A withheld stream outlives its source's ordinary end, but not the API server.
            let over = match self.closing {
                Some(End::Broken) => self.queue.is_empty(),
                Some(_) => self.queue.is_empty() && self.withheld_by.is_none(),
                None => false,
            };
            if over && let Some(end) = self.closing.take() {
                return end;
            }
            let vanishes = condition.borrow_and_update().cut == Some(PartitionAs::Blackhole);
            let due = self.queue.front().and_then(|w| w.due);
            let ready = due.is_some_and(|due| due <= Instant::now()) && !vanishes;
            if vanishes && !self.queue.is_empty() {
                self.path.tell_partition("an exchange or event was kept back");
            }
            let takes_more = self.closing.is_none() && self.queued < QUEUE;
            tokio::select! {
                biased;
                Some(order) = orders.recv() => {
                    if let Some(end) = self.obey(order) {
                        return end;
                    }
                }
                () = to_client.closed() => return End::Client,
                permit = to_client.reserve(), if ready => {
                    let Ok(permit) = permit else { return End::Client };
                    if let Some(end) = self.deliver(permit) {
                        return end;
                    }
                }
                _ = condition.changed() => {}
                Some((fault, by)) = releases.next(), if !releases.is_empty() => self.release(&fault, by),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() && !ready && !vanishes => {}
                frame = upstream.frame(), if takes_more => match frame {
                    Some(Ok(frame)) => {
                        let Ok(bytes) = frame.into_data() else { continue };
                        splitter.push(&bytes);
                        loop {
                            match splitter.line() {
                                Ok(Some(line)) => self.take(line, &mut releases),
                                Ok(None) => break,
                                Err(e) => {
                                    tracing::warn!(stream = %self.stream.id, error = %e, "a watch cannot be followed");
                                    self.closing = Some(End::Broken);
                                    break;
                                }
                            }
                        }
                    }
                    ended => {
                        if let Some(rest) = splitter.rest() {
                            self.queue(Waiting { line: rest, record: None, due: Some(Instant::now()), by: None, then: None });
                        }
                        self.closing = Some(if ended.is_none() { End::Server } else { End::Broken });
                    }
                },
            }
        }
    }

    /// Asks what becomes of an event.
    fn take(&mut self, line: Bytes, releases: &mut Releases) {
        let now = Instant::now();
        let Some(event) = WatchEvent::read(&line) else {
            return self.queue(Waiting { line, record: None, due: Some(now), by: None, then: None });
        };
        let object = event.object();
        let uid = object.uid();
        let frame = Frame {
            kind: event.kind,
            object,
            uid: uid.as_ref().map(|u: &Uid| u.0.as_str()),
            namespace: object.namespace(),
            name: object.name().filter(|n| !n.is_empty()),
            revision: object.revision(),
        };
        // Asked for kept events too: rules count what they do not decide.
        let fate = self.path.director.on_frame(&self.stream, &frame);
        let record = |fate: Fate, fault: Option<&str>| FrameRecord {
            stream: self.stream.id,
            kind: frame.kind,
            uid: uid.clone(),
            namespace: frame.namespace.map(Into::into),
            name: frame.name.map(Into::into),
            revision: frame.revision,
            fate,
            fault: fault.map(Into::into),
        };
        if let Some(fault) = self.withheld_by.clone() {
            let record = record(Fate::Withheld, Some(&fault));
            return self.keep(record, &fault);
        }
        let slow = if self.path.cut() == Some(PartitionAs::Slow) {
            self.path.tell_partition("an event was late");
            SLOW
        } else {
            std::time::Duration::ZERO
        };
        match fate {
            FrameFate::Deliver => {
                let record = record(Fate::Delivered, None);
                self.queue(Waiting { line, record: Some(record), due: Some(now + slow), by: None, then: None });
            }
            FrameFate::CloseAfter { fault, how } => {
                let record = record(Fate::Delivered, Some(&fault));
                let then = Some(EndStream { how, fault });
                self.queue(Waiting { line, record: Some(record), due: Some(now + slow), by: None, then });
            }
            FrameFate::Duplicate { fault } => {
                let record = record(Fate::Delivered, Some(&fault));
                self.path.effect(&fault, format!("gave {} twice", describe(&record, &self.stream)));
                for _ in 0..2 {
                    let (line, record) = (line.clone(), Some(record.clone()));
                    self.queue(Waiting { line, record, due: Some(now + slow), by: None, then: None });
                }
            }
            FrameFate::Drop { fault } => {
                let record = record(Fate::Dropped, Some(&fault));
                let what = describe(&record, &self.stream);
                self.path.director.record(Event::Frame(record));
                self.path.effect(&fault, format!("dropped {what}"));
            }
            FrameFate::Withhold { fault } => {
                let record = record(Fate::Withheld, Some(&fault));
                self.withheld_by = Some(fault.clone());
                self.keep(record, &fault);
            }
            FrameFate::Delay { fault, by, until } => {
                let held = record(Fate::Held, Some(&fault));
                let delivered = FrameRecord { fate: Fate::Delivered, ..held.clone() };
                let due = if self.let_go.contains(&fault) { Some(now) } else { by.map(|by| now + by.0) };
                if due.is_none_or(|due| due > now) {
                    self.path.director.record(Event::Frame(held));
                    self.await_release(&fault, until, releases);
                }
                self.queue(Waiting { line, record: Some(delivered), due, by: Some(fault), then: None });
            }
        }
    }

    fn queue(&mut self, mut waiting: Waiting) {
        // Order is kept: nothing overtakes what waits.
        if let (Some(due), Some(last)) = (waiting.due, self.queue.back()) {
            waiting.due = last.due.map_or(Some(due), |last| Some(last.max(due)));
        }
        self.queued += waiting.line.len();
        self.queue.push_back(waiting);
    }

    /// Hands the first event to the client's connection.
    fn deliver(&mut self, permit: mpsc::Permit<'_, Piece>) -> Option<End> {
        let waiting = self.queue.pop_front()?;
        self.queued -= waiting.line.len();
        if let (Some(fault), true) = (&waiting.by, self.queue.front().is_none_or(|next| next.by != waiting.by)) {
            // By time, event by event; by a condition it has been told already.
            if !self.let_go.contains(fault) {
                self.path.released(fault, self.stream.request, "time".into());
            }
        }
        if let Some(record) = waiting.record {
            // Recorded first: the client may react at once.
            self.path.director.record(Event::Frame(record));
        }
        permit.send(Piece::Frame(waiting.line));
        waiting.then.and_then(|order| self.obey(order))
    }

    /// The end, or, for a stall, everything from here on is kept.
    fn obey(&mut self, order: EndStream) -> Option<End> {
        match order.how {
            CloseWatch::Stall => {}
            CloseWatch::StallConnection => {
                self.path.effect(&order.fault, "a connection was stalled");
                self.connection.stall();
                return None;
            }
            _ => return Some(End::Fault(order)),
        }
        self.withheld_by = Some(order.fault);
        self.keep_queue();
        None
    }

    /// Waits, once per fault, for what lets its events go.
    fn await_release(&mut self, fault: &str, until: Option<Until>, releases: &mut Releases) {
        if !self.waiting.insert(fault.into()) {
            return;
        }
        let (director, fault) = (self.path.director.clone(), fault.to_owned());
        releases.push(Box::pin(async move {
            let by = if let Some(until) = &until {
                director.released(&fault, until).await
            } else {
                director.healed(&fault).await;
                "heal".into()
            };
            (fault, by)
        }));
    }

    fn release(&mut self, fault: &str, by: String) {
        let now = Instant::now();
        let mut held = false;
        for waiting in self.queue.iter_mut().filter(|w| w.by.as_deref() == Some(fault)) {
            held = true;
            waiting.due = Some(now);
        }
        self.waiting.remove(fault);
        self.let_go.insert(fault.into());
        if held {
            self.path.released(fault, self.stream.request, by);
        }
    }

    /// A stall takes what is queued as well.
    fn keep_queue(&mut self) {
        self.queued = 0;
        let Some(fault) = self.withheld_by.clone() else { return };
        for waiting in std::mem::take(&mut self.queue) {
            if let Some(record) = waiting.record {
                self.keep(FrameRecord { fate: Fate::Withheld, fault: Some(fault.clone()), ..record }, &fault);
            }
        }
    }

    fn keep(&mut self, record: FrameRecord, fault: &str) {
        let what = describe(&record, &self.stream);
        self.path.director.record(Event::Frame(record));
        if self.told.insert(fault.into()) {
            self.path.effect(fault, format!("kept {what}"));
        }
    }

    async fn close(self, end: End, connection_ended_by: Option<&str>) {
        let Pump { path, stream, to_client, shortened_by, connection, .. } = self;
        path.remove_stream(stream.id);
        path.director.on_stream_end(&stream);
        let closed = |by, fault: Option<String>, how| {
            path.director.record(Event::StreamClosed(StreamClosed { stream: stream.id, by, fault, how }));
        };
        match end {
            End::Server => {
                if let Some(fault) = shortened_by {
                    path.effect(&fault, format!("the watch of {} ended early", stream.info.resource_path()));
                }
                closed(ClosedBy::Server, None, None);
            }
            End::Broken => {
                closed(ClosedBy::Server, None, None);
                cut(&to_client).await;
            }
            End::Client => match connection_ended_by {
                Some(fault) => closed(ClosedBy::Fault, Some(fault.into()), None),
                None => closed(ClosedBy::Client, None, None),
            },
            End::Fault(EndStream { how, fault }) => {
                closed(ClosedBy::Fault, Some(fault.clone()), Some(how));
                path.effect(&fault, format!("ended the watch of {} by {}", stream.info.resource_path(), stream.actor));
                match how {
                    // Nobody would write that it is over.
                    _ if connection.is_stalled() => connection.reset(Some(&fault)),
                    CloseWatch::Reset => cut(&to_client).await,
                    CloseWatch::Error410 => {
                        let line = status::expired_event(&stream.info);
                        // The client may be gone.
                        let _ = to_client.send(Piece::Frame(line.into())).await;
                    }
                    CloseWatch::Clean | CloseWatch::Expire | CloseWatch::Stall | CloseWatch::StallConnection => {}
                }
            }
        }
    }
}

/// Breaks the body, after the last good event has left: a reset discards what is still in HTTP/2's own queue.
async fn cut(to_client: &mpsc::Sender<Piece>) {
    tokio::task::yield_now().await;
    tokio::time::sleep(FLUSH).await;
    let _ = to_client.send(Piece::Cut).await;
}

fn describe(record: &FrameRecord, stream: &Stream) -> String {
    let kind = format!("{:?}", record.kind).to_uppercase();
    let revision = record.revision.map_or_else(String::new, |Revision(r)| format!(" at {r}"));
    let object = match (&record.namespace, &record.name) {
        (Some(namespace), Some(name)) => format!(" {namespace}/{name}"),
        (_, Some(name)) => format!(" {name}"),
        _ => String::new(),
    };
    format!("{kind} {}{object}{revision} from {}", stream.info.resource_path(), stream.actor)
}
