//! The nouns of spiritlevel: suite, scenario, fault, plan, history, finding, verdict.
//!
//! Pure: no clock, no IO, no randomness. Everything here can be written down and read back.

pub mod cel;
pub mod fault;
pub mod history;
mod ids;
mod object;
mod period;
mod request;

pub use ids::{Actor, RequestId, Revision, Seed, StreamId, Uid};
pub use object::{Meta, ObjectRef, OwnerReference, ResourceKey};
pub use period::Period;
pub use request::{RequestInfo, Verb};
