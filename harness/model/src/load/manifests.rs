//! Files with Kubernetes objects.

use super::Source;
use crate::{
    problem::{Path, Problem},
    yaml::{self, Node, NodeKind},
};
use serde_json::Value;

/// Reads the objects of a manifest file: several documents, and the items of a `List`, in order.
///
/// # Errors
/// All that is wrong with the file: its syntax, duplicate keys, documents that are no objects.
pub fn parse_manifests(file: &str, text: &str) -> Result<Vec<Value>, Vec<Problem>> {
    manifest_nodes(file, text).map(|nodes| nodes.iter().map(Node::to_value).collect())
}

/// [`parse_manifests`], with the place of everything.
///
/// # Errors
/// As [`parse_manifests`].
pub fn manifest_nodes(file: &str, text: &str) -> Result<Vec<Node>, Vec<Problem>> {
    let source = Source { file: file.into(), text: text.into() };
    let (documents, flaws) = yaml::parse(text);
    let mut problems: Vec<Problem> = flaws.into_iter().map(|f| source.flaw(f)).collect();
    let mut objects = Vec::new();
    for document in documents {
        let kind = text_of(&document, "kind").unwrap_or_default();
        match document.entry("items").map(|e| &e.value.kind) {
            Some(NodeKind::List(items)) if kind.ends_with("List") => objects.extend(items.iter().cloned()),
            _ => objects.push(document),
        }
    }
    for object in &objects {
        let missing = ["apiVersion", "kind"].into_iter().find(|key| text_of(object, key).is_none());
        if let (Some(key), true) = (missing, problems.is_empty()) {
            let message = format!("not a Kubernetes object: `{key}` is missing");
            problems.push(source.problem(object.span, Path::root(), message));
        }
    }
    if problems.is_empty() { Ok(objects) } else { Err(problems) }
}

fn text_of(node: &Node, key: &str) -> Option<String> {
    match &node.entry(key)?.value.kind {
        NodeKind::Scalar(Value::String(text)) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_manifests;

    #[test]
    fn documents_and_lists_are_one_sequence() {
        let text = "kind: A\napiVersion: v1\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: B, x: no}\n- {apiVersion: v1, kind: C}\n";
        let kinds: Vec<String> =
            parse_manifests("f", text).unwrap().iter().map(|o| o["kind"].as_str().unwrap().into()).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
    }

    #[test]
    fn what_is_no_object_is_told_once() {
        for (text, told) in [
            ("a: 1\n", "f:1:1: error: not a Kubernetes object: `apiVersion` is missing"),
            ("apiVersion: v1\nkind: X\n---\n- 1\n", "f:4:1: error: not a Kubernetes object: `apiVersion` is missing"),
            (
                "apiVersion: v1\nkind: X\nkind: Y\n",
                "f:3:1: error: duplicate key `kind`; help: it stands in line 2 already",
            ),
        ] {
            let problems: Vec<String> =
                parse_manifests("f", text).unwrap_err().iter().map(ToString::to_string).collect();
            assert_eq!(problems, [told]);
        }
    }
}
