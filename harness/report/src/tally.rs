//! How many of what, and the worst of it.

use crate::{Look, line::count};
use serde::{Deserialize, Serialize};
use spiritlevel_model::verdict::VerdictKind;

/// Finished and skipped runs, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// As they should be.
    pub passed: usize,
    /// Not so.
    pub failed: usize,
    /// Nothing can be said.
    pub inconclusive: usize,
    /// The surroundings failed.
    pub errors: usize,
    /// Not made.
    pub skipped: usize,
}

// === impl Tally ===

impl Tally {
    /// Counts one.
    pub fn add(&mut self, outcome: VerdictKind) {
        *match outcome {
            VerdictKind::Pass => &mut self.passed,
            VerdictKind::Fail => &mut self.failed,
            VerdictKind::Inconclusive => &mut self.inconclusive,
            VerdictKind::Error => &mut self.errors,
        } += 1;
    }

    /// The worst: fail, then error, then inconclusive, then pass.
    pub fn worst(self) -> VerdictKind {
        match self {
            Self { failed: 1.., .. } => VerdictKind::Fail,
            Self { errors: 1.., .. } => VerdictKind::Error,
            Self { inconclusive: 1.., .. } => VerdictKind::Inconclusive,
            _ => VerdictKind::Pass,
        }
    }

    /// `1 failed, 1 passed, 1 inconclusive`.
    pub(crate) fn line(self, look: Look) -> String {
        let parts = [
            (self.failed, look.bad(&format!("{} failed", self.failed))),
            (self.errors, look.bad(&count(self.errors, "error"))),
            (self.passed, look.good(&format!("{} passed", self.passed))),
            (self.inconclusive, look.doubtful(&format!("{} inconclusive", self.inconclusive))),
            (self.skipped, look.faint(&format!("{} skipped", self.skipped))),
        ];
        let told: Vec<String> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text).collect();
        if told.is_empty() { "nothing was run".into() } else { told.join(", ") }
    }
}
