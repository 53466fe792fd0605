//! What a reporter hears of: the interface between whoever runs and whoever tells.

use spiritlevel_model::{Seed, history::Phase, verdict::Verdict};
use std::{path::PathBuf, time::Duration};

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Something that takes a while is being done.
    Progress(String),
    /// What a reader should know.
    Notice(String),
    /// A control plane is ready.
    ControlPlaneReady(ControlPlane),
    /// A run begins.
    RunStarted {
        /// Tells this run from others of the same title.
        key: String,
        /// How reports speak of it.
        title: String,
    },
    /// A run is in another phase.
    RunPhase {
        /// As when it began.
        key: String,
        /// Which phase.
        phase: Phase,
    },
    /// How far a run's step is.
    RunProgress {
        /// As when it began.
        key: String,
        /// How far.
        text: String,
    },
    /// A run was judged.
    RunFinished(Box<Finished>),
    /// A run was not made.
    RunSkipped(Skipped),
    /// Clearing up after a run failed: a line of its own, never a verdict.
    CleanupFailed {
        /// After what.
        of: String,
        /// Why.
        why: String,
    },
}

/// A control plane that is ready, with garbage collection proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPlane {
    /// `local`.
    pub provider: String,
    /// Version of Kubernetes, `v1.36.3`.
    pub version: String,
    /// How long it took to be ready.
    pub took: Duration,
}

/// A run that was judged.
#[derive(Clone, Debug)]
pub struct Finished {
    /// As when it began.
    pub key: String,
    /// How reports speak of it.
    pub title: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Where its files are.
    pub dir: PathBuf,
    /// The scenario's file, where it is known.
    pub file: Option<String>,
}

/// A run that was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Tells this run from others of the same title.
    pub key: String,
    /// How reports speak of it.
    pub title: String,
    /// The seed it would have had.
    pub seed: Seed,
    /// Why.
    pub why: String,
}
