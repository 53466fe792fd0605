//! Expect files speak of variants, matrix values, faults, steps and invariants that there are.

use super::{references::missing, scene::Scene};
use crate::{
    expect::{Expect, ExpectFile},
    invariants::Invariants,
    load::Loaded,
    problem::{Path, Problem, nearest},
};

/// The built-in invariants, and what failing operations are called.
const INVARIANTS: [&str; 17] = [
    "converges",
    "quiet",
    "noOrphans",
    "legalOwners",
    "noLiveLoss",
    "unique",
    "deletes",
    "truthfulStatus",
    "singleWriter",
    "foreign",
    "processHealth",
    "heals",
    "sameEnd",
    "assert",
    "error",
    "always",
    "never",
];

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let Some((file, value)) = scene.expect.and_then(|e| Some((e, e.value.as_ref()?))) else { return Vec::new() };
    let mut problems = variants(scene, file, value);
    for (variant, list) in value {
        for (i, expect) in list.iter().enumerate() {
            let path = Path::root().key(variant).index(i);
            problems.extend(one(scene, file, &path, expect));
        }
    }
    problems
}

fn variants(scene: &Scene<'_>, file: &Loaded<ExpectFile>, value: &ExpectFile) -> Vec<Problem> {
    let known: Vec<&str> = scene.suite.spec.operator.variants.keys().map(String::as_str).collect();
    let unknown = value.keys().filter(|name| !known.contains(&name.as_str()) && name.as_str() != "default");
    unknown
        .map(|name| {
            let help = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "the suite has no variants: write `default`".into(),
                None => format!("it has {}", known.join(", ")),
            };
            file.at_key(&Path::root().key(name), format!("the suite has no variant `{name}`")).with_help(help)
        })
        .collect()
}

fn one(scene: &Scene<'_>, file: &Loaded<ExpectFile>, path: &Path, expect: &Expect) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, value) in &expect.when {
        let at = path.key("when").key(name);
        match scene.spec.matrix.get(name) {
            None => problems.push(file.at_key(&at, format!("the matrix has no `{name}`"))),
            Some(values) if !values.contains(value) => {
                problems.push(file.at_value(&at, format!("the matrix never gives `{name}` the value {value}")));
            }
            Some(_) => {}
        }
    }
    let mut invariants: Vec<&str> = INVARIANTS.to_vec();
    for own in [&scene.spec.invariants, &scene.suite.spec.defaults.invariants] {
        invariants.extend(properties(own));
    }
    for (i, finding) in expect.findings.iter().enumerate() {
        let at = path.key("findings").index(i);
        let (faults, steps) = (scene.fault_names(), scene.step_names());
        for (key, known, name) in [
            ("fault", &faults, finding.fault.as_ref()),
            ("step", &steps, finding.step.as_ref()),
            ("invariant", &invariants, Some(&finding.invariant)),
        ] {
            let wrong = name.filter(|n| !n.contains(['*', '?'])).and_then(|name| missing(key, known, name));
            problems.extend(wrong.map(|(message, help)| file.at_value(&at.key(key), message).with_help(help)));
        }
        if let Some(cause) = finding.caused_by.filter(|c| *c == i || *c >= expect.findings.len()) {
            let help = "findings are counted from 0";
            let message = format!("there is no other finding {cause}");
            problems.push(file.at_value(&at.key("causedBy"), message).with_help(help));
        }
    }
    for (i, name) in expect.holds.iter().enumerate() {
        let wrong = missing("invariant", &invariants, name);
        let at = path.key("holds").index(i);
        problems.extend(wrong.map(|(message, help)| file.at_value(&at, message).with_help(help)));
    }
    problems
}

fn properties(invariants: &Invariants) -> impl Iterator<Item = &str> {
    let all = invariants.always.iter().chain(&invariants.never).chain(&invariants.eventually);
    all.map(|p| p.name.as_str())
}
