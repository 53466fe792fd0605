//! Ordinals count from 1, and there is one way to choose.

use super::scene::Scene;
use crate::problem::Problem;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, matches) in scene.matches() {
        for (key, value) in [("nth", matches.nth), ("every", matches.every), ("times", matches.times)] {
            if value == Some(0) {
                let problem = scene.at_value(&path.key(key), format!("`{key}: 0` never happens"));
                problems.push(problem.with_help("exchanges are counted from 1"));
            }
        }
        if matches.nth.is_some() && matches.every.is_some() {
            let problem = scene.at_key(&path.key("every"), "`nth` and `every` exclude each other");
            problems.push(problem.with_help("`nth` is one exchange, `every` each so many"));
        }
    }
    problems
}
