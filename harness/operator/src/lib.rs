//! The operator under test as a process: built, put into namespaces of its own, launched, signalled, watched.
//!
//! Serves the arrow `Plan ──runner──▶ cluster ▪ proxy ▪ operator`. Nothing of the operator is changed: what it finds around
//! it (network, service account, host name, environment) is made to look like a pod.
//!
//! ```text
//! harness ──control socket──▶ __isolate   one per sandbox: network, host name (and user) namespaces; hands descriptors out
//!    │                            │
//!    └──process socket──▶ __launch         one per start: a fresh PID namespace; supervises, tells the end
//!                                 │
//!                             __exec       process 1 in there: mounts, drops capabilities, becomes the operator
//! ```
//!
//! The network outlives the operator's process, since listeners and connections belong to the replica and not to one of
//! its starts. A PID namespace ends with its first process and `unshare(CLONE_NEWPID)` works once per process, so each
//! start has a `__launch` of its own. `__exec` replaces `pre_exec`, which is unsafe.

mod bind;
mod build;
mod error;
mod intercept;
mod isolation;
mod launch;
mod output;
mod process;
mod sandbox;
mod service_account;
mod shim;
mod signals;
mod wire;

pub use bind::{Bind, stop_listening};
pub use build::{BuildSpec, CommandBuild, GoModule, Progress, build, cache_dir, module_dir};
pub use error::Error;
pub use intercept::intercept;
pub use isolation::{Isolation, Network, probe};
pub use launch::{Access, Launch, Observer, OnLine, Redact};
pub use nix::sys::signal::Signal;
pub use output::{Line, Stream};
pub use process::{Event, Exit, Process};
pub use sandbox::{Sandbox, SandboxSpec};
pub use service_account::ServiceAccountDir;
