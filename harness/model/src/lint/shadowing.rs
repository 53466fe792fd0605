//! A binding lives for the whole scenario: no name is bound twice. Only values of the matrix may take the place of a
//! scenario's own binding, which then says what the value is without a matrix.

use super::scene::Scene;
use crate::{
    bindings::BUILT_IN,
    problem::{Path, Problem},
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let suite = &scene.suite.spec.bindings;
    let owner = |name: &str| {
        if BUILT_IN.contains(&name) {
            Some("the harness")
        } else if suite.contains_key(name) {
            Some("the suite")
        } else {
            None
        }
    };
    for (section, names) in [
        ("spec.bindings", scene.spec.bindings.keys().collect::<Vec<_>>()),
        ("spec.matrix", scene.spec.matrix.keys().collect()),
    ] {
        for name in names {
            if let Some(owner) = owner(name) {
                let path = Path::parse(section).key(name);
                problems.push(scene.at_key(&path, format!("`{name}` is bound by {owner} already")));
            }
        }
    }
    let mut bound: Vec<&str> = Vec::new();
    for placed in &scene.operations {
        for (i, output) in placed.operation.outputs.iter().enumerate() {
            let path = placed.path.key("outputs").index(i).key("name");
            let name = output.name.as_str();
            let by = owner(name).or_else(|| {
                let own = scene.spec.bindings.contains_key(name) || scene.spec.matrix.contains_key(name);
                if own { Some("the scenario") } else { bound.contains(&name).then_some("an earlier output") }
            });
            if let Some(by) = by {
                problems.push(scene.at_value(&path, format!("`{name}` is bound by {by} already")));
            }
            bound.push(name);
        }
    }
    problems
}
