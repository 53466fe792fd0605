//! Who decides: the proxy has no policy of its own. It asks on arrival of every request and of every watch event,
//! carries out what it is told, and reports what happened.

use crate::ExecAnswer;
use futures::future::BoxFuture;
use spiritlevel_model::{
    Actor,
    fault::{Exchange, Firing, Frame, FrameFate, Stream, Until},
    history::Event,
};

/// Decides on exchanges and events, acts on processes and objects, and keeps the history.
pub trait Director: Send + Sync + 'static {
    /// Decides on a request on its arrival, whatever the point at which the fault will act.
    fn on_request(&self, exchange: &Exchange<'_>) -> Option<Firing>;

    /// Whether the decision on a write needs to know what it would make of the stored object.
    fn asks_for_outcome(&self, _exchange: &Exchange<'_>) -> bool {
        false
    }

    /// Decides on a watch event before it is passed on.
    fn on_frame(&self, stream: &Stream, frame: &Frame<'_>) -> FrameFate;

    /// A stream is over.
    fn on_stream_end(&self, stream: &Stream);

    /// A fault acts now, at its point: `crash` and `pause` return when the process is gone or stopped, `conflict` when the
    /// object has been touched, `partition` when the actor's gate is shut, `mark` at once. The actor's gate is shut
    /// meanwhile for all but `conflict` and `mark`.
    fn perform<'a>(&'a self, firing: &'a Firing, exchange: &'a Exchange<'a>) -> BoxFuture<'a, ()>;

    /// The API server has answered the request of a `conflict`, and its client has not heard yet: the touch can be undone.
    fn answered<'a>(&'a self, _firing: &'a Firing, _exchange: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns when what a `hold` or `delayEvents` waits for has happened, or the fault is healed; says which.
    fn released<'a>(&'a self, fault: &'a str, until: &'a Until) -> BoxFuture<'a, String>;

    /// Returns when the fault is healed; a `hang` waits for it.
    fn healed<'a>(&'a self, fault: &'a str) -> BoxFuture<'a, ()>;

    /// The actor that sent a request, where one listener serves several (the controller manager's: by its User-Agent).
    fn actor(&self, listener: &Actor, user_agent: Option<&str>) -> Actor;

    /// How an `exec` or `attach` is answered; `None` where the API server can reach a kubelet, and is asked.
    fn exec(&self, _exchange: &Exchange<'_>) -> Option<ExecAnswer> {
        None
    }

    /// Appends to the history.
    fn record(&self, event: Event);
}
