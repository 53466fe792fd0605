//! Pod conditions as kubelet and scheduler set them (`pkg/kubelet/status/generate.go`).

use k8s_openapi::{
    api::core::v1::{Pod, PodCondition, PodStatus},
    jiff::Timestamp,
};

use super::status::Target;

/// Whether running containers are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// They are.
    Ready,
    /// They are not.
    NotReady,
}

/// The conditions of a bound pod with the containers of `status`.
pub(super) fn of(pod: &Pod, status: &PodStatus, target: Target) -> Vec<PodCondition> {
    let generation = pod.metadata.generation;
    let condition = |kind: &str, answer: Result<(), (&str, String)>| PodCondition {
        type_: kind.to_owned(),
        status: if answer.is_ok() { "True" } else { "False" }.to_owned(),
        reason: answer.as_ref().err().map(|(reason, _)| (*reason).to_owned()),
        message: answer.err().map(|(_, message)| message).filter(|message| !message.is_empty()),
        observed_generation: generation,
        ..PodCondition::default()
    };
    let ended = match status.phase.as_deref() {
        Some("Succeeded") => Some("PodCompleted"),
        Some("Failed") => Some("PodFailed"),
        _ => None,
    };
    let containers = match ended {
        Some(reason) => Err((reason, String::new())),
        None => containers_ready(status),
    };
    let ready = containers.clone().and_then(|()| gates_open(pod));
    let sandbox = if ended.is_some() { Err(("", String::new())) } else { Ok(()) };
    let mut conditions = vec![
        condition("PodReadyToStartContainers", sandbox),
        condition("Initialized", Ok(())),
        condition("Ready", ready),
        condition("ContainersReady", containers),
        condition("PodScheduled", Ok(())),
    ];
    if target == Target::Evicted {
        conditions.push(PodCondition {
            reason: Some("TerminationByKubelet".to_owned()),
            message: status.message.clone(),
            ..condition("DisruptionTarget", Ok(()))
        });
    }
    for condition in &mut conditions {
        condition.reason.take_if(|reason| reason.is_empty());
    }
    conditions
}

/// What the scheduler says of a pod that it cannot place.
pub(super) fn unschedulable(message: &str, generation: Option<i64>) -> PodCondition {
    PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(message.to_owned()),
        observed_generation: generation,
        ..PodCondition::default()
    }
}

/// Replaces the condition of the same type. The time of transition moves only with the status, and where nothing but
/// the observed generation is new the old condition stays.
pub(super) fn put(conditions: &mut Vec<PodCondition>, mut new: PodCondition, now: Timestamp) {
    new.last_transition_time = Some(now.into());
    match conditions.iter_mut().find(|old| old.type_ == new.type_) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time.clone_from(&old.last_transition_time);
                if old.reason == new.reason && old.message == new.message {
                    return;
                }
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

fn containers_ready(status: &PodStatus) -> Result<(), (&'static str, String)> {
    let unready: Vec<&str> = status
        .container_statuses
        .iter()
        .flatten()
        .filter(|container| !container.ready)
        .map(|container| container.name.as_str())
        .collect();
    if unready.is_empty() {
        Ok(())
    } else {
        Err(("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" "))))
    }
}

/// `spec.readinessGates`: conditions that others must set True before the pod is Ready.
fn gates_open(pod: &Pod) -> Result<(), (&'static str, String)> {
    let present: &[PodCondition] =
        pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let closed: Vec<String> = pod
        .spec
        .iter()
        .flat_map(|spec| spec.readiness_gates.iter().flatten())
        .filter_map(|gate| match present.iter().find(|condition| condition.type_ == gate.condition_type) {
            None => {
                Some(format!("corresponding condition of pod readiness gate {:?} does not exist.", gate.condition_type))
            }
            Some(found) if found.status == "True" => None,
            Some(found) => Some(format!(
                "the status of pod readiness gate {:?} is not \"True\", but {}",
                gate.condition_type, found.status
            )),
        })
        .collect();
    if closed.is_empty() { Ok(()) } else { Err(("ReadinessGatesNotMet", format!("[{}]", closed.join(", ")))) }
}
