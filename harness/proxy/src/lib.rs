//! The API proxy between actors and a Kubernetes API server: accept, classify, ask, forward, frame, record.
//!
//! It turns requests and watch events into exchanges and frames, carries out what the [`Director`] decides on them, and
//! reports what happened on the wire. It has no policy of its own, never retries, and streams whatever may be large.

mod answer;
mod bind;
mod bodies;
mod body;
mod certificates;
mod connection;
mod director;
mod edit;
mod error;
mod exchange;
mod exec;
mod fault;
mod frames;
mod headers;
mod listener;
mod path;
mod protobuf;
mod proxy;
mod status;
mod tunnel;
mod upstream;
mod watch;
mod wire;

pub use bind::{Bind, HostPort};
pub use director::Director;
pub use error::Error;
pub use exec::ExecAnswer;
pub use listener::Listener;
pub use proxy::Proxy;
pub use upstream::Upstream;
