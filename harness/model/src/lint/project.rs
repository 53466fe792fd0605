//! A suite with its scenarios, and all rules over them.

use super::{
    actors, arming, bindings, celled, choices, conflicts, expectations, expressions, files, legality, names,
    operations, ordinals, references, resources, scene::Scene, shadowing, steps, streams, strings, suites,
};
use crate::{
    expect::ExpectFile,
    load::Loaded,
    planning::{PlanOptions, plans},
    problem::{Path, Problem},
    scenario::Scenario,
    suite::Suite,
};

/// A suite with its scenarios.
pub struct Project<'a> {
    /// The suite.
    pub suite: &'a Loaded<Suite>,
    /// Its folder.
    pub suite_dir: String,
    /// Its scenarios.
    pub scenarios: Vec<ProjectScenario<'a>>,
    /// Looks at a path, which a rule made from a folder above and a name in a file.
    pub look: &'a dyn Fn(&str) -> Found,
}

/// A scenario of a project.
pub struct ProjectScenario<'a> {
    /// The scenario.
    pub scenario: &'a Loaded<Scenario>,
    /// Its folder.
    pub dir: String,
    /// What its runs are meant to get.
    pub expect: Option<&'a Loaded<ExpectFile>>,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file with this text.
    File(String),
    /// A folder.
    Folder,
    /// Nothing.
    Nothing,
}

/// All that is wrong with a project: what its files could not be read for, then what the rules say. Sorted by file and
/// place.
pub fn lint(project: &Project<'_>) -> Vec<Problem> {
    let mut problems = project.suite.problems.clone();
    if let Some(suite) = &project.suite.value {
        problems.extend(suites::check(project, suite));
        problems.extend(bindings::check_suite(project, suite));
    }
    for (i, item) in project.scenarios.iter().enumerate() {
        problems.extend(second_of_a_name(&project.scenarios[..i], item));
        problems.extend(item.scenario.problems.iter().cloned());
        problems.extend(item.expect.iter().flat_map(|e| e.problems.iter().cloned()));
        let (Some(suite), Some(scenario)) = (&project.suite.value, &item.scenario.value) else { continue };
        // Whatever does not fit in a combination of the matrix; a file's own problems are told above.
        let plans = plans(project.suite, item.scenario, None, &PlanOptions::default());
        let known = match plans {
            Ok(plans) => plans.into_iter().next().map(|p| p.bindings).unwrap_or_default(),
            Err(more) => {
                problems.extend(more);
                continue;
            }
        };
        let scene = Scene::new(project, suite, item, scenario, known);
        for rule in RULES {
            problems.extend(rule(&scene));
        }
    }
    problems.sort_by(|a, b| {
        let place = |p: &Problem| (p.file.clone(), p.span.line, p.span.column);
        place(a).cmp(&place(b))
    });
    problems.dedup();
    problems
}

/// Reports of two scenarios of one name would overwrite each other.
fn second_of_a_name(earlier: &[ProjectScenario<'_>], item: &ProjectScenario<'_>) -> Option<Problem> {
    let name = &item.scenario.value.as_ref()?.metadata.name;
    let same = |s: &&ProjectScenario<'_>| s.scenario.value.as_ref().is_some_and(|s| s.metadata.name == *name);
    let first = earlier.iter().find(same)?;
    let problem = item.scenario.at_value(&Path::parse("metadata.name"), format!("a second scenario named `{name}`"));
    Some(problem.with_help(format!("the first is {}", first.scenario.source.file)))
}

type Rule = fn(&Scene<'_>) -> Vec<Problem>;

const RULES: [Rule; 19] = [
    names::check,
    steps::check,
    operations::check,
    choices::check,
    files::check,
    bindings::check,
    shadowing::check,
    references::check,
    arming::check,
    actors::check,
    resources::check,
    ordinals::check,
    streams::check,
    conflicts::check,
    legality::check,
    expressions::check,
    strings::check,
    celled::check,
    expectations::check,
];
