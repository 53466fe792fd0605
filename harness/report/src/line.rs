//! The line of a finished run.

use crate::{Look, Skipped};
use spiritlevel_model::{
    finding::FindingClass,
    history::{Phase, Settled},
    verdict::{Verdict, VerdictKind},
};
use std::time::Duration;

/// Columns for a title; longer ones push the rest to the right.
const TITLE: usize = 58;

/// ` ✓ postgres/drift      7.2 s   seed 42   3 faults fired, settled after 1.9 s`.
pub(crate) fn finished(title: &str, verdict: &Verdict, look: Look) -> String {
    let outcome = verdict.outcome();
    let (sign, title) = (mark(outcome, look), look.strong(&format!("{title:<TITLE$}")));
    let took = seconds(Duration::from_secs_f64(verdict.duration_ms.max(0.0) / 1000.0));
    let seed = look.faint(&format!("seed {}", verdict.seed));
    let rest = match outcome {
        VerdictKind::Pass => passed(verdict),
        VerdictKind::Fail => String::new(),
        VerdictKind::Inconclusive | VerdictKind::Error => {
            let why = verdict.reasons.first().map_or("no reason is known", String::as_str);
            format!("{outcome}: {}", first_line(why))
        }
    };
    format!(" {sign} {title} {took:>9}   {seed}   {rest}").trim_end().to_owned()
}

/// ` – postgres/real-data      skipped: needs pods that run`.
pub(crate) fn skipped(run: &Skipped, look: Look) -> String {
    format!(" {} {:<TITLE$} skipped: {}", look.faint("–"), run.title, run.why)
}

fn mark(outcome: VerdictKind, look: Look) -> String {
    match outcome {
        VerdictKind::Pass => look.good("✓"),
        VerdictKind::Fail => look.bad("✗"),
        VerdictKind::Inconclusive => look.doubtful("?"),
        VerdictKind::Error => look.bad("!"),
    }
}

/// What is worth a word about a run that is as it should be.
fn passed(verdict: &Verdict) -> String {
    let mut words = Vec::new();
    let fired = verdict.faults.iter().filter(|f| f.fired > 0).count();
    if fired > 0 {
        words.push(format!("{} fired", count(fired, "fault")));
    }
    words.extend(settled(&verdict.settle));
    let notes = verdict.findings.iter().filter(|f| f.class != FindingClass::Violation).count();
    if notes > 0 && verdict.verdict == VerdictKind::Pass {
        words.push(count(notes, "remark"));
    }
    let words = words.join(", ");
    match as_expected(verdict) {
        Some(expected) if words.is_empty() => format!("({expected})"),
        Some(expected) => format!("({expected})   {words}"),
        None => words,
    }
}

/// `fails as expected: noOrphans ×2, heals`, for runs that are meant not to pass.
fn as_expected(verdict: &Verdict) -> Option<String> {
    verdict.expected.as_ref()?;
    let (verb, what) = match verdict.verdict {
        VerdictKind::Pass => return None,
        VerdictKind::Fail => {
            let mut broken: Vec<(&str, usize)> = Vec::new();
            for finding in verdict.findings.iter().filter(|f| f.class == FindingClass::Violation) {
                match broken.iter_mut().find(|(name, _)| *name == finding.invariant) {
                    Some((_, n)) => *n += 1,
                    None => broken.push((&finding.invariant, 1)),
                }
            }
            let one = |(name, n): &(&str, usize)| if *n == 1 { (*name).to_owned() } else { format!("{name} ×{n}") };
            ("fails", broken.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        VerdictKind::Inconclusive => {
            ("is inconclusive", verdict.reasons.first().map_or("", |r| first_line(r)).to_owned())
        }
        VerdictKind::Error => ("is in error", verdict.reasons.first().map_or("", |r| first_line(r)).to_owned()),
    };
    Some(if what.is_empty() { format!("{verb} as expected") } else { format!("{verb} as expected: {what}") })
}

fn settled(all: &[Settled]) -> Option<String> {
    let first = all.iter().find(|s| s.phase == Phase::Settle)?;
    let took = seconds(Duration::from_secs_f64(first.took_ms.max(0.0) / 1000.0));
    Some(if first.settled { format!("settled after {took}") } else { format!("still busy after {took}") })
}

/// `9.8 s`, `3 min 7 s`.
pub(crate) fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(120) {
        return format!("{:.1} s", time.as_secs_f64());
    }
    format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60)
}

/// `1 fault`, `3 faults`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
