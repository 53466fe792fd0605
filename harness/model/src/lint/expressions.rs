//! Expressions of assertion trees, checks and outputs can be read.

use super::scene::Scene;
use crate::{
    assertion::{Tree, expression_in, parse},
    problem::{Path, Problem},
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for tree in scene.assertion_trees() {
        let Some(node) = tree.file.tree.at(&tree.path) else { continue };
        for wrong in Tree::read(&node.to_value()).err().into_iter().flatten() {
            let path = Path(tree.path.0.iter().chain(&wrong.path.0).cloned().collect());
            let message = wrong.error.message;
            problems.push(if wrong.is_key { tree.file.at_key(&path, message) } else { tree.file.at_value(&path, message) });
        }
    }
    for placed in &scene.operations {
        for (i, output) in placed.operation.outputs.iter().enumerate() {
            let path = placed.path.key("outputs").index(i).key("value");
            if let Some(Err(error)) = output.value.as_str().and_then(expression_in).map(parse) {
                problems.push(scene.at_value(&path, error.message));
            }
        }
    }
    problems
}
