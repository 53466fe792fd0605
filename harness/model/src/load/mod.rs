//! Files as users write them, turned into nouns: every mistake of a file is told at once, each with its place.

mod check;
mod files;
mod loaded;
mod manifests;

pub(crate) use files::{decode, scenario_spec, suite_spec};
pub use files::{load_expect, load_scenario, load_suite};
pub use loaded::{Loaded, Source};
pub use manifests::{manifest_nodes, parse_manifests};
