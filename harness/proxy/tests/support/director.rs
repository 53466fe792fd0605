//! A director that fires what a test asks for and keeps the history.

use super::soon;
use futures::future::BoxFuture;
use spiritlevel_model::{
    Actor,
    fault::{Action, At, Exchange, Firing, Frame, FrameFate, PartitionAs, Stream, Until},
    history::{Event, Speech},
};
use spiritlevel_proxy::{Director, ExecAnswer, Listener};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, Weak},
};
use tokio::sync::watch;

type OnFrame = Box<dyn Fn(&Frame<'_>) -> FrameFate + Send + Sync>;

#[derive(Default)]
pub struct Script {
    /// What fires on the next request that is not a watch, and on the next watch.
    next: Mutex<Option<(Action, At)>>,
    next_watch: Mutex<Option<(Action, At)>>,
    /// What it changes in the URL.
    rewrite: Mutex<Vec<(String, Option<String>)>>,
    asks: std::sync::atomic::AtomicBool,
    foreseen: Mutex<(Option<serde_json::Value>, Option<serde_json::Value>)>,
    frames: Mutex<Option<OnFrame>>,
    exec: Mutex<Option<ExecAnswer>>,
    listener: OnceLock<Weak<Listener>>,
    events: watch::Sender<Vec<Event>>,
    performed: watch::Sender<Vec<String>>,
    /// Names of faults that are healed, and of conditions that have happened.
    healed: watch::Sender<BTreeSet<String>>,
}

impl Script {
    pub fn attach(&self, listener: &Arc<Listener>) {
        let _ = self.listener.set(Arc::downgrade(listener));
    }

    /// The next request meets this fault, named `f`.
    pub fn fire(&self, action: Action, at: At) {
        *self.next.lock().unwrap() = Some((action, at));
    }

    /// What the faults of `fire` and `fire_on_watch` change in the URL.
    pub fn rewrite(&self, key: &str, value: &str) {
        self.rewrite.lock().unwrap().push((key.into(), Some(value.into())));
    }

    /// Decisions on writes look at what they would make.
    pub fn ask_for_outcomes(&self) {
        self.asks.store(true, std::sync::atomic::Ordering::SeqCst);
    }

    /// What the last decision on a write knew: what is stored, and what it would make.
    pub fn foreseen(&self) -> (Option<serde_json::Value>, Option<serde_json::Value>) {
        self.foreseen.lock().unwrap().clone()
    }

    pub fn fire_on_watch(&self, action: Action, at: At) {
        *self.next_watch.lock().unwrap() = Some((action, at));
    }

    pub fn on_frames(&self, decide: impl Fn(&Frame<'_>) -> FrameFate + Send + Sync + 'static) {
        *self.frames.lock().unwrap() = Some(Box::new(decide));
    }

    pub fn answer_exec(&self, answer: ExecAnswer) {
        *self.exec.lock().unwrap() = Some(answer);
    }

    pub fn heal(&self, fault: &str) {
        self.healed.send_modify(|h| {
            h.insert(fault.into());
        });
    }

    pub fn events(&self) -> Vec<Event> {
        self.events.borrow().clone()
    }

    /// One line an event, without what differs from run to run.
    pub fn told(&self) -> Vec<String> {
        self.events().iter().map(line).collect()
    }

    /// How the client of each request spoke.
    pub fn speech(&self) -> Vec<Speech> {
        let of = |event: Event| match event {
            Event::Request(request) => request.speech,
            _ => None,
        };
        self.events().into_iter().filter_map(of).collect()
    }

    /// Waits until a line begins with `prefix`.
    pub async fn until(&self, prefix: &str) {
        let mut events = self.events.subscribe();
        let found = soon(prefix, events.wait_for(|all| all.iter().any(|e| line(e).starts_with(prefix))));
        assert!(found.await.is_ok());
    }

    /// Waits until `count` lines begin with `prefix`.
    pub async fn until_count(&self, prefix: &str, count: usize) {
        let mut events = self.events.subscribe();
        let found =
            soon(prefix, events.wait_for(|all| all.iter().filter(|e| line(e).starts_with(prefix)).count() >= count));
        assert!(found.await.is_ok());
    }

    pub async fn until_performed(&self, name: &str) {
        let mut performed = self.performed.subscribe();
        let found = soon(name, performed.wait_for(|all| all.iter().any(|p| p == name)));
        assert!(found.await.is_ok());
    }

    pub fn performed(&self) -> Vec<String> {
        self.performed.borrow().clone()
    }

    async fn wait_healed(&self, fault: &str) {
        let mut healed = self.healed.subscribe();
        let _ = healed.wait_for(|h| h.contains(fault)).await;
    }
}

impl Director for Script {
    fn asks_for_outcome(&self, _: &Exchange<'_>) -> bool {
        self.asks.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn on_request(&self, exchange: &Exchange<'_>) -> Option<Firing> {
        *self.foreseen.lock().unwrap() = (exchange.bodies.stored.clone(), exchange.bodies.outcome.clone());
        let watch = exchange.info.verb == spiritlevel_model::Verb::Watch;
        let next = if watch { &self.next_watch } else { &self.next };
        let (action, at) = next.lock().unwrap().take()?;
        Some(Firing { rewrite: self.rewrite.lock().unwrap().clone(), ..Firing::new("f", action, at, exchange.id) })
    }

    fn on_frame(&self, _: &Stream, frame: &Frame<'_>) -> FrameFate {
        self.frames.lock().unwrap().as_ref().map_or(FrameFate::Deliver, |decide| decide(frame))
    }

    fn on_stream_end(&self, _: &Stream) {}

    fn perform<'a>(&'a self, firing: &'a Firing, _: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.performed.send_modify(|p| p.push(firing.action.name().into()));
            match &firing.action {
                // The process is gone when the test says so.
                Action::Crash { .. } => self.wait_healed("killed").await,
                Action::Partition { how } => {
                    if let Some(listener) = self.listener.get().and_then(Weak::upgrade) {
                        listener.shut(*how, &firing.fault);
                    }
                    let _: PartitionAs = *how;
                }
                _ => {}
            }
        })
    }

    fn released<'a>(&'a self, fault: &'a str, _: &'a Until) -> BoxFuture<'a, String> {
        Box::pin(async move {
            self.wait_healed(fault).await;
            "condition".into()
        })
    }

    fn healed<'a>(&'a self, fault: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.wait_healed(fault))
    }

    fn actor(&self, listener: &Actor, _: Option<&str>) -> Actor {
        listener.clone()
    }

    fn exec(&self, _: &Exchange<'_>) -> Option<ExecAnswer> {
        self.exec.lock().unwrap().clone()
    }

    fn record(&self, event: Event) {
        self.events.send_modify(|all| all.push(event));
    }
}

/// A record in a few words.
pub fn line(event: &Event) -> String {
    let by = |fault: &Option<String>| fault.as_ref().map_or(String::new(), |f| format!(" by {f}"));
    match event {
        Event::Request(r) => format!("request {}", r.info),
        Event::Answer(a) => match (a.status, &a.object) {
            (Some(status), Some(o)) => {
                format!("answer {status} {}@{}", o.name.as_deref().unwrap_or("-"), o.revision.map_or(0, |r| r.0))
            }
            (Some(status), None) => format!("answer {status}"),
            (None, _) => "answer none".into(),
        },
        Event::Reply(r) => format!("reply {:?}{}", r.outcome, by(&r.fault)),
        Event::StreamOpened(s) => format!("opened {}", s.resource),
        Event::Frame(f) => {
            format!("frame {:?} {} {:?}{}", f.kind, f.name.as_deref().unwrap_or("-"), f.fate, by(&f.fault))
        }
        Event::StreamClosed(c) => format!("closed {:?}{}", c.by, by(&c.fault)),
        Event::Fault(f) => format!("fault {} {:?}", f.name, f.what),
        other => format!("{other:?}"),
    }
}
