//! `processHealth`: the operator neither crashes nor sits alive and idle.

use super::converges;
use crate::{
    case::{Case, End},
    draft::Draft,
    wording,
};
use spiritlevel_model::{
    Period, RequestId,
    finding::{Finding, FindingClass},
    history::{Phase, ReplyOutcome},
};
use std::collections::BTreeMap;

/// Crashes, watches that stay closed, permissions that lack.
pub(crate) fn judge(case: &Case<'_>, within: Period) -> Vec<Finding> {
    let mut findings = crashes(case);
    findings.extend(idle(case, within));
    findings.extend(denied(case));
    findings
}

/// Ends that were not ours, with a code that the suite does not declare; one finding a replica.
fn crashes(case: &Case<'_>) -> Vec<Finding> {
    let until = case.phases.begin(Phase::End).map_or(u64::MAX, |(seq, _)| seq);
    let declared = |code: i32| code == 0 || case.plan.process.exit_codes.contains(&code);
    let crash = |e: &&End| e.seq < until && !(e.signal.is_none() && e.code.is_some_and(declared));
    let mut by_replica: BTreeMap<_, Vec<&End>> = BTreeMap::new();
    for end in case.processes.ends.iter().filter(crash) {
        by_replica.entry(&end.actor).or_default().push(end);
    }
    let finding = |ends: Vec<&End>| {
        let (first, n) = (ends[0], ends.len());
        let how = match (first.code, first.signal) {
            (_, Some(signal)) => format!("was ended by signal {signal}"),
            (Some(code), None) => format!("exited with code {code}"),
            (None, None) => "ended".into(),
        };
        let again = if n == 1 { String::new() } else { format!(" and {n} times in all") };
        let message = format!("{} {how} at {}{again}", first.actor, wording::at(first.at_ms));
        let last_line = first.last_lines.iter().rev().find(|l| !l.trim().is_empty());
        let cause = last_line.cloned().unwrap_or_else(|| "it printed nothing before".into());
        let mut draft = Draft::new("processHealth", message, cause, (first.seq, first.at_ms));
        let skip = first.last_lines.len().saturating_sub(5);
        for line in &first.last_lines[skip..] {
            draft = draft.detail("output", line.clone());
        }
        draft.finish(case)
    };
    by_replica.into_values().map(finding).collect()
}

/// Watches that were open when the steps began, or at the first fault, and are not any more at the end of the settling.
///
/// A violation when the watch stayed closed for the limit, or for the whole settling while a subject did not get ready;
/// else a warning, since a client may wait a while before it lists again.
fn idle(case: &Case<'_>, within: Period) -> Vec<Finding> {
    let (Some(begin), Some(end)) = (case.phases.begin(Phase::Settle), case.phases.end_of(Phase::Settle)) else {
        return Vec::new();
    };
    if !case.processes.alive_at(end.0) {
        return Vec::new();
    }
    let first_fault = case.faults.iter().filter_map(|f| f.firings.first()).map(|f| f.seq).min();
    let steps = case.phases.begin(Phase::Steps).map(|(seq, _)| seq);
    let before = [steps, first_fault].into_iter().flatten().flat_map(|seq| case.streams.open_at(seq));
    let watched: std::collections::BTreeSet<_> = before.collect();
    let open = case.streams.open_at(end.0);
    let lacking = converges::is_missing_something(case, Phase::Settle);
    let finding = |scope: &(spiritlevel_model::ResourceKey, Option<String>)| {
        let ends = case.streams.of_operator().filter(|s| &s.scope == scope).filter_map(|s| s.closed);
        let (closed, closed_ms, fault) = ends.filter(|(seq, ..)| *seq < end.0).max_by_key(|(seq, ..)| *seq)?;
        let whole = closed < begin.0;
        let class = match (end.1 - closed_ms >= within.as_ms(), whole && lacking) {
            (false, false) if !whole => return None,
            (false, false) => FindingClass::Warning,
            _ => FindingClass::Violation,
        };
        let place = scope.1.as_ref().map_or_else(|| "all namespaces".into(), |n| format!("namespace {n}"));
        let message = format!(
            "no watch of {} in {place} was open at the end of the settling, although the operator runs",
            scope.0
        );
        let by = fault.map(|f| format!(" by {f}")).unwrap_or_default();
        let cause = format!("the last one ended{by} at {} and none was opened again", wording::at(closed_ms));
        Some(Draft::new("processHealth", message, cause, end).class(class).finish(case))
    };
    watched.difference(&open).filter_map(finding).collect()
}

/// Real answers 401 and 403: a warning; a violation when they go on after heal and a subject does not get ready.
fn denied(case: &Case<'_>) -> Vec<Finding> {
    let settle = case.phases.begin(Phase::Settle).map_or(u64::MAX, |(seq, _)| seq);
    let lacking = converges::is_missing_something(case, Phase::Settle);
    let until = case.phases.begin(Phase::End).map_or(u64::MAX, |(seq, _)| seq);
    let mut groups: BTreeMap<(String, u16), Vec<RequestId>> = BTreeMap::new();
    let judged = case.exchanges.values().filter(|x| x.seq < until && x.request.actor.is_operator() && !x.is_review());
    for x in judged {
        let Some(status @ (401 | 403)) = x.answered() else { continue };
        if x.reply.is_none_or(|r| matches!(r.outcome, ReplyOutcome::Delivered(_))) {
            let info = &x.request.info;
            let place = info.namespace.as_ref().map(|n| format!(" in namespace {n}")).unwrap_or_default();
            groups
                .entry((format!("{} {}{place}", info.verb, info.resource_path()), status))
                .or_default()
                .push(x.request.id);
        }
    }
    let finding = |((what, status), ids): ((String, u16), Vec<RequestId>)| {
        let (first, last) = (&case.exchanges[&ids[0]], &case.exchanges[&ids[ids.len() - 1]]);
        let word = if status == 401 { "unauthorized" } else { "forbidden" };
        let message = format!("the operator may not {what}: {word} {}", wording::times(ids.len()));
        let cause = first
            .answer
            .and_then(|(_, a)| a.message.clone())
            .unwrap_or_else(|| format!("the API server answers {status}"));
        let class = if lacking && last.seq > settle { FindingClass::Violation } else { FindingClass::Warning };
        let draft = Draft::new("processHealth", message, cause, (first.seq, first.at_ms)).class(class);
        draft.request(Some(ids[0])).detail("requests", wording::requests(&ids)).finish(case)
    };
    groups.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests;
