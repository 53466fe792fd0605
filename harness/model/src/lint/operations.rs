//! Operations that say too little or too much to be done.

use super::scene::Scene;
use crate::{
    operation::{NodeRole, StepAction},
    problem::Problem,
};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for placed in &scene.operations {
        let action = placed.action();
        let mut one_of = |names: &[&str], given: &[bool]| {
            let count = given.iter().filter(|g| **g).count();
            let list = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            let said = match count {
                1 => return,
                0 => "nothing is said to work on",
                _ => "too much is said to work on",
            };
            problems.push(scene.at_key(&action, said).with_help(format!("exactly one of {list}")));
        };
        match &placed.operation.action {
            StepAction::Apply(m) | StepAction::Create(m) | StepAction::Patch(m) | StepAction::Update(m) => {
                one_of(&["file", "resource"], &[m.file.is_some(), m.resource.is_some()]);
            }
            StepAction::Delete(d) => one_of(&["ref", "file"], &[d.target.is_some(), d.file.is_some()]),
            StepAction::Assert(a) | StepAction::Error(a) | StepAction::Never(a) | StepAction::Always(a) => {
                one_of(&["file", "resource", "cel"], &[a.file.is_some(), a.resource.is_some(), a.cel.is_some()]);
            }
            StepAction::Heal(h) => one_of(&["fault", "all"], &[h.fault.is_some(), h.all]),
            StepAction::Drift(d) => {
                one_of(&["set", "delete", "stripOwners"], &[d.set.is_some(), d.delete, d.strip_owners]);
            }
            StepAction::SetPod(s) => {
                one_of(&["ready", "phase", "exitCode"], &[s.ready.is_some(), s.phase.is_some(), s.exit_code.is_some()]);
            }
            StepAction::Await(a) => {
                let any = !a.fired.is_empty()
                    || a.converged.is_some()
                    || a.settled.is_some()
                    || a.ready.is_some()
                    || a.gone.is_some()
                    || a.exchange.is_some();
                if !any {
                    let help = "at least one of `fired`, `converged`, `settled`, `ready`, `gone`, `exchange`";
                    problems.push(scene.at_key(&action, "nothing is said to wait for").with_help(help));
                } else if a.timeout.is_some() && placed.operation.timeout.is_some() {
                    let help = "leave one of them out";
                    problems.push(scene.at_key(&action, "a timeout inside and another beside").with_help(help));
                }
            }
            StepAction::Node(n) => {
                let requires = scene.spec.requires.unwrap_or_default();
                if !requires.real_pods {
                    let help = "add `requires: {realPods: true}`: where nodes are not real, the scenario is skipped";
                    problems.push(scene.at_key(&action, "`node` needs a real one").with_help(help));
                }
                if n.which == NodeRole::Worker && requires.nodes.is_none_or(|n| n < 2) {
                    let help = "add `requires: {realPods: true, nodes: 2}`";
                    problems.push(scene.at_key(&action, "there may be no worker").with_help(help));
                }
                if n.lasts.is_some() && !n.action.lasts() {
                    problems.push(scene.at_key(&action, "`restartRuntime` takes no time").with_help("leave out `for`"));
                }
            }
            StepAction::Load(l) => {
                one_of(&["create", "patch"], &[l.create.is_some(), l.patch.is_some()]);
            }
            StepAction::Restore(r) if r.bump_revision.is_some() != r.mark_compacted => {
                let help = "both, as after a disaster; or none, for a store that breaks its contract";
                let message = "`bumpRevision` and `markCompacted` go together";
                problems.push(scene.at_key(&action, message).with_help(help));
            }
            StepAction::Revoke(r) if r.verbs.is_empty() || r.resources.is_empty() => {
                problems.push(scene.at_key(&action, "nothing is said to revoke").with_help("`verbs` and `resources`"));
            }
            StepAction::Webhook(w) if w.resources.is_empty() => {
                problems.push(scene.at_key(&action, "a webhook for nothing").with_help("name `resources`"));
            }
            StepAction::KillPod(k) if k.container.is_some() && !scene.spec.requires.unwrap_or_default().real_pods => {
                let help = "add `requires: {realPods: true}`: the kubelet stub ends all containers of a pod at once";
                problems
                    .push(scene.at_key(&action.key("container"), "one container of several is real").with_help(help));
            }
            StepAction::Script(s) if s.content.trim().is_empty() => {
                problems.push(scene.at_key(&action, "a script without content"));
            }
            StepAction::Command(c) if c.entrypoint.is_empty() => {
                problems.push(scene.at_key(&action, "a command without an entrypoint"));
            }
            _ => {}
        }
    }
    problems
}
