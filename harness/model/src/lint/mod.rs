//! What can be known to be wrong before anything runs. One rule a file; each tells one kind of mistake.

mod actors;
mod arming;
mod bindings;
mod celled;
mod choices;
mod conflicts;
mod expectations;
mod expressions;
mod files;
mod legality;
mod names;
mod operations;
mod ordinals;
mod project;
mod references;
mod resources;
mod scene;
mod shadowing;
mod steps;
mod streams;
mod strings;
mod suites;

pub use project::{Found, Project, ProjectScenario, lint};
