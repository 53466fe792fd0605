//! Words of Kubernetes' that are plain strings in its API, so that no schema knows them.

use super::scene::Scene;
use crate::{
    fault::Action,
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
        if let Action::Reject { status, .. } = &fault.action
            && !(400..=599).contains(status)
        {
            let at = path.key("do").key("reject").key("status");
            let help = "a refusal has a status from 400 to 599";
            problems.push(scene.at_value(&at, format!("{status} refuses nothing")).with_help(help));
        }
    }
    problems
}
