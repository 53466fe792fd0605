//! Expressions: the part of JMESPath that assertions need.

use serde_json::Value;

/// An expression on a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// `@`: the node.
    Current,
    /// `'text'`, `` `json` `` or a bare number.
    Literal(Value),
    /// `$name`.
    Binding(String),
    /// `left.name`.
    Field(Box<Expression>, String),
    /// `left[3]`, from the end when negative.
    Index(Box<Expression>, i64),
    /// `left[*]`: what follows is done for each item.
    Each(Box<Expression>),
    /// `left[?condition]`: the items for which it holds; what follows is done for each of them.
    Filter(Box<Expression>, Box<Expression>),
    /// `left | right`: ends what is done for each.
    Pipe(Box<Expression>, Box<Expression>),
    /// `!of`.
    Not(Box<Expression>),
    /// `left && right`.
    And(Box<Expression>, Box<Expression>),
    /// `left || right`.
    Or(Box<Expression>, Box<Expression>),
    /// `left == right` and its like.
    Compare(Comparison, Box<Expression>, Box<Expression>),
    /// `length(of)` and its like.
    Call(Function, Vec<Expression>),
}

/// Ways to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The functions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Items of a list, fields of a mapping, characters of a string.
    Length,
    /// Whether a list has an item or a string a part.
    Contains,
    /// Whether a string begins so.
    StartsWith,
    /// Whether a string ends so.
    EndsWith,
    /// The names of a mapping's fields.
    Keys,
}

impl Function {
    /// All of them, by name, with the number of their arguments.
    pub(super) const ALL: [(&'static str, Self, usize); 5] = [
        ("length", Self::Length, 1),
        ("contains", Self::Contains, 2),
        ("starts_with", Self::StartsWith, 2),
        ("ends_with", Self::EndsWith, 2),
        ("keys", Self::Keys, 1),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, f, _)| *f == self).map_or("", |(name, ..)| name)
    }
}

impl Expression {
    /// Whether it says yes or no by its form, as against a value to compare with.
    pub fn is_condition(&self) -> bool {
        match self {
            Self::Not(_) | Self::Compare(..) => true,
            Self::And(a, b) | Self::Or(a, b) => a.is_condition() && b.is_condition(),
            Self::Call(function, _) => !matches!(function, Function::Length | Function::Keys),
            Self::Pipe(_, last) => last.is_condition(),
            _ => false,
        }
    }

    /// The bindings it speaks of.
    pub fn bindings(&self) -> Vec<&str> {
        match self {
            Self::Binding(name) => vec![name],
            Self::Current | Self::Literal(_) => Vec::new(),
            Self::Field(of, _) | Self::Index(of, _) | Self::Each(of) | Self::Not(of) => of.bindings(),
            Self::Filter(a, b) | Self::Pipe(a, b) | Self::And(a, b) | Self::Or(a, b) | Self::Compare(_, a, b) => {
                let mut all = a.bindings();
                all.extend(b.bindings());
                all
            }
            Self::Call(_, arguments) => arguments.iter().flat_map(Self::bindings).collect(),
        }
    }
}
