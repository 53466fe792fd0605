//! Finding and reading suites and scenarios: from the paths of a command line to plans.

use crate::Error;
use spiritlevel_model::{
    Seed,
    expect::ExpectFile,
    fault::glob,
    load::{Loaded, load_expect, load_scenario, load_suite},
    plan::Plan,
    planning::{PlanOptions, plans},
    problem::Problem,
    scenario::Scenario,
    suite::Suite,
};
use std::path::{Path, PathBuf};

/// Name of a suite's file.
pub const SUITE_FILE: &str = "spiritlevel.yaml";

/// A suite with its scenarios.
pub struct SuiteFiles {
    /// Its folder.
    pub dir: PathBuf,
    /// The suite.
    pub suite: Loaded<Suite>,
    /// Its scenarios, in order of their files.
    pub scenarios: Vec<ScenarioFiles>,
}

/// A scenario with its expectation.
pub struct ScenarioFiles {
    /// Its folder.
    pub dir: PathBuf,
    /// The scenario.
    pub scenario: Loaded<Scenario>,
    /// `NAME.expect.yaml` beside it.
    pub expect: Option<Loaded<ExpectFile>>,
}

/// What the command line chooses.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Instead of the scenarios' seeds.
    pub seed: Option<Seed>,
    /// Only these variants.
    pub variants: Vec<String>,
    /// How often each.
    pub repeat: u32,
    /// A glob, or a part, of `suite/scenario`.
    pub filter: Option<String>,
    /// `i/n`, counted from 1.
    pub shard: Option<(usize, usize)>,
    /// What makes namespaces differ from those of other invocations.
    pub nonce: u64,
}

/// Reads everything that the paths mean.
pub fn find(paths: &[PathBuf]) -> Result<Vec<SuiteFiles>, Error> {
    let mut suites: Vec<SuiteFiles> = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut dirs = Vec::new();
            suite_dirs(path, &mut dirs)?;
            if dirs.is_empty() {
                // A folder inside a suite.
                let dir = enclosing(path)?;
                let files = scenario_files(path)?;
                merge(&mut suites, read(&dir, &files)?);
            }
            for dir in dirs {
                let files = scenario_files(&dir)?;
                merge(&mut suites, read(&dir, &files)?);
            }
        } else if path.is_file() {
            let dir = enclosing(path.parent().unwrap_or(Path::new(".")))?;
            if path.file_name().is_some_and(|n| n == SUITE_FILE) {
                let files = scenario_files(&dir)?;
                merge(&mut suites, read(&dir, &files)?);
            } else {
                merge(&mut suites, read(&dir, std::slice::from_ref(path))?);
            }
        } else {
            return Err(Error::Input(format!(
                "there is no {}: give a scenario file, a suite's folder, or a folder of suites",
                path.display()
            )));
        }
    }
    Ok(suites)
}

fn merge(suites: &mut Vec<SuiteFiles>, next: SuiteFiles) {
    match suites.iter_mut().find(|s| s.dir == next.dir) {
        Some(known) => {
            for scenario in next.scenarios {
                if !known.scenarios.iter().any(|s| s.scenario.source.file == scenario.scenario.source.file) {
                    known.scenarios.push(scenario);
                }
            }
        }
        None => suites.push(next),
    }
}

/// Folders with a suite, at or below `dir`.
fn suite_dirs(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    if dir.join(SUITE_FILE).is_file() {
        found.push(dir.into());
    }
    for sub in entries(dir)?.into_iter().filter(|p| p.is_dir()) {
        let hidden = sub.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.') || n == "target");
        if !hidden {
            suite_dirs(&sub, found)?;
        }
    }
    Ok(())
}

/// The nearest folder with a suite, at or above `dir`.
fn enclosing(dir: &Path) -> Result<PathBuf, Error> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let mut at = Some(dir);
    while let Some(here) = at {
        let here = if here.as_os_str().is_empty() { Path::new(".") } else { here };
        if here.join(SUITE_FILE).is_file() {
            return Ok(here.into());
        }
        if here == Path::new(".") {
            break;
        }
        at = here.parent();
    }
    Err(Error::Input(format!("no {SUITE_FILE} in {} or above: a scenario needs a suite", dir.display())))
}

/// The scenario files of a suite: below its folder, but not below another suite's.
fn scenario_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in entries(dir)? {
        if path.is_dir() && !path.join(SUITE_FILE).is_file() {
            files.extend(scenario_files(&path)?);
        } else if is_scenario(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = std::fs::read_dir(dir).map_err(|e| Error::file("read", dir, e))?;
    let mut all: Vec<PathBuf> = read.filter_map(|e| Some(e.ok()?.path())).collect();
    all.sort();
    Ok(all)
}

/// By what is written in it: manifests lie beside scenarios.
fn is_scenario(path: &Path) -> bool {
    let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
    let text = || std::fs::read_to_string(path).unwrap_or_default();
    yaml && text().lines().any(|l| l.starts_with("apiVersion:") && l.contains("spiritlevel/"))
        && path.file_name().is_none_or(|n| n != SUITE_FILE)
}

fn read(dir: &Path, files: &[PathBuf]) -> Result<SuiteFiles, Error> {
    let path = dir.join(SUITE_FILE);
    let shown = |p: &Path| p.strip_prefix("./").unwrap_or(p).display().to_string();
    let text = |p: &Path| std::fs::read_to_string(p).map_err(|e| Error::file("read", p, e));
    let suite = load_suite(&shown(&path), &text(&path)?);
    let mut scenarios = Vec::new();
    for file in files {
        let scenario = load_scenario(&shown(file), &text(file)?, suite.value.as_ref());
        let expect = file.with_extension("expect.yaml");
        let expect = if expect.is_file() { Some(load_expect(&shown(&expect), &text(&expect)?)) } else { None };
        scenarios.push(ScenarioFiles { dir: file.parent().unwrap_or(dir).into(), scenario, expect });
    }
    Ok(SuiteFiles { dir: dir.into(), suite, scenarios })
}

/// The plans of everything that is selected; or all that is wrong.
pub fn all_plans(suites: &[SuiteFiles], selection: &Selection) -> Result<Vec<Plan>, Vec<Problem>> {
    let mut all = Vec::new();
    let mut problems: Vec<Problem> = Vec::new();
    for suite in suites {
        if suite.suite.value.is_none() {
            problems.extend(suite.suite.problems.iter().filter(|p| p.is_error()).cloned());
        }
        for scenario in &suite.scenarios {
            let options = PlanOptions {
                seed: selection.seed,
                variants: selection.variants.clone(),
                repeat: selection.repeat,
                nonce: selection.nonce,
                suite_dir: suite.dir.display().to_string(),
                scenario_dir: scenario.dir.display().to_string(),
            };
            match plans(&suite.suite, &scenario.scenario, scenario.expect.as_ref(), &options) {
                Ok(plans) => all.extend(plans.into_iter().filter(|p| is_selected(p, selection))),
                Err(more) => problems.extend(more.into_iter().filter(|p| !problems.contains(p)).collect::<Vec<_>>()),
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if let Some((index, count)) = selection.shard {
        all = all.into_iter().enumerate().filter(|(i, _)| i % count == index - 1).map(|(_, p)| p).collect();
    }
    Ok(all)
}

fn is_selected(plan: &Plan, selection: &Selection) -> bool {
    let title = plan.title();
    selection.filter.as_ref().is_none_or(|f| title.contains(f.as_str()) || glob(f, &title))
}
