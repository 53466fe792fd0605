//! A scenario does something, at least once.

use super::scene::Scene;
use crate::problem::{Path, Problem};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if scene.spec.steps.is_empty() {
        let help = "begin with `- apply: {file: …}`";
        problems
            .push(scene.at_key(&Path::parse("spec.steps"), "a scenario without steps does nothing").with_help(help));
    }
    for (i, step) in scene.spec.steps.iter().enumerate() {
        if step.attempt.is_empty() {
            let path = Path::parse("spec.steps").index(i).key("try");
            problems.push(scene.at_key(&path, "a step without operations does nothing"));
        }
    }
    if scene.spec.replicas == Some(0) {
        let problem = scene.at_value(&Path::parse("spec.replicas"), "without replicas there is no operator");
        problems.push(problem.with_help("to begin without it, `- stopOperator: {}`"));
    }
    for (name, values) in &scene.spec.matrix {
        if values.is_empty() {
            let path = Path::parse("spec.matrix").key(name);
            problems.push(scene.at_key(&path, "without values in the matrix there are no runs"));
        }
    }
    problems
}
