//! Values that YAML does not take for strings where the API has strings only, so that an assertion can never hold.

use super::scene::Scene;
use crate::{
    load::Loaded,
    problem::{Path, Problem},
    yaml::{Node, NodeKind},
};
use serde_json::Value;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for tree in scene.assertion_trees() {
        if let Some(node) = tree.file.tree.at(&tree.path) {
            look(&tree.file, node, &tree.path, &mut problems);
        }
    }
    problems
}

fn look(file: &Loaded<()>, node: &Node, path: &Path, problems: &mut Vec<Problem>) {
    match &node.kind {
        NodeKind::Scalar(_) => {}
        NodeKind::List(items) => {
            items.iter().enumerate().for_each(|(i, item)| look(file, item, &path.index(i), problems));
        }
        NodeKind::Mapping(entries) => {
            for entry in entries {
                let path = path.key(&entry.key);
                let is_condition_status = entry.key == "status";
                if let (true, NodeKind::Scalar(value @ Value::Bool(b))) = (is_condition_status, &entry.value.kind) {
                    let message = format!("the boolean {value} where conditions have a string");
                    let help = format!("put it in quotes: status: \"{}\"", if *b { "True" } else { "False" });
                    problems.push(file.at_value(&path, message).with_help(help).as_warning());
                }
                if matches!(entry.key.as_str(), "labels" | "annotations") {
                    only_strings(file, &entry.value, &path, problems);
                }
                look(file, &entry.value, &path, problems);
            }
        }
    }
}

fn only_strings(file: &Loaded<()>, node: &Node, path: &Path, problems: &mut Vec<Problem>) {
    for entry in node.entries() {
        if let NodeKind::Scalar(value @ (Value::Bool(_) | Value::Number(_))) = &entry.value.kind {
            let message = format!("{value} where labels and annotations have a string");
            problems.push(file.at_value(&path.key(&entry.key), message).with_help("put it in quotes").as_warning());
        }
    }
}
