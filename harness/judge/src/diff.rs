//! Which fields differ between two versions of an object.

use serde_json::Value;
use std::collections::BTreeSet;

/// One field that differs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// From the object's root.
    pub(crate) path: Vec<Segment>,
    /// The value before; null when there was none.
    pub(crate) before: Value,
    /// The value after; null when there is none.
    pub(crate) after: Value,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    /// A key of a map.
    Key(String),
    /// A place in a list.
    Index(usize),
}

// === impl Change ===

impl Change {
    /// Whether nothing but this key changed, wherever it stands; it may be the first or the last one of its map.
    pub(crate) fn is_only(&self, key: &str) -> bool {
        let alone = |v: &Value| v.is_null() || v.as_object().is_some_and(|m| m.keys().all(|k| k == key));
        self.is_below(key) || (alone(&self.before) && alone(&self.after))
    }

    /// Whether this key may have changed as well.
    pub(crate) fn touches(&self, key: &str) -> bool {
        self.is_below(key) || has_key(&self.before, key) || has_key(&self.after, key)
    }

    fn is_below(&self, key: &str) -> bool {
        self.path.iter().any(|s| matches!(s, Segment::Key(k) if k == key))
    }
}

/// Whether the key stands anywhere in a value.
pub(crate) fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(k, v)| k == key || has_key(v, key)),
        Value::Array(items) => items.iter().any(|v| has_key(v, key)),
        _ => false,
    }
}

/// What the API server changes by itself on every write.
const BOOKKEEPING: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// The fields that differ, without the API server's bookkeeping, in order.
pub(crate) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    walk(before, after, &mut Vec::new(), &mut found);
    found
}

fn walk(before: &Value, after: &Value, path: &mut Vec<Segment>, found: &mut Vec<Change>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let metadata = matches!(path.as_slice(), [Segment::Key(k)] if k == "metadata");
                if metadata && BOOKKEEPING.contains(&key.as_str()) {
                    continue;
                }
                path.push(Segment::Key(key.clone()));
                walk(a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null), path, found);
                path.pop();
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (x, y)) in a.iter().zip(b).enumerate() {
                path.push(Segment::Index(index));
                walk(x, y, path, found);
                path.pop();
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(Change { path: path.clone(), before: a.clone(), after: b.clone() }),
    }
}

/// The value at a path; null when there is none.
pub(crate) fn value_at<'v>(object: &'v Value, path: &[Segment]) -> &'v Value {
    path.iter().fold(object, |value, segment| match segment {
        Segment::Key(key) => &value[key.as_str()],
        Segment::Index(index) => &value[*index],
    })
}

/// `spec.ports[0].protocol`.
pub(crate) fn path_text(path: &[Segment]) -> String {
    let part = |(at, segment): (usize, &Segment)| match segment {
        Segment::Key(key) if key.contains(['.', '/']) => format!("[{key:?}]"),
        Segment::Key(key) if at == 0 => key.clone(),
        Segment::Key(key) => format!(".{key}"),
        Segment::Index(index) => format!("[{index}]"),
    };
    path.iter().enumerate().map(part).collect()
}

/// A value on one line, cut where it is long.
pub(crate) fn value_text(value: &Value) -> String {
    let text = if value.is_null() { "nothing".into() } else { value.to_string() };
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differing_fields_are_named_without_bookkeeping() {
        let a = json!({"metadata": {"resourceVersion": "1", "annotations": {"a.b/c": "1"}}, "spec": {"ports": [{"p": 1}], "x": [1]}});
        let b = json!({"metadata": {"resourceVersion": "2", "annotations": {"a.b/c": "2"}}, "spec": {"ports": [{"p": 2}], "x": [1, 2]}});
        let text: Vec<String> = changes(&a, &b)
            .iter()
            .map(|c| format!("{}: {} -> {}", path_text(&c.path), value_text(&c.before), value_text(&c.after)))
            .collect();
        expect_test::expect![[r#"
            [
                "metadata.annotations[\"a.b/c\"]: \"1\" -> \"2\"",
                "spec.ports[0].p: 1 -> 2",
                "spec.x: [1] -> [1,2]",
            ]
        "#]]
        .assert_debug_eq(&text);
        assert_eq!(value_at(&b, &changes(&a, &b)[1].path), &json!(2));
    }
}
