//! Names by which something is spoken of must be told apart.

use super::scene::Scene;
use crate::{
    load::Loaded,
    problem::{Path, Problem},
    suite::Named,
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems: Vec<Problem> =
        scene.scenario.value.iter().filter_map(|s| own(scene.scenario, &s.metadata)).collect();
    let mut twice = |what: &str, names: Vec<(Path, &str)>| {
        for (i, (path, name)) in names.iter().enumerate() {
            if let Some((first, _)) = names[..i].iter().find(|(_, earlier)| earlier == name) {
                let line = scene.scenario.tree.span_at(first).line;
                let problem = scene.at_value(path, format!("a second {what} named `{name}`"));
                problems.push(problem.with_help(format!("the first stands in line {line}")));
            }
        }
    };
    twice("fault", scene.faults().map(|(path, fault)| (path.key("name"), fault.name.as_str())).collect());
    let steps = scene.spec.steps.iter().enumerate();
    let named = steps.filter_map(|(i, s)| Some((Path::parse("spec.steps").index(i).key("name"), s.name.as_deref()?)));
    twice("step", named.collect());
    let all = &scene.spec.invariants;
    let mut properties = Vec::new();
    for (kind, list) in [("always", &all.always), ("never", &all.never), ("eventually", &all.eventually)] {
        let at = Path::parse("spec.invariants").key(kind);
        properties.extend(list.iter().enumerate().map(|(i, p)| (at.index(i).key("name"), p.name.as_str())));
    }
    twice("property", properties);
    let namespaces = scene.spec.namespaces.iter().enumerate();
    twice("namespace", namespaces.map(|(i, n)| (Path::parse("spec.namespaces").index(i), n.as_str())).collect());
    problems
}

/// The name of a suite or scenario is that of a folder of reports and part of a namespace's.
pub(super) fn own<T>(file: &Loaded<T>, metadata: &Named) -> Option<Problem> {
    let name = &metadata.name;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let ok = !name.is_empty() && name.chars().all(fits) && !name.starts_with('-') && !name.ends_with('-');
    let problem = || file.at_value(&Path::parse("metadata.name"), format!("`{name}` cannot be a name"));
    (!ok).then(|| problem().with_help("lower case, digits, and dashes between them"))
}
