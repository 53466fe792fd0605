//! Assertion trees: what an object must look like, in the notation of Chainsaw. A mapping is a subset, a list is length
//! and order, a key or value in parentheses is an expression on the node at hand.

mod ast;
mod evaluate;
mod lexer;
mod mismatch;
mod parser;
#[cfg(test)]
mod tests;
mod tree;

pub use ast::Expression;
pub use evaluate::evaluate;
pub use mismatch::{Mismatch, render};
pub use parser::{ExpressionError, parse};
pub use tree::{Tree, TreeProblem, closest, expression_in, output};
