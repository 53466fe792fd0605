//! The nouns of spiritlevel: suite, scenario, fault, plan, history, finding, verdict.
//!
//! Pure: no clock, no IO, no randomness. Everything here can be written down and read back.

pub mod assertion;
pub mod attribution;
pub mod bindings;
pub mod cel;
mod cel_value;
pub mod expect;
pub mod expectation;
pub mod fault;
pub mod finding;
pub mod history;
mod ids;
pub mod invariants;
pub mod lint;
pub mod load;
mod object;
pub mod operation;
mod period;
pub mod plan;
pub mod planning;
pub mod problem;
pub mod readiness;
pub mod render;
mod request;
pub mod scenario;
pub mod schema;
pub mod suite;
pub mod verdict;
pub mod world;
pub mod yaml;

pub use cel_value::cel_value;
pub use ids::{Actor, RequestId, Revision, Seed, StreamId, Uid};
pub use object::{Meta, ObjectRef, OwnerReference, ResourceKey};
pub use period::Period;
pub use request::{RequestInfo, Verb};
