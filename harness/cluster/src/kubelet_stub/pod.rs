//! Scheduler and kubelet as a pure function: the next action about one pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use serde_json::{Value, json};

use super::{
    action::{Action, Write},
    conditions::Readiness,
    node,
    rules::{Outlook, PodPhase, PodState},
    status::{self, Surroundings, Target},
};

/// The scheduler hears of claims by another watch than of pods: a claim that is missing may only be late. A pod is
/// called unschedulable after this time, not before.
const CLAIMS_MAY_BE_LATE: Duration = Duration::from_millis(500);

/// Where a pod is in its life, read off the object alone. Elapsed time is counted from the moment a stage was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No node yet. On binding: `Starting`.
    Unscheduled,
    /// Bound to our node, no container started. After `ready_after`: `Running`.
    Starting,
    /// Containers run, ready or not. When they exit: `Down`, or `Ended`.
    Running,
    /// Containers are dead and will be restarted. After `restart_after`: `Running`.
    Down,
    /// Deletion was requested. After `stop_after` the pod is removed.
    Stopping,
    /// Succeeded or Failed.
    Ended,
    /// Not ours: of another node, or removed as far as a kubelet removes it.
    Foreign,
}

/// A claim as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is no such claim.
    Missing,
    /// It is being deleted.
    Deleting,
    /// It has its volume.
    Bound,
    /// It will have one soon.
    Binding,
    /// It will have one when a pod has chosen a node.
    NeedsNode,
    /// Nobody will give it one.
    Unbound,
}

/// A claim that a pod mounts.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) standing: Standing,
    pub(super) resource_version: Option<String>,
}

/// The moment at which a pod is looked at.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    /// Since when the pod is in its stage.
    pub(super) elapsed: Duration,
    /// A container of the pod is to die now.
    pub(super) killed: bool,
    pub(super) around: Surroundings,
}

// === impl Stage ===

impl Stage {
    pub(super) fn of(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        let ended = matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"));
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        let mut containers = status.iter().flat_map(|status| status.container_statuses.iter().flatten()).peekable();
        if pod.metadata.deletion_timestamp.is_some() {
            // With no grace period left the API server itself removes the pod once its finalizers are gone.
            let grace = pod.metadata.deletion_grace_period_seconds;
            return if node == node::NAME && grace != Some(0) { Self::Stopping } else { Self::Foreign };
        }
        match node {
            "" if ended => Self::Foreign,
            "" => Self::Unscheduled,
            node::NAME if ended => Self::Ended,
            node::NAME if containers.peek().is_none() => Self::Starting,
            node::NAME => {
                let runs = |state: &k8s_openapi::api::core::v1::ContainerState| state.running.is_some();
                if containers.all(|container| container.state.as_ref().is_some_and(runs)) {
                    Self::Running
                } else {
                    Self::Down
                }
            }
            _ => Self::Foreign,
        }
    }
}

/// Names of the claims that a pod mounts, those of generic ephemeral volumes included.
pub(super) fn claim_names(pod: &Pod) -> Vec<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(source), _) => Some(source.claim_name.clone()),
            (None, Some(_)) => Some(format!("{name}-{}", volume.name)),
            (None, None) => None,
        })
        .collect()
}

/// The next action about `pod`, whose claims are `claims`.
pub(super) fn next(pod: &Pod, claims: &[Claim], outlook: &Outlook, moment: &Moment) -> Action {
    match Stage::of(pod) {
        Stage::Foreign | Stage::Ended => Action::Rest,
        Stage::Unscheduled => schedule(pod, claims, outlook, moment),
        Stage::Stopping => stop(pod, outlook, moment),
        Stage::Starting => start(pod, outlook, moment),
        Stage::Running => run(pod, outlook, moment),
        Stage::Down => restart(pod, outlook, moment),
    }
}

fn schedule(pod: &Pod, claims: &[Claim], outlook: &Outlook, moment: &Moment) -> Action {
    let spec = spec(pod);
    if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        return Action::Rest;
    }
    let refuse = |message: &str| match status::unschedulable(pod, message, moment.around.now) {
        Some(patch) => write_status(patch, "to be called unschedulable"),
        None => Action::Rest,
    };
    if outlook.state == Some(PodState::Phase(PodPhase::Pending)) {
        return refuse("0/1 nodes are available: 1 node(s) held back by a kubelet rule.");
    }
    for claim in claims {
        let message = match claim.standing {
            Standing::Bound => continue,
            Standing::Binding => return Action::Await(format!("waits for claim {} to be bound", claim.name)),
            Standing::NeedsNode => return Action::Write(select_node(claim)),
            Standing::Missing => {
                format!("0/1 nodes are available: persistentvolumeclaim \"{}\" not found.", claim.name)
            }
            Standing::Deleting => {
                format!("0/1 nodes are available: persistentvolumeclaim \"{}\" is being deleted.", claim.name)
            }
            Standing::Unbound => {
                "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.".to_owned()
            }
        };
        return match left(CLAIMS_MAY_BE_LATE, moment) {
            Some(left) => Action::Wait(left, format!("looks for claim {}", claim.name)),
            None => refuse(&message),
        };
    }
    Action::Write(Write::Bind { uid: uid(pod) })
}

fn start(pod: &Pod, outlook: &Outlook, moment: &Moment) -> Action {
    match outlook.state {
        Some(PodState::Phase(PodPhase::Pending)) => return Action::Rest,
        Some(PodState::Ready) => {}
        _ => {
            if let Some(left) = left(outlook.ready_after, moment) {
                return Action::Wait(left, "starting".to_owned());
            }
        }
    }
    become_(pod, wanted(pod, outlook), moment, "to be started")
}

fn run(pod: &Pod, outlook: &Outlook, moment: &Moment) -> Action {
    if moment.killed {
        return become_(pod, exit(pod, 137), moment, "its container is to die");
    }
    let target = wanted(pod, outlook);
    let action = become_(pod, target, moment, "to change its state");
    let (Action::Rest, Target::Running(_), Some(end)) = (&action, target, outlook.completes) else {
        return action;
    };
    match left(end.complete_after, moment) {
        Some(left) => Action::Wait(left, "runs to completion".to_owned()),
        None => become_(pod, exit(pod, end.exit_code), moment, "to complete"),
    }
}

fn restart(pod: &Pod, outlook: &Outlook, moment: &Moment) -> Action {
    let target = wanted(pod, outlook);
    if let (Target::Running(_), Some(left)) = (target, left(outlook.restart_after, moment)) {
        return Action::Wait(left, "to be restarted".to_owned());
    }
    become_(pod, target, moment, "to be restarted")
}

/// The containers end, then the object goes: since 1.27 a kubelet reports a terminal phase before it lets go of a pod,
/// and Jobs count by it.
fn stop(pod: &Pod, outlook: &Outlook, moment: &Moment) -> Action {
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
    let after = outlook.stop_after.min(Duration::from_secs(u64::try_from(grace).unwrap_or_default()));
    if let Some(left) = left(after, moment) {
        return Action::Wait(left, "stopping within its grace period".to_owned());
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        return Action::Write(Write::DeletePod { uid: uid(pod) });
    }
    // A server ends cleanly on SIGTERM; what was to complete did not, and must not count as done.
    let code = if restart_policy(pod) == "Always" { 0 } else { 143 };
    match become_(pod, Target::Ended { code }, moment, "to be stopped") {
        Action::Rest => Action::Write(Write::DeletePod { uid: uid(pod) }),
        action => action,
    }
}

/// Where a pod of our node belongs by its rules.
fn wanted(pod: &Pod, outlook: &Outlook) -> Target {
    match outlook.state {
        None | Some(PodState::Ready | PodState::Phase(PodPhase::Running | PodPhase::Pending)) => {
            Target::Running(Readiness::Ready)
        }
        Some(PodState::NotReady) => Target::Running(Readiness::NotReady),
        Some(PodState::Exited { code }) => match exit(pod, code) {
            Target::Down { code } => Target::CrashLoop { code },
            end => end,
        },
        Some(PodState::Evicted) => Target::Evicted,
        Some(PodState::Phase(PodPhase::Succeeded)) => Target::Ended { code: 0 },
        Some(PodState::Phase(PodPhase::Failed)) => Target::Ended { code: 1 },
    }
}

/// What the restart policy makes of containers that exit with `code`.
fn exit(pod: &Pod, code: i32) -> Target {
    match restart_policy(pod) {
        "Never" => Target::Ended { code },
        "OnFailure" if code == 0 => Target::Ended { code },
        _ => Target::Down { code },
    }
}

fn become_(pod: &Pod, target: Target, moment: &Moment, why: &str) -> Action {
    match status::patch(pod, target, &moment.around) {
        Some(patch) => write_status(patch, why),
        None => Action::Rest,
    }
}

fn write_status(patch: Value, why: &str) -> Action {
    Action::Write(Write::PodStatus { patch, why: why.to_owned() })
}

fn select_node(claim: &Claim) -> Write {
    let patch = json!({"metadata": {
        "resourceVersion": claim.resource_version,
        "annotations": {"volume.kubernetes.io/selected-node": node::NAME},
    }});
    Write::SelectNode { claim: claim.name.clone(), patch }
}

fn left(after: Duration, moment: &Moment) -> Option<Duration> {
    after.checked_sub(moment.elapsed).filter(|left| !left.is_zero())
}

fn spec(pod: &Pod) -> PodSpec {
    pod.spec.clone().unwrap_or_default()
}

fn restart_policy(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always")
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests;
