//! Files that a scenario names are there and hold objects.

use super::{project::Found, scene::Scene};
use crate::{
    load::parse_manifests,
    operation::{Load, StepAction},
    problem::{Path, Problem},
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, file) in named(scene) {
        match scene.look(file) {
            (name, Found::File(text)) => problems.extend(parse_manifests(&name, &text).err().into_iter().flatten()),
            (_, Found::Folder) => problems.push(scene.at_value(&path, format!("`{file}` is a folder"))),
            (name, Found::Nothing) => {
                let help = "paths start from the folder of the file they stand in";
                problems.push(scene.at_value(&path, format!("there is no file `{name}`")).with_help(help));
            }
        }
    }
    problems
}

/// The files that operations name; those whose name depends on a binding are left out.
pub(super) fn named<'a>(scene: &'a Scene<'_>) -> Vec<(Path, &'a str)> {
    let mut all = Vec::new();
    for placed in &scene.operations {
        let file = match &placed.operation.action {
            StepAction::Apply(m) | StepAction::Create(m) | StepAction::Patch(m) | StepAction::Update(m) => &m.file,
            StepAction::Delete(d) => &d.file,
            StepAction::Load(Load { create: Some(create), .. }) if !crate::bindings::mentions_any(&create.file) => {
                all.push((placed.action().key("create").key("file"), create.file.as_str()));
                continue;
            }
            StepAction::Assert(a) | StepAction::Error(a) | StepAction::Never(a) | StepAction::Always(a) => &a.file,
            _ => continue,
        };
        let plain = file.iter().filter(|f| !crate::bindings::mentions_any(f));
        all.extend(plain.map(|f| (placed.action().key("file"), f.as_str())));
    }
    all
}
