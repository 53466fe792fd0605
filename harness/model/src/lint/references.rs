//! Faults and steps that are spoken of exist.

use super::scene::{Scene, awaited};
use crate::{
    fault::{Action, Moment, Until},
    operation::StepAction,
    problem::{Path, Problem, nearest},
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (faults, steps) = (scene.fault_names(), scene.step_names());
    let is_mark = |(_, f): &(Path, &crate::fault::Fault)| matches!(f.action, Action::Mark {});
    let marks: Vec<&str> = scene.faults().filter(is_mark).map(|(_, f)| f.name.as_str()).collect();
    let mut named = |what: &str, known: &[&str], path: Path, name: &str| {
        problems
            .extend(missing(what, known, name).map(|(message, help)| scene.at_value(&path, message).with_help(help)));
    };
    for (path, fault) in scene.faults() {
        for (at, until) in awaited(&path, fault) {
            match until {
                Until::Fired(name) => named("fault", &faults, at.key("fired"), name),
                Until::Step(name) => named("step", &steps, at.key("step"), name),
                _ => {}
            }
        }
        let at = path.key("do").key(fault.action.name()).key("at");
        match &fault.action {
            Action::StaleView { at: Moment::Fired(name), .. } => named("mark", &marks, at.key("fired"), name),
            Action::StaleView { at: Moment::Step(name), .. } => named("step", &steps, at.key("step"), name),
            _ => {}
        }
    }
    for placed in &scene.operations {
        let action = placed.action();
        match &placed.operation.action {
            StepAction::Inject(i) => named("fault", &faults, action.key("fault"), &i.fault),
            StepAction::Heal(h) => {
                if let Some(name) = &h.fault {
                    named("fault", &faults, action.key("fault"), name);
                }
            }
            StepAction::Await(a) => {
                for (i, name) in a.fired.iter().enumerate() {
                    named("fault", &faults, action.key("fired").index(i), name);
                }
            }
            _ => {}
        }
    }
    problems
}

/// What to say about a name that is none of the known.
pub(super) fn missing(what: &str, known: &[&str], name: &str) -> Option<(String, String)> {
    if known.contains(&name) || crate::bindings::mentions_any(name) {
        return None;
    }
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => format!("the scenario has no {what} with a name"),
        None => format!("there are {}", known.join(", ")),
    };
    Some((format!("there is no {what} named `{name}`"), help))
}
