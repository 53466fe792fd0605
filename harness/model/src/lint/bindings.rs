//! Every `($name)` and every `$name` in an expression has a value by the time it is needed.

use super::{
    files,
    project::{Found, Project},
    scene::Scene,
};
use crate::{
    assertion::{expression_in, parse},
    bindings::{ANSWER, BUILT_IN, Reference, lookup, references},
    load::{Loaded, manifest_nodes},
    operation::StepAction,
    problem::{Path, Problem, Span, nearest},
    suite::Suite,
    yaml::{Node, NodeKind},
};
use serde_json::Value;

/// A scenario, the files it names and its expectations.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut known: Vec<String> = BUILT_IN.iter().map(ToString::to_string).collect();
    known.extend(scene.known.keys().cloned());
    let tree = &scene.scenario.tree;
    let mut tell = |file: &Loaded<()>, node: &Node, at: &Path, known: &[String], expressions: bool| {
        let uses = uses(node, at, expressions);
        problems.extend(uses.into_iter().filter_map(|u| u.problem(file, scene, known)));
    };
    let own = scene.scenario.as_file();
    let spec = Path::root().key("spec");
    for entry in tree.at(&spec).map(Node::entries).unwrap_or_default() {
        if !matches!(entry.key.as_str(), "steps" | "matrix") {
            tell(&own, &entry.value, &spec.key(&entry.key), &known, false);
        }
    }
    let files = files::named(scene);
    for placed in &scene.operations {
        let Some(node) = tree.at(&placed.path) else { continue };
        let is_tree = matches!(
            placed.operation.action,
            StepAction::Assert(_) | StepAction::Error(_) | StepAction::Never(_) | StepAction::Always(_)
        );
        let has_answer = !placed.operation.outputs.is_empty()
            || tree.at(&placed.action()).is_some_and(|n| n.entry("check").is_some() || n.entry("expect").is_some());
        tell(&own, node, &placed.path, &known, is_tree || has_answer);
        for (_, name) in files.iter().filter(|(path, _)| *path == placed.action().key("file")) {
            let (name, Found::File(text)) = scene.look(name) else { continue };
            for object in manifest_nodes(&name, &text).unwrap_or_default() {
                let file = Loaded::of_tree(&name, &text, object.clone());
                tell(&file, &object, &Path::root(), &known, is_tree);
            }
        }
        known.extend(placed.operation.outputs.iter().map(|o| o.name.clone()));
    }
    if let Some(expect) = scene.expect {
        tell(&expect.as_file(), &expect.tree, &Path::root(), &known, false);
    }
    problems
}

/// A suite, as far as it does not leave names to its scenarios.
pub(super) fn check_suite(project: &Project<'_>, suite: &Suite) -> Vec<Problem> {
    let mut known: Vec<String> = BUILT_IN.iter().map(ToString::to_string).collect();
    known.extend(suite.spec.bindings.keys().cloned());
    let bound_by = |name: &str| {
        let scenarios = project.scenarios.iter().filter_map(|s| s.scenario.value.as_ref());
        let binds =
            |spec: &crate::scenario::ScenarioSpec| spec.bindings.contains_key(name) || spec.matrix.contains_key(name);
        let all: Vec<bool> = scenarios.map(|s| binds(&s.spec)).collect();
        !all.is_empty() && all.iter().all(|b| *b)
    };
    let file = project.suite.as_file();
    uses(&project.suite.tree, &Path::root(), false)
        .into_iter()
        .filter(|u| !known.contains(&u.name) && !bound_by(&u.name))
        .map(|u| u.unknown(&file, &known, "neither the suite nor every one of its scenarios binds it"))
        .collect()
}

/// A name that is used.
struct Use {
    name: String,
    inner: Path,
    path: Path,
    span: Span,
    in_expression: bool,
}

// === impl Use ===

impl Use {
    fn problem(&self, file: &Loaded<()>, scene: &Scene<'_>, known: &[String]) -> Option<Problem> {
        if self.in_expression && ANSWER.contains(&self.name.as_str()) {
            return None;
        }
        if !known.contains(&self.name) {
            let later = scene.operations.iter().flat_map(|p| &p.operation.outputs).any(|o| o.name == self.name);
            let why = if later { "an output has its value after its step only" } else { "" };
            return Some(self.unknown(file, known, why));
        }
        // Into a value that is known already, a path can be followed.
        let is_open = !scene.known.contains_key(&self.name);
        if is_open || lookup(&scene.known, &self.name, &self.inner).is_some() {
            return None;
        }
        let message = format!("`{}` has no `{}`", self.name, self.inner);
        let fields = scene.known.get(&self.name).and_then(Value::as_object);
        let fields: Vec<&str> = fields.into_iter().flat_map(|m| m.keys().map(String::as_str)).collect();
        let problem = file.source.problem(self.span, self.path.clone(), message);
        Some(if fields.is_empty() { problem } else { problem.with_help(format!("it has {}", fields.join(", "))) })
    }

    fn unknown(&self, file: &Loaded<()>, known: &[String], why: &str) -> Problem {
        let shown = if self.in_expression { format!("${}", self.name) } else { format!("(${})", self.name) };
        let problem = file.source.problem(self.span, self.path.clone(), format!("`{shown}` has no value"));
        let help = match nearest(&self.name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if !why.is_empty() => why.into(),
            None => format!("bound are {}", known.join(", ")),
        };
        problem.with_help(help)
    }
}

fn uses(node: &Node, path: &Path, expressions: bool) -> Vec<Use> {
    let mut all = Vec::new();
    collect(node, path, expressions, &mut all);
    all
}

fn collect(node: &Node, path: &Path, expressions: bool, all: &mut Vec<Use>) {
    match &node.kind {
        NodeKind::Scalar(Value::String(text)) => in_text(text, node.span, path, expressions, all),
        NodeKind::Scalar(_) => {}
        NodeKind::List(items) => {
            for (i, item) in items.iter().enumerate() {
                collect(item, &path.index(i), expressions, all);
            }
        }
        NodeKind::Mapping(entries) => {
            for entry in entries {
                let path = path.key(&entry.key);
                in_text(&entry.key, entry.span, &path, expressions, all);
                collect(&entry.value, &path, expressions, all);
            }
        }
    }
}

fn in_text(text: &str, span: Span, path: &Path, expressions: bool, all: &mut Vec<Use>) {
    let found = references(text);
    let whole = found.len() == 1 && found[0].range == (0..text.len());
    all.extend(found.into_iter().map(|Reference { name, path: inner, .. }| Use {
        name,
        inner,
        path: path.clone(),
        span,
        // What stands alone in a tree may be an answer's word.
        in_expression: expressions && whole,
    }));
    if expressions
        && !whole
        && let Some(expression) = expression_in(text).and_then(|inner| parse(inner).ok())
    {
        let names = expression.bindings().into_iter().map(str::to_owned);
        all.extend(names.map(|name| Use { name, inner: Path::root(), path: path.clone(), span, in_expression: true }));
    }
}
