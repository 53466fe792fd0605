//! What is wrong with a file of the user's: where, what, and what to write instead.

use std::fmt;

/// One mistake, one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as the user named it.
    pub file: String,
    /// Where in it.
    pub span: Span,
    /// The field, as a path from the document's root; empty for problems of the text itself.
    pub path: Path,
    /// What is wrong, in one line: if only one thing can be shown, it is this.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Whether it stops a run.
    pub severity: Severity,
}

/// Whether a problem stops a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot mean what its author wants.
    Error,
    /// It probably does not.
    Warning,
}

/// A stretch of a file. Lines and columns count from 1, columns in characters; offsets and lengths in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
    /// Where it begins.
    pub offset: usize,
    /// How long it is; 0 where only the point is known.
    pub length: usize,
}

/// A field, as a path from a document's root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Segment>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// Into a mapping.
    Key(String),
    /// Into a list.
    Index(usize),
}

// === impl Problem ===

impl Problem {
    /// `file:line:column: error: message (path); help`, for logs and tests; people at a terminal get the report of
    /// [`crate::render::report`].
    pub fn to_line(&self) -> String {
        self.to_string()
    }

    /// Whether it stops a run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same as a warning.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}:{}: {severity}: {}", self.file, self.span.line, self.span.column, self.message)?;
        if !self.path.0.is_empty() {
            write!(f, " (at {})", self.path)?;
        }
        match &self.help {
            Some(help) => write!(f, "; help: {help}"),
            None => Ok(()),
        }
    }
}

// === impl Path ===

impl Path {
    /// The document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Into a mapping.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(Segment::Key(key.into()))
    }

    /// Into a list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// From a list of keys and indexes written as `spec.faults[0].match`; keys with dots cannot be written so.
    pub fn parse(text: &str) -> Self {
        let mut path = Self::root();
        for part in text.split('.').filter(|p| !p.is_empty()) {
            let (key, indexes) = part.split_once('[').map_or((part, ""), |(k, i)| (k, i));
            if !key.is_empty() {
                path = path.key(key);
            }
            for index in indexes.split(['[', ']']).filter_map(|i| i.parse().ok()) {
                path = path.index(index);
            }
        }
        path
    }

    fn with(&self, segment: Segment) -> Self {
        let mut all = self.0.clone();
        all.push(segment);
        Self(all)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if key.contains(['.', '[', ' ']) && !key.starts_with('(') => write!(f, "[{key:?}]")?,
                Segment::Key(key) if i == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

/// The name among `known` that is most like `wrong`, if any is like it at all.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let lower = name.to_lowercase();
        let distance = strsim::damerau_levenshtein(&wrong, &lower);
        let close =
            distance <= (lower.chars().count().max(3) / 3).max(1) || (wrong.len() > 3 && lower.starts_with(&wrong));
        if close && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}
