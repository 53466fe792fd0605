//! Where an object is not what was asserted.

use std::fmt;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The field, `status.conditions[0].status`.
    pub path: String,
    /// What was asserted.
    pub expected: String,
    /// What is there; none where nothing is.
    pub actual: Option<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.actual {
            Some(actual) => write!(f, "expected {}, got {actual}", self.expected),
            None => write!(f, "expected {}, it is missing", self.expected),
        }
    }
}

/// All differences, a line each.
pub fn render(all: &[Mismatch]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
