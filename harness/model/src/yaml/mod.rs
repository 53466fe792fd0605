//! YAML as kubectl reads it, with the place of every key and value; and YAML out that such a reader reads back unchanged.

mod scalar;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub use tree::{Entry, Flaw, Node, NodeKind, Style, parse};
pub use write::to_yaml;
