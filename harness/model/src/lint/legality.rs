//! A fault that no correct API server does proves nothing against an operator: its author should know.

use super::scene::Scene;
use crate::{
    fault::{Action, Legality},
    problem::Problem,
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    // Who says what is to fail the run has thought of it.
    if scene.spec.gate.is_some() {
        return Vec::new();
    }
    let told = scene.faults().filter(|(_, fault)| fault.gate.is_none() && fault.legality() == Legality::Never);
    // What refuses nothing is told elsewhere.
    let is_one = |action: &Action| !matches!(action, Action::Reject { status, .. } if !(400..=599).contains(status));
    told.filter(|(_, fault)| is_one(&fault.action))
        .map(|(path, fault)| {
            let at = path.key("do").key(fault.action.name());
            let problem = scene.at_key(&at, "no API server that keeps its contract does this").as_warning();
            problem.with_help(
                "what it breaks is told as robustness and fails no run; `gate: false` says that this is meant",
            )
        })
        .collect()
}
