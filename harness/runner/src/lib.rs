//! The runner: turns a plan into a history, on a real control plane, with the real operator.
//!
//! Serves the arrow `Plan ──runner──▶ cluster ▪ proxy ▪ operator ▪ witness ──▶ History` of the spine.

mod api;
mod arrange;
mod builds;
mod conflict;
mod error;
mod exchange_match;
mod files;
mod harness_writes;
pub mod hub;
mod inside;
pub mod lane;
pub mod place;
mod probe;
pub mod project;
mod rbac;
mod reconnect;
pub mod recorder;
mod redact;
mod replica;
pub mod run;
pub mod session;
mod settle;
mod stage;
mod steps;
mod token;
mod witness;

pub use error::Error;
