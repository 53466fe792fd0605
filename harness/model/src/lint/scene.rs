//! A scenario as rules look at it: its nouns, each with its place.

use super::project::{Found, Project, ProjectScenario};
use crate::{
    bindings::Bindings,
    expect::ExpectFile,
    fault::{Fault, Match, Until},
    load::{Loaded, manifest_nodes},
    operation::{Assertion, Operation, StepAction},
    problem::{Path, Problem},
    scenario::{Scenario, ScenarioSpec},
    suite::Suite,
    yaml::Node,
};

/// A scenario in its project.
pub(super) struct Scene<'a> {
    pub(super) project: &'a Project<'a>,
    pub(super) suite: &'a Suite,
    pub(super) scenario: &'a Loaded<Scenario>,
    pub(super) spec: &'a ScenarioSpec,
    pub(super) expect: Option<&'a Loaded<ExpectFile>>,
    pub(super) dir: &'a str,
    /// Every binding that is known before a run, with the first values of the matrix.
    pub(super) known: Bindings,
    pub(super) operations: Vec<Placed<'a>>,
}

/// An operation and its place.
pub(super) struct Placed<'a> {
    pub(super) path: Path,
    pub(super) operation: &'a Operation,
}

/// A tree that objects are held against, and the file it stands in.
pub(super) struct AssertionTree {
    pub(super) file: Loaded<()>,
    /// Where in the file.
    pub(super) path: Path,
}

// === impl Scene ===

impl<'a> Scene<'a> {
    pub(super) fn new(
        project: &'a Project<'a>,
        suite: &'a Suite,
        item: &'a ProjectScenario<'a>,
        scenario: &'a Scenario,
        known: Bindings,
    ) -> Self {
        let spec = &scenario.spec;
        let operations = operations(spec, &item.scenario.tree);
        Self { project, suite, scenario: item.scenario, spec, expect: item.expect, dir: &item.dir, known, operations }
    }

    /// The faults with their places.
    pub(super) fn faults(&self) -> impl Iterator<Item = (Path, &'a Fault)> {
        self.spec.faults.iter().enumerate().map(|(i, fault)| (Path::parse("spec.faults").index(i), fault))
    }

    /// Every `match` of the scenario: of faults, of what they wait for, of `await`.
    pub(super) fn matches(&self) -> Vec<(Path, &'a Match)> {
        let mut all = Vec::new();
        for (path, fault) in self.faults() {
            all.push((path.key("match"), &fault.matches));
            for (at, until) in awaited(&path, fault) {
                if let Until::Exchange(exchange) = until {
                    all.push((at.key("exchange"), exchange.as_ref()));
                }
            }
        }
        for placed in &self.operations {
            if let StepAction::Await(wait) = &placed.operation.action {
                all.extend(wait.exchange.as_ref().map(|m| (placed.action().key("exchange"), m)));
            }
        }
        all
    }

    /// Every assertion tree of the scenario, those in files included. Files that cannot be read are another rule's.
    pub(super) fn assertion_trees(&self) -> Vec<AssertionTree> {
        let mut all = Vec::new();
        for placed in &self.operations {
            let action = placed.action();
            let mut here = |path: Path| all.push(AssertionTree { file: self.scenario.as_file(), path });
            match &placed.operation.action {
                StepAction::Assert(a) | StepAction::Error(a) | StepAction::Never(a) | StepAction::Always(a) => {
                    if a.resource.is_some() {
                        here(action.key("resource"));
                    }
                    all.extend(self.trees_in_file(a));
                }
                StepAction::Apply(m) | StepAction::Create(m) | StepAction::Patch(m) | StepAction::Update(m) => {
                    for i in 0..m.expect.len() {
                        here(action.key("expect").index(i).key("check"));
                    }
                }
                StepAction::Script(crate::operation::Script { check: Some(_), .. })
                | StepAction::Command(crate::operation::Command { check: Some(_), .. }) => here(action.key("check")),
                _ => {}
            }
        }
        all
    }

    fn trees_in_file(&self, assertion: &Assertion) -> Vec<AssertionTree> {
        let Some((name, Found::File(text))) = assertion.file.as_ref().map(|f| self.look(f)) else { return Vec::new() };
        let nodes = manifest_nodes(&name, &text).unwrap_or_default();
        let file = |tree: Node| AssertionTree { file: Loaded::of_tree(&name, &text, tree), path: Path::root() };
        nodes.into_iter().map(file).collect()
    }

    /// Looks at a file that the scenario names.
    pub(super) fn look(&self, file: &str) -> (String, Found) {
        let path = join(self.dir, file);
        let found = (self.project.look)(&path);
        (path, found)
    }

    /// The names of the faults.
    pub(super) fn fault_names(&self) -> Vec<&'a str> {
        self.spec.faults.iter().map(|f| f.name.as_str()).collect()
    }

    /// The names of the steps.
    pub(super) fn step_names(&self) -> Vec<&'a str> {
        self.spec.steps.iter().filter_map(|s| s.name.as_deref()).collect()
    }

    /// A problem at a key of the scenario.
    pub(super) fn at_key(&self, path: &Path, message: impl Into<String>) -> Problem {
        self.scenario.at_key(path, message)
    }

    /// A problem at a value of the scenario.
    pub(super) fn at_value(&self, path: &Path, message: impl Into<String>) -> Problem {
        self.scenario.at_value(path, message)
    }
}

// === impl Placed ===

impl Placed<'_> {
    /// The place of what the operation does.
    pub(super) fn action(&self) -> Path {
        self.path.key(self.operation.action.name())
    }
}

/// What a fault waits for, before it begins and while it lasts, and where that is said.
pub(super) fn awaited<'a>(path: &Path, fault: &'a Fault) -> Vec<(Path, &'a Until)> {
    let lasts = fault.action.until().map(|until| (path.key("do").key(fault.action.name()).key("until"), until));
    let begins = fault.matches.after.as_ref().map(|after| (path.key("match").key("after"), after));
    begins.into_iter().chain(lasts).collect()
}

/// A path from a folder and a name in a file of that folder.
pub(super) fn join(dir: &str, file: &str) -> String {
    if dir.is_empty() || file.starts_with('/') { file.into() } else { format!("{}/{file}", dir.trim_end_matches('/')) }
}

fn operations<'a>(spec: &'a ScenarioSpec, tree: &Node) -> Vec<Placed<'a>> {
    let mut all = Vec::new();
    for (i, step) in spec.steps.iter().enumerate() {
        let path = Path::parse("spec.steps").index(i);
        let is_full = tree.at(&path).is_some_and(|node| node.entry("try").is_some());
        for (key, list) in [("try", &step.attempt), ("catch", &step.catch), ("finally", &step.finally)] {
            for (j, operation) in list.iter().enumerate() {
                let path = if is_full { path.key(key).index(j) } else { path.clone() };
                all.push(Placed { path, operation });
            }
        }
    }
    all
}
