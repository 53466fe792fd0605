//! Tells people and programs what came out: terminal, JSON, JUnit, annotations, `summary.json`.
//!
//! Serves the arrow `Verdict ──report──▶ terminal, JSON, JUnit` of the spine. Driven by [`Event`]s alone: this crate knows
//! verdicts and nothing of how they were made. Whatever turns events into text is pure; only [`Reporter`] writes.

#![cfg_attr(test, expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it updates"))]

mod annotation;
mod block;
mod error;
mod event;
mod json;
mod junit;
mod line;
mod look;
mod progress;
mod reporter;
mod summary;
mod surroundings;
mod tally;
#[cfg(test)]
mod testing;

pub use block::{Detail, block};
pub use error::Error;
pub use event::{ControlPlane, Event, Finished, Skipped};
pub use look::Look;
pub use reporter::{Reporter, Settings};
pub use summary::{SUMMARY_VERSION, Summary};
pub use surroundings::{Output, Surroundings};
pub use tally::Tally;
