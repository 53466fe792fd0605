//! Lets everything pass but the one request that a row asks to be refused.

use futures::future::BoxFuture;
use spiritlevel_model::{
    Actor,
    fault::{Action, At, Exchange, Firing, Frame, FrameFate, Stream, Until},
    history::Event,
};
use spiritlevel_proxy::Director;
use std::sync::Mutex;

/// Refuses the next request as told.
#[derive(Default)]
pub(crate) struct Forger {
    next: Mutex<Option<Action>>,
}

impl Forger {
    /// The next request is refused so.
    pub(crate) fn arm(&self, action: Action) {
        *self.next.lock().expect("nothing panics under this lock") = Some(action);
    }
}

impl Director for Forger {
    fn on_request(&self, exchange: &Exchange<'_>) -> Option<Firing> {
        let action = self.next.lock().expect("nothing panics under this lock").take()?;
        Some(Firing::new("forged", action, At::BeforeSend, exchange.id))
    }

    fn on_frame(&self, _: &Stream, _: &Frame<'_>) -> FrameFate {
        FrameFate::Deliver
    }

    fn on_stream_end(&self, _: &Stream) {}

    fn perform<'a>(&'a self, _: &'a Firing, _: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn released<'a>(&'a self, _: &'a str, _: &'a Until) -> BoxFuture<'a, String> {
        Box::pin(std::future::ready("nothing is held".into()))
    }

    fn healed<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn actor(&self, listener: &Actor, _: Option<&str>) -> Actor {
        listener.clone()
    }

    fn record(&self, _: Event) {}
}
