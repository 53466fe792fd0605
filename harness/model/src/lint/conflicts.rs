//! Some requests can never conflict. Whether a patch carries a resourceVersion shows in the run only.

use super::scene::Scene;
use crate::{Verb, fault::Action, problem::Problem};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let can = |verb: &Verb| matches!(verb, Verb::Update | Verb::Patch | Verb::Delete);
    scene
        .faults()
        .filter(|(_, fault)| matches!(fault.action, Action::Conflict {}))
        .filter(|(_, fault)| !fault.matches.verbs().is_empty() && !fault.matches.verbs().iter().any(can))
        .map(|(path, _)| {
            let problem = scene.at_value(&path.key("match").key("verb"), "no request with this verb can conflict");
            problem.with_help(
                "`update`, `patch` or `delete`; for a refused create: `reject: {status: 409, reason: AlreadyExists}`",
            )
        })
        .collect()
}
