//! The path between one actor and the API server: whether it is open, who is on it, and what faults did to it.

use crate::{Director, connection::Connection, proxy::Numbers, upstream::ApiServer};
use spiritlevel_model::{
    Actor, RequestId, StreamId,
    fault::{CloseWatch, PartitionAs, Stream},
    history::{Event, FaultEvent, FaultRecord},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use http::HeaderValue;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How late everything is on a slow path.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

/// How often a dead API server is looked for.
const PROBE: Duration = Duration::from_millis(50);

/// Everything that the tasks of one listener share.
pub(crate) struct Path {
    pub(crate) actor: Actor,
    pub(crate) director: Arc<dyn Director>,
    pub(crate) api_server: ApiServer,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    condition: watch::Sender<Condition>,
    /// Whether the API server takes no connections.
    server_down: watch::Sender<bool>,
    gate: watch::Sender<Gate>,
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    streams: Mutex<BTreeMap<StreamId, OpenStream>>,
    in_flight: AtomicUsize,
    /// Effects that were recorded for the present partition: each kind is told once, not for every retry.
    told: Mutex<BTreeSet<&'static str>>,
    /// Tokens that are valid no more, each with the fault that did it.
    refused: Mutex<Vec<(String, HeaderValue)>>,
    /// When requests passed a throttle, within the last second.
    passed: Mutex<BTreeMap<String, VecDeque<Instant>>>,
}

/// Whether and how the path is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The partition, none when all is well.
    pub(crate) cut: Option<PartitionAs>,
    /// The fault that did it.
    pub(crate) fault: String,
}

/// An actor's gate is shut while anybody holds it shut.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    from_outside: bool,
    by_faults: usize,
}

struct OpenStream {
    stream: Stream,
    end: mpsc::UnboundedSender<EndStream>,
}

/// The order to end a stream.
#[derive(Clone, Debug)]
pub(crate) struct EndStream {
    pub(crate) how: CloseWatch,
    pub(crate) fault: String,
}

impl Path {
    pub(crate) fn new(actor: Actor, director: Arc<dyn Director>, api_server: ApiServer, numbers: Arc<Numbers>) -> Self {
        Self {
            actor,
            director,
            api_server,
            numbers,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            condition: watch::Sender::new(Condition::default()),
            server_down: watch::Sender::new(false),
            gate: watch::Sender::new(Gate::default()),
            connections: Mutex::default(),
            streams: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            told: Mutex::default(),
            refused: Mutex::default(),
            passed: Mutex::default(),
        }
    }

    // === partition ===

    pub(crate) fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    /// The partition that is on now.
    pub(crate) fn cut(&self) -> Option<PartitionAs> {
        self.condition.borrow().cut
    }

    pub(crate) fn set_condition(&self, condition: Condition) {
        lock(&self.told).clear();
        self.condition.send_replace(condition);
    }

    /// Waits while bytes vanish.
    pub(crate) async fn unless_blackhole(&self) {
        if self.cut() == Some(PartitionAs::Blackhole) {
            self.tell_partition("an exchange or event was kept back");
            let mut condition = self.condition();
            // The sender lives as long as this path.
            let _ = condition.wait_for(|c| c.cut != Some(PartitionAs::Blackhole)).await;
        }
    }

    /// The same, for those who hold nothing of the path meanwhile.
    pub(crate) async fn unless_blackhole_owned(self: Arc<Self>) {
        self.unless_blackhole().await;
    }

    /// Waits for as long as a slow path takes.
    pub(crate) async fn slowly(&self) {
        if self.cut() == Some(PartitionAs::Slow) {
            self.tell_partition("an exchange was late");
            let mut condition = self.condition();
            let healed = condition.wait_for(|c| c.cut != Some(PartitionAs::Slow));
            let _ = tokio::time::timeout(SLOW, healed).await;
        }
    }

    /// Records that the partition made a difference.
    pub(crate) fn tell_partition(&self, what: &'static str) {
        let condition = self.condition.borrow().clone();
        if condition.cut.is_some() && lock(&self.told).insert(what) {
            self.effect(&condition.fault, what);
        }
    }

    // === a dead API server ===

    pub(crate) fn server_down(&self) -> watch::Receiver<bool> {
        self.server_down.subscribe()
    }

    /// The API server takes no connections: neither does its listener, until it is back.
    pub(crate) fn lose_server(self: &Arc<Self>) {
        if self.server_down.send_replace(true) {
            return;
        }
        self.reset_connections(None);
        let path = self.clone();
        self.tasks.spawn(async move {
            let back = async {
                while !path.api_server.takes_connections().await {
                    tokio::time::sleep(PROBE).await;
                }
            };
            tokio::select! {
                () = path.stop.cancelled() => {}
                () = back => {
                    path.server_down.send_replace(false);
                }
            }
        });
    }

    // === gate ===

    pub(crate) fn set_gate(&self, shut: bool) {
        self.gate.send_modify(|g| g.from_outside = shut);
    }

    /// Shuts the gate until the guard is dropped.
    pub(crate) fn hold_gate(self: &Arc<Self>) -> GateHeld {
        self.gate.send_modify(|g| g.by_faults += 1);
        GateHeld(self.clone())
    }

    /// Waits until nobody holds the gate shut.
    pub(crate) async fn through_gate(&self) {
        let mut gate = self.gate.subscribe();
        let _ = gate.wait_for(|g| !g.from_outside && g.by_faults == 0).await;
    }

    // === who may pass ===

    /// The fault because of which a token is not taken.
    pub(crate) fn refuses(&self, token: Option<&HeaderValue>) -> Option<String> {
        let refused = lock(&self.refused);
        refused.iter().find(|(_, t)| Some(t) == token).map(|(fault, _)| fault.clone())
    }

    /// From now on a token is not taken, until the fault is healed. Whether that is new.
    pub(crate) fn refuse_token(self: &Arc<Self>, fault: &str, token: Option<&HeaderValue>) -> bool {
        let Some(token) = token.filter(|t| self.refuses(Some(t)).is_none()) else { return false };
        lock(&self.refused).push((fault.into(), token.clone()));
        let (path, fault) = (self.clone(), fault.to_owned());
        self.tasks.spawn(async move {
            tokio::select! {
                () = path.stop.cancelled() => {}
                () = path.director.healed(&fault) => lock(&path.refused).retain(|(f, _)| *f != fault),
            }
        });
        true
    }

    /// The same, a while later.
    pub(crate) fn refuse_token_after(self: &Arc<Self>, fault: &str, token: Option<HeaderValue>, after: Duration) {
        let (path, fault) = (self.clone(), fault.to_owned());
        self.tasks.spawn(async move {
            tokio::select! {
                () = path.stop.cancelled() => {}
                () = path.director.healed(&fault) => {}
                () = tokio::time::sleep(after) => {
                    path.refuse_token(&fault, token.as_ref());
                }
            }
        });
    }

    /// Whether as many requests as may have passed a throttle within the last second.
    pub(crate) fn is_too_many(&self, fault: &str, per_second: u32) -> bool {
        let now = Instant::now();
        let mut passed = lock(&self.passed);
        let passed = passed.entry(fault.into()).or_default();
        passed.retain(|at| now.duration_since(*at) < Duration::from_secs(1));
        let too_many = passed.len() >= per_second as usize;
        if !too_many {
            passed.push_back(now);
        }
        too_many
    }

    // === who is on it ===

    pub(crate) fn add_connection(&self, connection: Arc<Connection>) {
        lock(&self.connections).insert(connection.number, connection);
    }

    pub(crate) fn remove_connection(&self, number: u64) {
        lock(&self.connections).remove(&number);
    }

    /// Resets every open connection; says whether there was one.
    pub(crate) fn reset_connections(&self, fault: Option<&str>) -> bool {
        let open: Vec<_> = lock(&self.connections).values().cloned().collect();
        for connection in &open {
            connection.reset(fault);
        }
        !open.is_empty()
    }

    pub(crate) fn add_stream(&self, stream: Stream) -> mpsc::UnboundedReceiver<EndStream> {
        let (end, ended) = mpsc::unbounded_channel();
        lock(&self.streams).insert(stream.id, OpenStream { stream, end });
        ended
    }

    pub(crate) fn remove_stream(&self, id: StreamId) {
        lock(&self.streams).remove(&id);
    }

    pub(crate) fn streams(&self) -> Vec<Stream> {
        lock(&self.streams).values().map(|s| s.stream.clone()).collect()
    }

    pub(crate) fn end_stream(&self, id: StreamId, order: EndStream) {
        if let Some(open) = lock(&self.streams).get(&id) {
            // A stream that has just ended by itself takes no orders.
            let _ = open.end.send(order);
        }
    }

    pub(crate) fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlight(self.clone())
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    // === what faults did ===

    pub(crate) fn effect(&self, fault: &str, what: impl Into<String>) {
        self.fault(fault, FaultEvent::Effect { what: what.into() });
    }

    pub(crate) fn released(&self, fault: &str, request: RequestId, by: String) {
        self.fault(fault, FaultEvent::Released { request: Some(request), by });
    }

    fn fault(&self, name: &str, what: FaultEvent) {
        self.director.record(Event::Fault(FaultRecord { name: name.into(), what }));
    }
}

/// The gate is shut as long as this lives.
pub(crate) struct GateHeld(Arc<Path>);

impl Drop for GateHeld {
    fn drop(&mut self) {
        self.0.gate.send_modify(|g| g.by_faults -= 1);
    }
}

/// A short request without a reply yet.
pub(crate) struct InFlight(Arc<Path>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding one, and a poisoned lock would only hide the first panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
