//! `--output json`: one document a line, for programs.

use crate::{Error, Finished, Skipped, Summary};
use serde::Serialize;
use spiritlevel_model::verdict::{Verdict, VerdictKind};

/// A line.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Line<'a> {
    Run { title: &'a str, outcome: VerdictKind, dir: String, file: Option<&'a str>, verdict: &'a Verdict },
    Skipped { title: &'a str, why: &'a str },
    Summary(&'a Summary),
}

pub(crate) fn finished(run: &Finished) -> Result<String, Error> {
    let Finished { title, verdict, dir, file, .. } = run;
    let (outcome, dir) = (verdict.outcome(), dir.display().to_string());
    written(&Line::Run { title, outcome, dir, file: file.as_deref(), verdict })
}

pub(crate) fn skipped(run: &Skipped) -> Result<String, Error> {
    written(&Line::Skipped { title: &run.title, why: &run.why })
}

pub(crate) fn summary(summary: &Summary) -> Result<String, Error> {
    written(&Line::Summary(summary))
}

fn written(line: &Line<'_>) -> Result<String, Error> {
    Ok(serde_json::to_string(line)? + "\n")
}
