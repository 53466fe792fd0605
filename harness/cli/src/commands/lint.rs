//! `spiritlevel lint`.

use crate::{
    Error, Exit,
    args::Lint,
    complain::{Texts, problems_text},
    voice::{aside, say},
};
use spiritlevel_model::{
    lint::{Found, Project, ProjectScenario},
    problem::Problem,
};
use spiritlevel_runner::project::{SuiteFiles, find};
use std::path::Path;

/// Tells all mistakes at once. Offline.
pub(super) fn lint(args: &Lint) -> Result<Exit, Error> {
    let suites = find(&args.paths).map_err(Error::Find)?;
    let scenarios: usize = suites.iter().map(|s| s.scenarios.len()).sum();
    if scenarios == 0 {
        let paths: Vec<String> = args.paths.iter().map(|p| p.display().to_string()).collect();
        return Err(super::run::no_scenarios(&paths.join(" ")));
    }
    let problems = problems(&suites);
    aside(&problems_text(&problems, &texts(&suites)));
    let errors = problems.iter().filter(|p| p.is_error()).count();
    let warnings = problems.len() - errors;
    let (errors_text, warnings_text) = (counted(errors, "error"), counted(warnings, "warning"));
    let (scenarios, suites) = (counted(scenarios, "scenario"), counted(suites.len(), "suite"));
    say(&format!("{scenarios} in {suites}: {errors_text}, {warnings_text}\n"));
    let fails = errors > 0 || args.strict && warnings > 0;
    Ok(if fails { Exit::Usage } else { Exit::Pass })
}

/// `1 error`, `2 errors`.
pub(super) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// All that is wrong with some suites, each mistake once.
pub(super) fn problems(suites: &[SuiteFiles]) -> Vec<Problem> {
    let mut all: Vec<Problem> = Vec::new();
    for files in suites {
        let scenario = |s: &'_ spiritlevel_runner::project::ScenarioFiles| s.dir.display().to_string();
        let scenarios = files.scenarios.iter();
        let project = Project {
            suite: &files.suite,
            suite_dir: files.dir.display().to_string(),
            scenarios: scenarios
                .map(|s| ProjectScenario { scenario: &s.scenario, dir: scenario(s), expect: s.expect.as_ref() })
                .collect(),
            look: &look,
        };
        all.extend(spiritlevel_model::lint::lint(&project));
    }
    all
}

fn look(path: &str) -> Found {
    let path = Path::new(path);
    if path.is_dir() {
        return Found::Folder;
    }
    match std::fs::read(path) {
        Ok(bytes) => Found::File(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => Found::Nothing,
    }
}

fn texts(suites: &[SuiteFiles]) -> Texts {
    let mut texts = Texts::new();
    for files in suites {
        texts.insert(files.suite.source.file.clone(), files.suite.source.text.clone());
        for s in &files.scenarios {
            texts.insert(s.scenario.source.file.clone(), s.scenario.source.text.clone());
            texts.extend(s.expect.iter().map(|e| (e.source.file.clone(), e.source.text.clone())));
        }
    }
    texts
}
