//! CEL compiles.

use super::scene::Scene;
use crate::{
    bindings::{Unresolved, mentions_any, resolve_text},
    cel::Cel,
    invariants::{Invariants, Toggle},
    operation::StepAction,
    problem::{Path, Problem},
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut all: Vec<(Path, &str)> = in_invariants(&Path::parse("spec.invariants"), &scene.spec.invariants);
    for (path, matches) in scene.matches() {
        all.extend(matches.body.as_ref().map(|text| (path.key("body"), text.as_str())));
        all.extend(matches.diff.as_ref().map(|text| (path.key("diff"), text.as_str())));
    }
    for (path, fault) in scene.faults() {
        if let Some(text) = fault.action.events().1 {
            all.push((path.key("do").key(fault.action.name()).key("where"), text));
        }
    }
    for placed in &scene.operations {
        if let StepAction::Assert(a) | StepAction::Error(a) | StepAction::Never(a) | StepAction::Always(a) =
            &placed.operation.action
        {
            all.extend(a.cel.as_ref().map(|text| (placed.action().key("cel"), text.as_str())));
        }
    }
    let wrong = |(path, text): (Path, &str)| {
        let text = resolve_text(text, &scene.known, Unresolved::Keep).unwrap_or_else(|_| text.into());
        // What an output puts in is not known yet.
        let message = compile(&text).filter(|_| !mentions_any(&text))?;
        Some(scene.at_value(&path, message))
    };
    all.into_iter().filter_map(wrong).collect()
}

/// The expressions of invariants' settings.
pub(super) fn in_invariants<'a>(at: &Path, invariants: &'a Invariants) -> Vec<(Path, &'a str)> {
    let mut all = Vec::new();
    for (kind, list) in
        [("always", &invariants.always), ("never", &invariants.never), ("eventually", &invariants.eventually)]
    {
        let at = at.key(kind);
        all.extend(list.iter().enumerate().map(|(i, p)| (at.index(i).key("cel"), p.cel.as_str())));
    }
    if let Some(Toggle::Settings(orphans)) = &invariants.no_orphans {
        let at = at.key("noOrphans").key("retain");
        let when = |(i, r): (usize, &'a crate::invariants::Retain)| Some((at.index(i).key("when"), r.when.as_deref()?));
        all.extend(orphans.retain.iter().enumerate().filter_map(when));
    }
    all
}

/// Why a text is no CEL.
pub(super) fn compile(text: &str) -> Option<String> {
    Cel::compile(text).err().map(|error| {
        let text = error.to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // The parser's list of tokens and its drawing of the line say no more than the place.
        let end = text.find(" expecting {").or_else(|| text.find(" | ")).unwrap_or(text.len());
        text[..end].into()
    })
}
