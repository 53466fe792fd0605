//! Actors that nobody is.

use super::scene::Scene;
use crate::{fault::OneOrMany, problem::Problem};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, matches) in scene.matches() {
        let many = scene.scenario.tree.at(&path.key("actor")).is_some_and(|n| n.to_value().is_array());
        for (i, actor) in matches.actor.iter().flat_map(OneOrMany::as_slice).enumerate() {
            let at = if many { path.key("actor").index(i) } else { path.key("actor") };
            if actor == "operator" {
                let help = "`operator/0` is the first replica, `operator/*` any; left out, any is meant";
                problems.push(scene.at_value(&at, "no actor is called `operator`").with_help(help));
            }
            let replicas = scene.spec.replicas.unwrap_or(scene.suite.spec.operator.process.replicas);
            let replica = actor.strip_prefix("operator/").and_then(|n| n.parse::<usize>().ok());
            if let Some(replica) = replica.filter(|r| *r >= replicas) {
                let help =
                    format!("replicas count from 0, and there {} {replicas}", if replicas == 1 { "is" } else { "are" });
                problems.push(scene.at_value(&at, format!("there is no replica {replica}")).with_help(help));
            }
        }
    }
    problems
}
