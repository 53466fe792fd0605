//! Bindings: `($name)` in strings, put in by value. Expressions in parentheses are something else: see
//! [`crate::assertion`].

use crate::problem::{Path, Segment};
use indexmap::IndexMap;
use serde_json::{Map, Value};
use std::{fmt, ops::Range};

/// Values by name.
pub type Bindings = IndexMap<String, Value>;

/// Known while a run goes on only: the runner puts them in.
pub const LATE: [&str; 3] = ["kubeconfig", "module", "binary"];

/// Made by the harness for each run: nobody else may take these names.
pub const BUILT_IN: [&str; 7] =
    ["namespace", "operatorNamespace", "namespaces", "seed", "kubeconfig", "module", "binary"];

/// What an operation's checks and outputs can speak of besides bindings.
pub const ANSWER: [&str; 4] = ["error", "stdout", "stderr", "exitCode"];

/// What becomes of a name that has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// It stays as written, for a later pass; escapes stay, too.
    Keep,
    /// It is an error: this is the last pass, and escapes become what they stand for.
    Error,
}

/// A `($name.field[0])` in a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where in the string, parentheses included.
    pub range: Range<usize>,
    /// The binding's name.
    pub name: String,
    /// Into its value.
    pub path: Path,
}

/// A name without a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    /// Where it is used.
    pub at: Path,
    /// As written, `($name.field)`.
    pub reference: String,
    /// The names that have a value.
    pub known: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no value; bound are {}", self.reference, self.known.join(", "))
    }
}

/// Puts bindings into every string of a value, keys of mappings included. A string that is one reference takes the
/// binding's type; inside a longer string a value is text. One pass: what a value itself contains stays.
///
/// # Errors
/// With [`Unresolved::Error`], every name that has no value.
pub fn resolve(value: &Value, bindings: &Bindings, unresolved: Unresolved) -> Result<Value, Vec<Missing>> {
    let mut pass = Pass { bindings, unresolved, missing: Vec::new() };
    let resolved = pass.value(value, &Path::root());
    if pass.missing.is_empty() { Ok(resolved) } else { Err(pass.missing) }
}

/// [`resolve`] for a single string whose result is text.
///
/// # Errors
/// With [`Unresolved::Error`], every name that has no value.
pub fn resolve_text(text: &str, bindings: &Bindings, unresolved: Unresolved) -> Result<String, Vec<Missing>> {
    resolve(&text.into(), bindings, unresolved).map(|value| as_text(&value))
}

/// Every reference in a string, in order; escaped ones are none.
pub fn references(text: &str) -> Vec<Reference> {
    parts(text).into_iter().filter_map(|part| if let Part::Reference(r) = part { Some(r) } else { None }).collect()
}

/// Whether a string has a reference.
pub fn mentions_any(text: &str) -> bool {
    text.contains("($") && !references(text).is_empty()
}

/// The value of `name` at `path` inside it.
pub fn lookup<'a>(bindings: &'a Bindings, name: &str, path: &Path) -> Option<&'a Value> {
    path.0.iter().try_fold(bindings.get(name)?, |value, segment| match segment {
        Segment::Key(key) => value.get(key),
        Segment::Index(index) => value.get(index),
    })
}

struct Pass<'a> {
    bindings: &'a Bindings,
    unresolved: Unresolved,
    missing: Vec<Missing>,
}

impl Pass<'_> {
    fn value(&mut self, value: &Value, at: &Path) -> Value {
        match value {
            Value::String(text) => self.string(text, at),
            Value::Array(items) => items.iter().enumerate().map(|(i, item)| self.value(item, &at.index(i))).collect(),
            Value::Object(map) => {
                let entry = |(key, value): (&String, &Value)| {
                    let at = at.key(key);
                    let key = as_text(&self.string(key, &at));
                    (key, self.value(value, &at))
                };
                Value::Object(map.iter().map(entry).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    fn string(&mut self, text: &str, at: &Path) -> Value {
        let parts = parts(text);
        if let [Part::Reference(reference)] = parts.as_slice() {
            return self.look_up(reference, text, at).unwrap_or_else(|| text.into());
        }
        let last = self.unresolved == Unresolved::Error;
        let mut out = String::with_capacity(text.len());
        for part in parts {
            match part {
                Part::Text(range) => out.push_str(&text[range]),
                Part::Escape if last => out.push_str("($"),
                Part::Escape => out.push_str("(($"),
                Part::Reference(r) => match self.look_up(&r, text, at) {
                    Some(value) => out.push_str(&as_text(&value)),
                    None => out.push_str(&text[r.range]),
                },
            }
        }
        out.into()
    }

    fn look_up(&mut self, reference: &Reference, text: &str, at: &Path) -> Option<Value> {
        let value = lookup(self.bindings, &reference.name, &reference.path).cloned();
        if value.is_none() && self.unresolved == Unresolved::Error {
            self.missing.push(Missing {
                at: at.clone(),
                reference: text[reference.range.clone()].into(),
                known: self.bindings.keys().cloned().collect(),
            });
        }
        value
    }
}

/// Strings as they are, everything else as JSON.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

enum Part {
    Text(Range<usize>),
    /// `(($`, which stands for `($`.
    Escape,
    Reference(Reference),
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut begun = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("($") {
        let at = from + found;
        let escaped = at > begun && text[..at].ends_with('(');
        let (start, end, part) = if escaped {
            (at - 1, at + 2, Part::Escape)
        } else if let Some(reference) = reference(text, at) {
            (at, reference.range.end, Part::Reference(reference))
        } else {
            from = at + 2;
            continue;
        };
        if start > begun {
            parts.push(Part::Text(begun..start));
        }
        parts.push(part);
        begun = end;
        from = end;
    }
    if begun < text.len() {
        parts.push(Part::Text(begun..text.len()));
    }
    parts
}

/// `($name.field[0])` at `at`; anything more is an expression and none of ours.
fn reference(text: &str, at: usize) -> Option<Reference> {
    let close = at + text[at..].find(')')?;
    let inner = &text[at + 2..close];
    let (name, mut rest) = identifier(inner)?;
    let mut path = Path::root();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let (key, after) = identifier(after)?;
            path = path.key(key);
            rest = after;
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            path = path.index(index.parse().ok()?);
            rest = after;
        }
    }
    Some(Reference { range: at..close + 1, name: name.into(), path })
}

fn identifier(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn some() -> Bindings {
        let all = json!({"cluster": "pg-1", "n": 3, "namespaces": {"other": "x-other"}, "list": ["a", {"b": true}]});
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn strings_take_values_and_single_references_their_type() {
        for (written, value) in [
            (json!("($n)"), json!(3)),
            (json!("($cluster)-($n)"), json!("pg-1-3")),
            (json!("($namespaces.other)"), json!("x-other")),
            (json!("($list[1].b)"), json!(true)),
            (json!("x ($list)"), json!(r#"x ["a",{"b":true}]"#)),
            (json!({"a": ["($n)"], "($cluster)/k": null}), json!({"a": [3], "pg-1/k": null})),
            (json!("(($n)"), json!("($n)")),
            (json!("($n) (($n) ($n)"), json!("3 ($n) 3")),
            // Expressions are left alone.
            (json!("($n > `2`)"), json!("($n > `2`)")),
            (json!("(conditions[?type == 'Ready'])"), json!("(conditions[?type == 'Ready'])")),
            (json!("(conditions[?name == '($cluster)'])"), json!("(conditions[?name == 'pg-1'])")),
            (json!("((a || b) && c)"), json!("((a || b) && c)")),
            (json!("$n ($) ($"), json!("$n ($) ($")),
            (json!(7), json!(7)),
        ] {
            assert_eq!(resolve(&written, &some(), Unresolved::Error).unwrap(), value, "{written}");
        }
    }

    #[test]
    fn open_names_stay_or_are_told_with_their_place() {
        let written = json!({"a": {"b": ["($nope)-($n)", "(($n)"]}, "c": "($list[9])"});
        let kept = resolve(&written, &some(), Unresolved::Keep).unwrap();
        assert_eq!(kept, json!({"a": {"b": ["($nope)-3", "(($n)"]}, "c": "($list[9])"}));
        let missing = resolve(&written, &some(), Unresolved::Error).unwrap_err();
        let told: Vec<_> = missing.iter().map(|m| (m.at.to_string(), m.reference.as_str())).collect();
        assert_eq!(told, [("a.b[0]".to_string(), "($nope)"), ("c".to_string(), "($list[9])")]);
        assert_eq!(missing[0].to_string(), "($nope) has no value; bound are cluster, n, namespaces, list");
    }

    #[test]
    fn values_are_not_looked_into() {
        let bindings = Bindings::from([("a".into(), json!("($b)")), ("b".into(), json!("no"))]);
        assert_eq!(resolve(&json!("($a)"), &bindings, Unresolved::Error).unwrap(), json!("($b)"));
    }
}
