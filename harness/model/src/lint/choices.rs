//! Words of Kubernetes' that are plain strings in its API, so that no schema knows them.

use super::scene::Scene;
use crate::{
    fault::{Action, Refuser},
    operation::StepAction,
    problem::{Path, Problem, nearest},
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut one_of = |path: Path, word: Option<&String>, known: &[&str]| {
        let Some(word) = word.filter(|w| !known.contains(&w.as_str()) && !crate::bindings::mentions_any(w)) else {
            return;
        };
        let help = match nearest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of {}", known.join(", ")),
        };
        problems.push(scene.at_value(&path, format!("`{word}` is not known here")).with_help(help));
    };
    for placed in &scene.operations {
        let action = placed.action();
        match &placed.operation.action {
            StepAction::Delete(d) => one_of(
                action.key("deletionPropagationPolicy"),
                d.deletion_propagation_policy.as_ref(),
                &["Background", "Foreground", "Orphan"],
            ),
            StepAction::Revoke(r) => {
                for (i, verb) in r.verbs.iter().enumerate() {
                    let known = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
                    one_of(action.key("verbs").index(i), Some(verb), &known);
                }
            }
            StepAction::Webhook(w) => {
                for (i, operation) in w.operations.iter().enumerate() {
                    one_of(action.key("operations").index(i), Some(operation), &["CREATE", "UPDATE", "DELETE"]);
                }
            }
            StepAction::SetPod(s) => {
                one_of(
                    action.key("phase"),
                    s.phase.as_ref(),
                    &["Pending", "Running", "Succeeded", "Failed", "Evicted"],
                );
            }
            _ => {}
        }
    }
    for (path, fault) in scene.faults() {
        let Action::Reject { status, by, .. } = &fault.action else { continue };
        let at = path.key("do").key("reject");
        if !(400..=599).contains(status) {
            let help = "a refusal has a status from 400 to 599";
            problems.push(scene.at_value(&at.key("status"), format!("{status} refuses nothing")).with_help(help));
        } else if let Some((by, speaks)) = by.map(|by| (by, statuses(by)))
            && !speaks.contains(status)
        {
            let said = if speaks.start() == speaks.end() {
                format!("answers {}", speaks.start())
            } else {
                format!("answers {} to {}", speaks.start(), speaks.end())
            };
            let problem = scene.at_value(&at.key("by"), format!("{} never answers {status}", of(by)));
            problems.push(problem.with_help(format!("it {said}")));
        }
    }
    problems
}

/// The statuses that this one refuses with.
fn statuses(by: Refuser) -> std::ops::RangeInclusive<u16> {
    match by {
        Refuser::Rbac | Refuser::Quota => 403..=403,
        // 500 where it cannot be called.
        Refuser::Webhook => 400..=500,
        Refuser::Budget => 429..=429,
        Refuser::Path => 404..=404,
    }
}

fn of(by: Refuser) -> &'static str {
    match by {
        Refuser::Rbac => "RBAC",
        Refuser::Webhook => "a webhook",
        Refuser::Quota => "a quota",
        Refuser::Budget => "a disruption budget",
        Refuser::Path => "a URL that nobody serves",
    }
}
