//! A tree, read once and held against objects.

use super::{
    ast::Expression,
    evaluate::{evaluate, is_equal, is_true, kind_of},
    mismatch::Mismatch,
    parser::{ExpressionError, parse},
};
use crate::{bindings::Bindings, problem::Path};
use serde_json::Value;

/// What a node must look like.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// This value; null is also fulfilled by what is not there.
    Value(Value),
    /// In parentheses: a condition that must hold, or a value to be equal to.
    Expression(Box<Expression>, String),
    /// As many items, each like its counterpart.
    List(Vec<Tree>),
    /// These fields, among others.
    Mapping(Vec<(Key, Tree)>),
}

/// What of a node is looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// A field.
    Field(String),
    /// In parentheses: what an expression makes of the node.
    Expression(Box<Expression>, String),
}

/// An expression of a tree that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeProblem {
    /// Where in the tree.
    pub path: Path,
    /// Whether the key or the value at the path is meant.
    pub is_key: bool,
    /// What is wrong.
    pub error: ExpressionError,
}

/// The text of an expression, if a string is one: all of it in parentheses.
pub fn expression_in(text: &str) -> Option<&str> {
    text.trim().strip_prefix('(')?.strip_suffix(')')
}

/// The value of an `outputs` entry: of the expression in parentheses on `node`, or the value itself.
///
/// # Errors
/// When it is no expression, or fails on this node.
pub fn output(value: &Value, node: &Value, bindings: &Bindings) -> Result<Value, ExpressionError> {
    match value.as_str().and_then(expression_in) {
        Some(text) => evaluate(&parse(text)?, node, bindings),
        None => Ok(value.clone()),
    }
}

/// Holds a tree against several objects: `Ok` with the first that matches, otherwise what the closest lacks.
///
/// # Errors
/// The differences to the object with the fewest; none without objects.
pub fn closest<'a>(
    tree: &Tree,
    objects: impl IntoIterator<Item = &'a Value>,
    bindings: &Bindings,
) -> Result<&'a Value, Option<(&'a Value, Vec<Mismatch>)>> {
    let mut nearest: Option<(&Value, Vec<Mismatch>)> = None;
    for object in objects {
        let mismatches = tree.mismatches(object, bindings);
        if mismatches.is_empty() {
            return Ok(object);
        }
        if nearest.as_ref().is_none_or(|(_, fewest)| mismatches.len() < fewest.len()) {
            nearest = Some((object, mismatches));
        }
    }
    Err(nearest)
}

// === impl Tree ===

impl Tree {
    /// Reads a tree whose `($name)` have been put in.
    ///
    /// # Errors
    /// Every expression that is none.
    pub fn read(value: &Value) -> Result<Self, Vec<TreeProblem>> {
        let mut problems = Vec::new();
        let tree = read(value, &Path::root(), &mut problems);
        if problems.is_empty() { Ok(tree) } else { Err(problems) }
    }

    /// Where `actual` differs; empty when it matches.
    pub fn mismatches(&self, actual: &Value, bindings: &Bindings) -> Vec<Mismatch> {
        let mut comparison = Comparison { bindings, found: Vec::new() };
        comparison.tree(self, actual, "");
        comparison.found
    }

    /// The bindings that expressions in it speak of.
    pub fn bindings(&self) -> Vec<&str> {
        match self {
            Self::Value(_) => Vec::new(),
            Self::Expression(e, _) => e.bindings(),
            Self::List(items) => items.iter().flat_map(Self::bindings).collect(),
            Self::Mapping(entries) => entries
                .iter()
                .flat_map(|(key, tree)| {
                    let mut all = match key {
                        Key::Field(_) => Vec::new(),
                        Key::Expression(e, _) => e.bindings(),
                    };
                    all.extend(tree.bindings());
                    all
                })
                .collect(),
        }
    }
}

fn read(value: &Value, path: &Path, problems: &mut Vec<TreeProblem>) -> Tree {
    match value {
        Value::String(text) => match expression_in(text) {
            Some(inner) => match parse(inner) {
                Ok(expression) => Tree::Expression(Box::new(expression), inner.into()),
                Err(error) => {
                    problems.push(TreeProblem { path: path.clone(), is_key: false, error });
                    Tree::Value(Value::Null)
                }
            },
            None => Tree::Value(unescaped(text).into()),
        },
        Value::Array(items) => {
            Tree::List(items.iter().enumerate().map(|(i, item)| read(item, &path.index(i), problems)).collect())
        }
        Value::Object(map) => {
            let mut entries = Vec::new();
            for (name, inner) in map {
                let path = path.key(name);
                let key = match expression_in(name).map(|inner| (inner, parse(inner))) {
                    None => Key::Field(unescaped(name).into()),
                    Some((text, Ok(expression))) => Key::Expression(Box::new(expression), text.into()),
                    Some((_, Err(error))) => {
                        problems.push(TreeProblem { path: path.clone(), is_key: true, error });
                        continue;
                    }
                };
                entries.push((key, read(inner, &path, problems)));
            }
            Tree::Mapping(entries)
        }
        other => Tree::Value(other.clone()),
    }
}

/// `\(text)` is the string `(text)`.
fn unescaped(text: &str) -> &str {
    text.strip_prefix('\\').filter(|t| expression_in(t).is_some()).unwrap_or(text)
}

struct Comparison<'a> {
    bindings: &'a Bindings,
    found: Vec<Mismatch>,
}

impl Comparison<'_> {
    fn tree(&mut self, tree: &Tree, actual: &Value, path: &str) {
        match tree {
            Tree::Value(expected) => {
                if !is_equal(expected, actual) {
                    // "1" and 1 look the same in a message that does not say what they are.
                    let apart = expected.is_string() != actual.is_string() && plain(expected) == plain(actual);
                    let note = |v: &Value| if apart { format!("{v} ({})", kind_of(v)) } else { v.to_string() };
                    self.push(path, note(expected), actual, note(actual));
                }
            }
            Tree::Expression(expression, text) => self.expression(expression, text, actual, path),
            Tree::List(items) => self.list(items, actual, path),
            Tree::Mapping(entries) => self.mapping(entries, actual, path),
        }
    }

    fn expression(&mut self, expression: &Expression, text: &str, actual: &Value, path: &str) {
        match evaluate(expression, actual, self.bindings) {
            Err(error) => self.push(path, format!("({text}), but {error}"), actual, short(actual)),
            Ok(value) if expression.is_condition() => {
                if !is_true(&value) {
                    self.push(path, format!("({text})"), actual, short(actual));
                }
            }
            Ok(value) if is_equal(&value, actual) => {}
            Ok(value) => self.push(path, value.to_string(), actual, short(actual)),
        }
    }

    fn list(&mut self, items: &[Tree], actual: &Value, path: &str) {
        let Some(there) = actual.as_array() else {
            return self.push(path, count(items.len()), actual, short(actual));
        };
        if there.len() != items.len() {
            return self.push(path, count(items.len()), actual, count(there.len()));
        }
        for (i, (item, actual)) in items.iter().zip(there).enumerate() {
            self.tree(item, actual, &format!("{path}[{i}]"));
        }
    }

    fn mapping(&mut self, entries: &[(Key, Tree)], actual: &Value, path: &str) {
        if let (Value::Array(there), [(Key::Field(name), Tree::List(wanted))]) = (actual, entries)
            && name == "contains"
        {
            return self.contains(wanted, there, actual, path);
        }
        // What is missing is told by field; an empty mapping has none to tell.
        let told_by_field = actual.is_null() && !entries.is_empty();
        let only_expressions = !entries.is_empty() && entries.iter().all(|(key, _)| matches!(key, Key::Expression(..)));
        if !(actual.is_object() || told_by_field || only_expressions) {
            return self.push(path, "a mapping".into(), actual, short(actual));
        }
        for (key, tree) in entries {
            match key {
                Key::Field(name) => {
                    let inner = actual.get(name).unwrap_or(&Value::Null);
                    self.tree(tree, inner, &join(path, name));
                }
                Key::Expression(expression, text) => {
                    let at = join(path, &format!("({text})"));
                    match evaluate(expression, actual, self.bindings) {
                        Ok(value) => self.tree(tree, &value, &at),
                        Err(error) => self.push(&at, format!("an answer, but {error}"), actual, short(actual)),
                    }
                }
            }
        }
    }

    fn contains(&mut self, wanted: &[Tree], there: &[Value], actual: &Value, path: &str) {
        for (i, tree) in wanted.iter().enumerate() {
            if let Err(nearest) = closest(tree, there, self.bindings) {
                let lacks = nearest.map_or_else(String::new, |(_, m)| format!("; the closest item: {}", m[0]));
                self.push(
                    path,
                    format!("an item like contains[{i}]"),
                    actual,
                    format!("{}{lacks}", count(there.len())),
                );
            }
        }
    }

    fn push(&mut self, path: &str, expected: String, actual: &Value, shown: String) {
        let actual = (!actual.is_null()).then_some(shown);
        self.found.push(Mismatch { path: path.into(), expected, actual });
    }
}

fn join(path: &str, name: &str) -> String {
    let name = if name.contains('.') && !name.starts_with('(') { format!("[{name:?}]") } else { name.into() };
    match (path, name.starts_with('[')) {
        ("", _) => name,
        (_, true) => format!("{path}{name}"),
        (_, false) => format!("{path}.{name}"),
    }
}

fn count(n: usize) -> String {
    format!("a list of {n} item{}", if n == 1 { "" } else { "s" })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

/// Enough of a value to recognise it.
fn short(value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
