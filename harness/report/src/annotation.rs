//! Annotations of GitHub Actions, which show a failure at the scenario's file in a pull request.

use crate::{Finished, line::first_line};
use spiritlevel_model::{
    finding::FindingClass,
    verdict::{Verdict, VerdictKind},
};

/// `::error file=…,title=…::message`, one line for a run that is not as it should be.
///
/// <https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands>
pub(crate) fn annotation(run: &Finished) -> Option<String> {
    let level = match run.verdict.outcome() {
        VerdictKind::Pass => return None,
        VerdictKind::Fail | VerdictKind::Error => "error",
        VerdictKind::Inconclusive => "warning",
    };
    let file = run.file.as_ref().map(|f| format!("file={},", property(f))).unwrap_or_default();
    Some(format!("::{level} {file}title={}::{}", property(&run.title), message(&reason(&run.verdict))))
}

/// The reason of a run that is not as it should be, in one line.
pub(crate) fn reason(verdict: &Verdict) -> String {
    let mismatch = verdict.expected.as_ref().and_then(|e| e.mismatches.first());
    let violation = || verdict.findings.iter().find(|f| f.class == FindingClass::Violation);
    let finding = || violation().map(|f| format!("{}: {}", f.invariant, first_line(&f.message)));
    let why = || verdict.reasons.first().map(|r| format!("{}: {}", verdict.verdict, first_line(r)));
    let first = mismatch.map(|m| first_line(m).to_owned());
    let first = first.or_else(|| if verdict.verdict == VerdictKind::Fail { finding().or_else(why) } else { why() });
    first.unwrap_or_else(|| verdict.verdict.to_string())
}

fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
