//! The scenario's own asserts: a step that did not hold is a violation under its operation's name.

use crate::{
    case::{Case, Ending},
    draft::Draft,
    wording,
};
use spiritlevel_model::finding::Finding;

/// One finding for each failed operation.
pub(crate) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let failed = case.steps.iter().filter_map(|s| match s.end {
        Some((seq, at_ms, Ending::Failed(message))) if s.operation != "delete" => Some((s, seq, at_ms, message)),
        _ => None,
    });
    let finding = |(step, seq, at_ms, why): (&crate::case::StepLife<'_>, u64, f64, &str)| {
        let what = step.object.map_or_else(|| step.called.clone(), ToString::to_string);
        // A promise (`never`, `always`) fails at one moment.
        let waited =
            if seq > step.seq { format!(" after {}", wording::lasting(at_ms - step.at_ms)) } else { String::new() };
        let message = format!("{what}: {} in {} did not hold{waited}", step.operation, step.path);
        let active = case.faults.iter().filter(|f| {
            !f.is_mark() && f.firings.iter().any(|x| x.seq < seq) && f.healed.is_none_or(|healed| healed > step.seq)
        });
        let mut draft = Draft::new(step.operation, message, first_line(why), (seq, at_ms));
        if let Some(object) = step.object {
            draft = draft.object(object);
        }
        for line in why.lines().skip(1) {
            draft = draft.detail("differs", line);
        }
        for fault in active {
            draft = draft.detail("active", format!("{} ({})", fault.declared.name, fault.legality()));
        }
        draft.found_in(&step.called).finish(case)
    };
    failed.map(finding).collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("no reason was given").to_owned()
}

#[cfg(test)]
mod tests;
