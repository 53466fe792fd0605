//! Faults on watch streams match watches, and act on the stream as a whole rather than at a point of an exchange.

use super::scene::Scene;
use crate::{Verb, fault::Action, problem::Problem};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, fault) in scene.faults() {
        if !fault.action.acts_on_streams() {
            continue;
        }
        let name = fault.action.name();
        let verbs = fault.matches.verbs();
        if !verbs.is_empty() && !verbs.contains(&Verb::Watch) {
            let problem = scene.at_value(&path.key("match").key("verb"), format!("`{name}` acts on watches only"));
            problems.push(problem.with_help("write `verb: watch`, or leave it out"));
        }
        if fault.at.is_some() {
            let problem = scene.at_key(&path.key("at"), format!("`{name}` acts on a stream, which has no such point"));
            problems.push(problem.with_help("leave `at` out"));
        }
        if let Action::DelayEvents { by, until } = &fault.action {
            let at = path.key("do").key(name);
            match (by, until) {
                (None, None) => {
                    problems.push(scene.at_key(&at, "it is not said for how long").with_help("`by` or `until`"));
                }
                (Some(_), Some(_)) => {
                    problems.push(scene.at_key(&at.key("until"), "`by` and `until` exclude each other"));
                }
                _ => {}
            }
        }
    }
    problems
}
