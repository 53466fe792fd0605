//! A file that has been read: its text, its tree, and what came of it.

use crate::{
    problem::{Path, Problem, Severity, Span},
    yaml::{self, Flaw, Node, NodeKind, Style},
};
use serde_json::Value;

/// A file's name and text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// The name, as the user gave it.
    pub file: String,
    /// What is in it.
    pub text: String,
}

/// What came of reading a file.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    /// The noun, when no problem is an error.
    pub value: Option<T>,
    /// All that is wrong.
    pub problems: Vec<Problem>,
    /// The file.
    pub source: Source,
    /// The file as a tree with places; bindings as written.
    pub tree: Node,
}

// === impl Source ===

impl Source {
    /// A problem at a place.
    pub fn problem(&self, span: Span, path: Path, message: impl Into<String>) -> Problem {
        Problem { file: self.file.clone(), span, path, message: message.into(), help: None, severity: Severity::Error }
    }

    pub(super) fn flaw(&self, flaw: Flaw) -> Problem {
        Problem { help: flaw.help, ..self.problem(flaw.span, Path::root(), flaw.message) }
    }

    /// Reads a file that holds one document.
    pub(super) fn document(&self) -> (Node, Vec<Problem>) {
        let (documents, flaws) = yaml::parse(&self.text);
        let mut problems: Vec<Problem> = flaws.into_iter().map(|f| self.flaw(f)).collect();
        let start = Span { line: 1, column: 1, ..Span::default() };
        if let Some(second) = documents.get(1) {
            problems.push(self.problem(second.span, Path::root(), "a second document in a file that holds one"));
        }
        if documents.is_empty() && problems.is_empty() {
            problems.push(self.problem(start, Path::root(), "the file is empty"));
        }
        let nothing = Node { span: start, style: Style::Plain, kind: NodeKind::Scalar(Value::Null) };
        (documents.into_iter().next().unwrap_or(nothing), problems)
    }
}

// === impl Loaded ===

impl<T> Loaded<T> {
    /// Whether nothing stops a run.
    pub fn is_ok(&self) -> bool {
        self.value.is_some()
    }

    /// A problem at the value under `path`.
    pub fn at_value(&self, path: &Path, message: impl Into<String>) -> Problem {
        self.source.problem(self.tree.span_at(path), path.clone(), message)
    }

    /// A problem at the key that `path` ends in.
    pub fn at_key(&self, path: &Path, message: impl Into<String>) -> Problem {
        self.source.problem(self.tree.key_span_at(path), path.clone(), message)
    }

    /// The file alone, without the noun.
    pub(crate) fn as_file(&self) -> Loaded<()> {
        Loaded { value: Some(()), problems: Vec::new(), source: self.source.clone(), tree: self.tree.clone() }
    }
}

impl Loaded<()> {
    /// One document of a file.
    pub(crate) fn of_tree(file: &str, text: &str, tree: Node) -> Self {
        let source = Source { file: file.into(), text: text.into() };
        Self { value: Some(()), problems: Vec::new(), source, tree }
    }
}
