//! A project from files of the tests.

use spiritlevel_model::{
    expect::ExpectFile,
    lint::{Found, Project, ProjectScenario, lint},
    load::Loaded,
    problem::Problem,
    scenario::Scenario,
    suite::Suite,
};
use std::path::{Path, PathBuf};

/// The folder `name` beside the tests.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All problems of a suite and at most one scenario, whose files stand in `dir`.
pub(crate) fn lint_files(
    dir: &Path,
    suite: &Loaded<Suite>,
    scenario: Option<&Loaded<Scenario>>,
    expect: Option<&Loaded<ExpectFile>>,
) -> Vec<Problem> {
    let look = |path: &str| {
        let path = dir.join(path);
        match std::fs::read_to_string(&path) {
            Ok(text) => Found::File(text),
            Err(_) if path.is_dir() => Found::Folder,
            Err(_) => Found::Nothing,
        }
    };
    let scenarios = scenario.into_iter().map(|scenario| ProjectScenario { scenario, dir: String::new(), expect });
    lint(&Project { suite, suite_dir: String::new(), scenarios: scenarios.collect(), look: &look })
}
