//! Why a run did not go well, or what it found: the lines below its own.

use crate::{Finished, Look, line};
use spiritlevel_model::{
    finding::{Finding, FindingClass},
    verdict::{Verdict, VerdictKind},
};
use std::fmt::Write;

/// Findings that are told in full; the rest would push the first ones off the screen.
const IN_FULL: usize = 3;
/// Of the rest, those that get a line.
const IN_SHORT: usize = 6;
/// Where the text of a finding's further lines begins.
const KEY: usize = 10;
const MARGIN: &str = "     ";

/// How much is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Only of runs that are not as they should be.
    #[default]
    Brief,
    /// Of the others as well: in full where the run was expected to fail, else the first line of each finding.
    Verbose,
}

/// The whole of a finished run: its line, and below it what there is to say.
pub fn block(run: &Finished, detail: Detail, look: Look) -> String {
    let mut text = line::finished(&run.title, &run.verdict, look);
    text.push('\n');
    let verdict = &run.verdict;
    match verdict.outcome() {
        VerdictKind::Pass if detail == Detail::Brief => {}
        // What was expected to be found is what the reader of a specimen wants to see.
        VerdictKind::Pass if verdict.verdict == VerdictKind::Fail => findings(&mut text, verdict, look),
        VerdictKind::Pass => findings_in_short(&mut text, &by_weight(verdict), look),
        VerdictKind::Fail => {
            mismatches(&mut text, verdict, look);
            findings(&mut text, verdict, look);
            reasons(&mut text, &untold(verdict), look);
            replay(&mut text, run);
        }
        VerdictKind::Inconclusive => {
            doubts(&mut text, verdict, look);
            mismatches(&mut text, verdict, look);
            findings(&mut text, verdict, look);
            replay(&mut text, run);
        }
        // The surroundings are to blame: what was found in them, and how to find it again, is beside the point.
        VerdictKind::Error => {
            doubts(&mut text, verdict, look);
            mismatches(&mut text, verdict, look);
            findings_in_short(&mut text, &by_weight(verdict), look);
        }
    }
    text
}

fn mismatches(text: &mut String, verdict: &Verdict, look: Look) {
    for mismatch in verdict.expected.iter().flat_map(|e| &e.mismatches) {
        let (first, rest) = mismatch.split_once('\n').unwrap_or((mismatch, ""));
        let _ = writeln!(text, "{MARGIN}{} {}", look.bad("EXPECTATION"), first);
        further(text, rest);
    }
}

fn findings(text: &mut String, verdict: &Verdict, look: Look) {
    let all = by_weight(verdict);
    let full = all.len().min(IN_FULL);
    for finding in &all[..full] {
        in_full(text, finding, look);
    }
    findings_in_short(text, &all[full..], look);
}

fn findings_in_short(text: &mut String, all: &[&Finding], look: Look) {
    for finding in all.iter().take(IN_SHORT) {
        head(text, finding, look);
    }
    if all.len() > IN_SHORT {
        let _ = writeln!(text, "{MARGIN}… and {} in verdict.json", line::count(all.len() - IN_SHORT, "more finding"));
    }
}

fn in_full(text: &mut String, finding: &Finding, look: Look) {
    head(text, finding, look);
    further(text, finding.message.split_once('\n').map_or("", |(_, rest)| rest));
    // The fault is why, so it comes last, after the cause that it led to.
    let (because, facts): (Vec<_>, Vec<_>) = finding.details.iter().partition(|d| d.key == "fault" || d.key == "step");
    for detail in facts {
        keyed(text, &detail.key, &detail.text, look);
    }
    if !finding.cause.is_empty() {
        keyed(text, "cause", &finding.cause, look);
    }
    for detail in because {
        keyed(text, &detail.key, &detail.text, look);
    }
}

fn head(text: &mut String, finding: &Finding, look: Look) {
    let (word, look_of): (&str, fn(Look, &str) -> String) = match finding.class {
        FindingClass::Violation => ("FAIL", Look::bad),
        FindingClass::Robustness => ("ROBUSTNESS", Look::doubtful),
        FindingClass::StillTrying => ("STILL TRYING", Look::doubtful),
        FindingClass::StoppedSafe => ("STOPPED SAFE", Look::doubtful),
        FindingClass::Warning => ("WARNING", Look::doubtful),
    };
    let message = line::first_line(&finding.message);
    let _ = writeln!(text, "{MARGIN}{} {}  {message}", look_of(look, word), look.strong(&finding.invariant));
}

fn keyed(text: &mut String, key: &str, value: &str, look: Look) {
    let mut lines = value.lines();
    let first = lines.next().unwrap_or_default();
    let _ = writeln!(text, "{MARGIN}     {} {first}", look.faint(&format!("{key:<KEY$}")));
    for more in lines {
        further(text, more);
    }
}

fn further(text: &mut String, lines: &str) {
    for more in lines.lines() {
        let _ = writeln!(text, "{}", format!("{MARGIN}     {:<KEY$} {more}", "").trim_end());
    }
}

/// Reasons that no mismatch has told already.
fn untold(verdict: &Verdict) -> Vec<String> {
    let mismatches = || verdict.expected.iter().flat_map(|e| &e.mismatches);
    verdict.reasons.iter().filter(|r| !mismatches().any(|m| m.contains(r.as_str()))).cloned().collect()
}

/// All reasons but the line that stands beside the title.
fn doubts(text: &mut String, verdict: &Verdict, look: Look) {
    let first = verdict.reasons.first().map_or("", String::as_str);
    for more in first.lines().skip(1) {
        let _ = writeln!(text, "{}", format!("{MARGIN}     {more}").trim_end());
    }
    reasons(text, verdict.reasons.get(1..).unwrap_or_default(), look);
}

fn reasons(text: &mut String, reasons: &[String], look: Look) {
    for reason in reasons {
        keyed(text, "also", reason, look);
    }
}

fn replay(text: &mut String, run: &Finished) {
    let _ =
        writeln!(text, "{MARGIN}     {:<KEY$} spiritlevel replay {}", "replay", quoted(&run.dir.display().to_string()));
}

/// As a shell needs it: directories of matrix runs have `=` and `,` in their names, others may have blanks.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-=,+:@%".contains(c);
    if path.chars().all(plain) { path.into() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// What fails the run first; within that, as the judge ordered them.
fn by_weight(verdict: &Verdict) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = verdict.findings.iter().collect();
    all.sort_by_key(|f| f.class);
    all
}
