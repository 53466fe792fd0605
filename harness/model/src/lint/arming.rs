//! A fault that never arms never fires, and the run would say nothing.

use super::scene::Scene;
use crate::{fault::Arm, operation::StepAction, problem::Problem};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let injected: Vec<(&str, crate::problem::Path)> = scene
        .operations
        .iter()
        .filter_map(|placed| match &placed.operation.action {
            StepAction::Inject(inject) => Some((inject.fault.as_str(), placed.action().key("fault"))),
            _ => None,
        })
        .collect();
    let mut problems = Vec::new();
    for (path, fault) in scene.faults() {
        let step = injected.iter().find(|(name, _)| *name == fault.name);
        match (fault.arm, step) {
            (Arm::Manual, None) => {
                let problem = scene.at_value(&path.key("arm"), format!("no step injects `{}`", fault.name));
                problems
                    .push(problem.with_help(format!("add `- inject: {{fault: {}}}`, or leave `arm` out", fault.name)));
            }
            (Arm::Start, Some((_, at))) => {
                let problem = scene.at_value(at, format!("`{}` is armed from the start", fault.name));
                problems.push(problem.with_help("give the fault `arm: manual`, or leave the step out"));
            }
            _ => {}
        }
    }
    problems
}
