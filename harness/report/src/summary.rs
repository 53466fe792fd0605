//! `summary.json`: the whole invocation for programs.

use crate::{ControlPlane, Error, Finished, Skipped, Tally};
use serde::{Deserialize, Serialize};
use spiritlevel_model::{
    Seed,
    finding::FindingClass,
    verdict::{Verdict, VerdictKind},
};
use std::{path::Path, time::Duration};

/// Version of `summary.json`.
pub const SUMMARY_VERSION: u32 = 1;

/// `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// [`SUMMARY_VERSION`].
    pub schema_version: u32,
    /// Version of the harness.
    pub harness: String,
    /// Where runs were made, once a control plane was ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    /// The worst outcome.
    pub outcome: VerdictKind,
    /// From the beginning to the end, in milliseconds.
    pub duration_ms: f64,
    /// How many of what.
    pub counts: Tally,
    /// The runs, in order of their end.
    pub runs: Vec<Run>,
    /// Runs that were not made.
    pub skipped: Vec<NotMade>,
    /// What clearing up could not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleanup_failures: Vec<String>,
}

/// A run in the summary; `verdict.json` in `dir` has the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// `suite/scenario`, with variant and matrix values.
    pub title: String,
    /// What counts: a run that gets what is expected has passed.
    pub outcome: VerdictKind,
    /// What the judge says.
    pub verdict: VerdictKind,
    /// The seed.
    pub seed: Seed,
    /// How long it took.
    pub duration_ms: f64,
    /// Where its files are.
    pub dir: String,
    /// The scenario's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What was found.
    pub findings: Vec<Found>,
    /// Why, where it is inconclusive or an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// How it differs from what was expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<String>,
}

/// A finding in the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The invariant.
    pub invariant: String,
    /// How much it counts.
    pub class: FindingClass,
    /// What is wrong.
    pub message: String,
}

/// A run that was not made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotMade {
    /// `suite/scenario`, with variant and matrix values.
    pub title: String,
    /// Why not.
    pub why: String,
}

/// What has been heard so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) control_plane: Option<ControlPlane>,
    pub(crate) runs: Vec<Finished>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) cleanup_failures: Vec<String>,
}

// === impl Heard ===

impl Heard {
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally { skipped: self.skipped.len(), ..Tally::default() };
        self.runs.iter().for_each(|run| tally.add(run.verdict.outcome()));
        tally
    }

    pub(crate) fn summary(&self, harness: &str, took: Duration) -> Summary {
        let counts = self.tally();
        Summary {
            schema_version: SUMMARY_VERSION,
            harness: harness.into(),
            provider: self.control_plane.as_ref().map(|c| c.provider.clone()),
            kubernetes: self.control_plane.as_ref().map(|c| c.version.clone()),
            outcome: counts.worst(),
            duration_ms: (took.as_secs_f64() * 1000.0).round(),
            counts,
            runs: self.runs.iter().map(Run::of).collect(),
            skipped: self.skipped.iter().map(|s| NotMade { title: s.title.clone(), why: s.why.clone() }).collect(),
            cleanup_failures: self.cleanup_failures.clone(),
        }
    }
}

// === impl Run ===

impl Run {
    fn of(run: &Finished) -> Self {
        let Verdict { verdict, seed, duration_ms, reasons, findings, expected, .. } = &run.verdict;
        let found = findings.iter().map(|f| Found {
            invariant: f.invariant.clone(),
            class: f.class,
            message: f.message.clone(),
        });
        Self {
            title: run.title.clone(),
            outcome: run.verdict.outcome(),
            verdict: *verdict,
            seed: *seed,
            duration_ms: *duration_ms,
            dir: run.dir.display().to_string(),
            file: run.file.clone(),
            findings: found.collect(),
            reasons: reasons.clone(),
            mismatches: expected.iter().flat_map(|e| e.mismatches.clone()).collect(),
        }
    }
}

// === impl Summary ===

impl Summary {
    /// Writes `summary.json`.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(path, text).map_err(|source| Error::File { path: path.into(), source })
    }
}
