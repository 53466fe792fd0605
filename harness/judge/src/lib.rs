//! Judges a run: a pure function from plan and history to findings and a verdict.
//!
//! No clock, no IO, no cluster, no tokio: a recorded run can be judged again next year and gives the same answer, byte
//! for byte. One file per invariant under `invariants`, each a function over a `case::Case`.

mod blame;
mod case;
mod catalogue;
mod diff;
mod draft;
mod invariants;
mod judgement;
mod outcome;
mod wording;

#[cfg(test)]
mod testing;

pub use catalogue::{Invariant, all};
pub use judgement::{Judgement, judge};
