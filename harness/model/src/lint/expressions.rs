//! Expressions of assertion trees, checks and outputs can be read.

use super::scene::Scene;
use crate::{
    assertion::{Tree, expression_in, parse},
    load::Loaded,
    problem::{Path, Problem},
    yaml::{Node, NodeKind, Style},
};
use serde_json::Value;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for tree in scene.assertion_trees() {
        let Some(node) = tree.file.tree.at(&tree.path) else { continue };
        let before = problems.len();
        torn(&tree.file, node, &tree.path, &mut problems);
        if problems.len() > before {
            continue;
        }
        for wrong in Tree::read(&node.to_value()).err().into_iter().flatten() {
            let path = Path(tree.path.0.iter().chain(&wrong.path.0).cloned().collect());
            let message = wrong.error.message;
            problems.push(if wrong.is_key {
                tree.file.at_key(&path, message)
            } else {
                tree.file.at_value(&path, message)
            });
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

/// In flow style a comma ends a key or value, inside parentheses, too: what follows is another.
fn torn(file: &Loaded<()>, node: &Node, path: &Path, problems: &mut Vec<Problem>) {
    let help = "in flow style ({…} and […]) keys and values in parentheses with a comma need quotes";
    let is_torn = |text: &str, style: Style| {
        style == Style::Plain && text.starts_with('(') && text.matches('(').count() > text.matches(')').count()
    };
    match &node.kind {
        NodeKind::Scalar(Value::String(text)) if is_torn(text, node.style) => {
            problems.push(file.at_value(path, "an expression that ends at its comma").with_help(help));
        }
        NodeKind::Scalar(_) => {}
        NodeKind::List(items) => {
            items.iter().enumerate().for_each(|(i, item)| torn(file, item, &path.index(i), problems));
        }
        NodeKind::Mapping(entries) => {
            for entry in entries {
                let path = path.key(&entry.key);
                if is_torn(&entry.written, entry.style) {
                    problems.push(file.at_key(&path, "an expression that ends at its comma").with_help(help));
                }
                torn(file, &entry.value, &path, problems);
            }
        }
    }
}
