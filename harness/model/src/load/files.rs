//! The three kinds of files.

use super::{
    Loaded, Source,
    check::{self, Place},
};
use crate::{
    bindings::{self, Bindings, Unresolved},
    expect::ExpectFile,
    problem::{Path, Problem, Segment},
    scenario::{Scenario, ScenarioSpec},
    schema,
    suite::{API_VERSION, Suite, SuiteSpec},
    yaml::Node,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::LazyLock;

static SUITE: LazyLock<Value> = LazyLock::new(|| schema::of::<Suite>("suite"));
static SCENARIO: LazyLock<Value> = LazyLock::new(|| schema::of::<Scenario>("scenario"));
static EXPECT: LazyLock<Value> = LazyLock::new(|| schema::of::<ExpectFile>("expect"));

/// The schema of a suite's `spec`.
pub(crate) fn suite_spec() -> &'static Value {
    static SPEC: LazyLock<Value> = LazyLock::new(|| schema::of::<SuiteSpec>("suite spec"));
    &SPEC
}

/// The schema of a scenario's `spec`.
pub(crate) fn scenario_spec() -> &'static Value {
    static SPEC: LazyLock<Value> = LazyLock::new(|| schema::of::<ScenarioSpec>("scenario spec"));
    &SPEC
}

/// Reads a `spiritlevel.yaml`.
pub fn load_suite(file: &str, text: &str) -> Loaded<Suite> {
    load(file, text, &SUITE, Some("Suite"), own_bindings)
}

/// Reads a scenario. The suite's bindings may stand where the scenario needs a number or a duration.
pub fn load_scenario(file: &str, text: &str, suite: Option<&Suite>) -> Loaded<Scenario> {
    load(file, text, &SCENARIO, Some("Scenario"), |value| {
        let mut known = suite.map(|s| s.spec.bindings.clone()).unwrap_or_default();
        // Any value of the matrix tells the type; plans check each.
        for (name, values) in value["spec"]["matrix"].as_object().into_iter().flatten() {
            known.extend(values.get(0).map(|first| (name.clone(), first.clone())));
        }
        known.extend(own_bindings(value));
        known
    })
}

/// Reads a `NAME.expect.yaml`.
pub fn load_expect(file: &str, text: &str) -> Loaded<ExpectFile> {
    load(file, text, &EXPECT, None, |_| Bindings::default())
}

fn own_bindings(value: &Value) -> Bindings {
    let own = value["spec"]["bindings"].as_object();
    own.into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn load<T: DeserializeOwned>(
    file: &str,
    text: &str,
    schema: &Value,
    kind: Option<&str>,
    known: impl Fn(&Value) -> Bindings,
) -> Loaded<T> {
    let source = Source { file: file.into(), text: text.into() };
    let (tree, mut problems) = source.document();
    let mut value = None;
    if problems.is_empty() {
        let written = tree.to_value();
        problems.extend(kind.and_then(|kind| wrong_kind(&source, &tree, &written, kind)));
        if problems.is_empty() {
            match decode(&source, &tree, &Path::root(), schema, &written, &known(&written)) {
                Ok(decoded) => value = Some(decoded),
                Err(found) => problems = found,
            }
        }
    }
    Loaded { value, problems, source, tree }
}

/// Another kind of file is one mistake, not as many as it has fields.
fn wrong_kind(source: &Source, tree: &Node, value: &Value, kind: &str) -> Option<Problem> {
    let at = |key: &str, message: String, help: String| {
        let path = Path::root().key(key);
        Some(source.problem(tree.span_at(&path), path, message).with_help(help))
    };
    match (value["apiVersion"].as_str(), value["kind"].as_str()) {
        (Some(version), _) if version != API_VERSION => {
            at("apiVersion", format!("unknown apiVersion `{version}`"), format!("the only one is `{API_VERSION}`"))
        }
        (_, Some(other)) if other != kind => {
            at("kind", format!("`{other}` where a {kind} is expected"), format!("`kind: {kind}`"))
        }
        _ => None,
    }
}

/// Turns a part of a document into a noun. Bindings that stand where no string fits are put in first.
pub(crate) fn decode<T: DeserializeOwned>(
    source: &Source,
    tree: &Node,
    at: &Path,
    schema: &Value,
    written: &Value,
    known: &Bindings,
) -> Result<T, Vec<Problem>> {
    let mut value = written.clone();
    let mut checked = check::check(schema, &value);
    if checked.misfits.is_empty() && !checked.open.is_empty() {
        for path in &checked.open {
            put_in(&mut value, path, known);
        }
        checked = check::check(schema, &value);
        for path in std::mem::take(&mut checked.open) {
            checked.misfits.push(check::Misfit::open(path));
        }
    }
    let below = |path: &Path| Path(at.0.iter().chain(&path.0).cloned().collect());
    if !checked.misfits.is_empty() {
        let problem = |misfit: check::Misfit| {
            let path = below(&misfit.path);
            let span = match misfit.place {
                Place::Key => tree.key_span_at(&path),
                Place::Value => tree.span_at(&path),
            };
            Problem { help: misfit.help, ..source.problem(span, path, misfit.message) }
        };
        return Err(checked.misfits.into_iter().map(problem).collect());
    }
    // What no schema says: the types' own rules.
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = below(&path_of(error.path()));
        vec![source.problem(tree.span_at(&path), path, error.into_inner().to_string())]
    })
}

fn put_in(value: &mut Value, path: &Path, known: &Bindings) {
    let mut place = value;
    for segment in &path.0 {
        let next = match segment {
            Segment::Key(key) => place.get_mut(key),
            Segment::Index(index) => place.get_mut(*index),
        };
        match next {
            Some(next) => place = next,
            None => return,
        }
    }
    if let Ok(resolved) = bindings::resolve(place, known, Unresolved::Keep) {
        *place = resolved;
    }
}

fn path_of(path: &serde_path_to_error::Path) -> Path {
    use serde_path_to_error::Segment as Theirs;
    let segment = |s: &Theirs| match s {
        Theirs::Seq { index } => Some(Segment::Index(*index)),
        Theirs::Map { key } => Some(Segment::Key(key.clone())),
        Theirs::Enum { variant } => Some(Segment::Key(variant.clone())),
        Theirs::Unknown => None,
    };
    Path(path.iter().map_while(segment).collect())
}
