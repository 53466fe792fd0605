//! Child processes that never outlive the harness, even when the harness gets SIGKILL.
//!
//! Serves the arrow `Plan ──runner──▶ cluster ▪ operator`: whatever those start is started through here, so that a killed
//! run leaves no etcd and no operator behind.
//!
//! ```text
//! harness ──lifeline (pipe)──▶ __supervise ──PR_SET_PDEATHSIG──▶ __become, which execs the program
//! ```
//!
//! The supervisor is our own binary again. It holds the reading end of a pipe whose writing end only the harness has: the
//! kernel closes that end however the harness ends, and end of file means SIGKILL to the program's whole process group.
//! A parent-death signal alone would not do: it fires when the spawning *thread* ends, and thread pools end theirs.
//! `__become` is a process of its own, because `pre_exec` is unsafe.

mod child;
mod error;
mod executable;
mod lifeline;
mod spawn;
mod supervisor;

pub use child::Child;
pub use error::Error;
pub use executable::{executable, intercept};
pub use lifeline::{Lifeline, die_with_parent, harness_gone, parent_alive};
pub use spawn::Spawn;
pub use supervisor::{exit_code, look};
