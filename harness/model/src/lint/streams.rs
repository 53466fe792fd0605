//! Faults that mean something for some verbs only are not for others; those on watch streams act on the stream as a whole
//! rather than at a point of an exchange.

use super::scene::Scene;
use crate::{fault::Action, problem::Problem};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, fault) in scene.faults() {
        let name = fault.action.name();
        let (verbs, possible) = (fault.matches.verbs(), fault.action.verbs());
        if !possible.is_empty() && !verbs.is_empty() && !verbs.iter().any(|v| possible.contains(v)) {
            let all: Vec<String> = possible.iter().map(ToString::to_string).collect();
            let on = match all.join(" and ").as_str() {
                "watch" => "watches".to_owned(),
                "list" => "lists".to_owned(),
                _ => "lists and watches".to_owned(),
            };
            let problem = scene.at_value(&path.key("match").key("verb"), format!("`{name}` acts on {on} only"));
            problems.push(problem.with_help(format!("write `verb: {}`, or leave it out", all[0])));
        }
        if !fault.action.acts_on_streams() {
            continue;
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
