//! From a build recipe to the operator's program.
//!
//! Serves the launch: nothing of a third-party operator is copied into a repository, it is built unmodified where the Go
//! tool keeps its modules.

mod command;
mod go_module;
mod run;

pub use go_module::module_dir;

use crate::Error;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// Hears each line that a build says.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Where the operator's program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildSpec {
    /// A command of the suite.
    Command(CommandBuild),
    /// A published Go module.
    GoModule(GoModule),
}

/// A command that leaves a program behind. It is run every time: the build tool knows what has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandBuild {
    /// The program and its arguments. A relative path is resolved from `dir`.
    pub command: Vec<String>,
    /// The working directory.
    pub dir: PathBuf,
    /// The program that is there afterwards, relative to `dir`.
    pub produces: PathBuf,
}

/// A `main` package of a published Go module, built once per version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoModule {
    /// Such as `github.com/prometheus-operator/prometheus-operator`.
    pub module: String,
    /// The exact version, such as `v0.85.0`.
    pub version: String,
    /// The package, such as `./cmd/operator`; `.` is the module's root.
    pub package: String,
    /// Added `replace` directives, for modules whose graph names dead hosts: what, and by what (a folder or
    /// `module@version`).
    pub replace: BTreeMap<String, String>,
}

/// Builds the operator and returns the path of its program. Built Go modules stay below `cache`, see [`cache_dir`].
pub async fn build(spec: &BuildSpec, cache: &Path, progress: Progress<'_>) -> Result<PathBuf, Error> {
    match spec {
        BuildSpec::Command(spec) => command::build(spec, progress).await,
        BuildSpec::GoModule(spec) => go_module::build(spec, cache, progress).await,
    }
}

/// Where built operators are kept by default: `$XDG_CACHE_HOME/spiritlevel/operators`, else below `~/.cache`.
pub fn cache_dir() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(env::temp_dir).join("spiritlevel/operators")
}
