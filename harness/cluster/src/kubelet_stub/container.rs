//! Container statuses: what runs, what has ended, and how often it was started.

use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, PodSpec,
    },
    jiff::Timestamp,
};
use sha2::{Digest, Sha256};

use super::conditions::Readiness;

/// What becomes of all containers of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// They run.
    Running(Readiness),
    /// They have exited.
    Terminated {
        /// Their exit code.
        code: i32,
    },
    /// They exit again and again.
    CrashLoop {
        /// Their exit code.
        code: i32,
    },
}

/// The statuses of ordinary containers, in the order of the spec.
pub(super) fn statuses(
    containers: &[Container],
    before: Option<&[ContainerStatus]>,
    fate: Fate,
    pod: &str,
    now: Timestamp,
) -> Vec<ContainerStatus> {
    containers.iter().map(|container| status(container, find(before, &container.name), fate, pod, now)).collect()
}

/// The statuses of init containers: done once and for all, unless they are sidecars (`restartPolicy: Always`).
pub(super) fn init_statuses(
    spec: &PodSpec,
    before: Option<&[ContainerStatus]>,
    fate: Fate,
    pod: &str,
    now: Timestamp,
) -> Option<Vec<ContainerStatus>> {
    let containers = spec.init_containers.as_deref().filter(|all| !all.is_empty())?;
    let one = |container: &Container| {
        let previous = find(before, &container.name);
        if container.restart_policy.as_deref() == Some("Always") {
            return status(container, previous, fate, pod, now);
        }
        let done = Fate::Terminated { code: 0 };
        // The kubelet shows a completed init container as ready and not started.
        ContainerStatus { ready: true, ..status(container, previous, done, pod, now) }
    };
    Some(containers.iter().map(one).collect())
}

fn find<'a>(statuses: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerStatus> {
    statuses.unwrap_or_default().iter().find(|status| status.name == name)
}

fn status(
    container: &Container,
    before: Option<&ContainerStatus>,
    fate: Fate,
    pod: &str,
    now: Timestamp,
) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    let mut status = before.cloned().unwrap_or_else(|| ContainerStatus {
        name: container.name.clone(),
        image: image.clone(),
        ..ContainerStatus::default()
    });
    let state = status.state.clone().unwrap_or_default();
    match fate {
        Fate::Running(readiness) => {
            if state.running.is_none() || status.image != image {
                if before.is_some() {
                    status.restart_count += 1;
                }
                if state.running.is_some() {
                    status.last_state = Some(terminated(&status, 0, now));
                } else if state.terminated.is_some() {
                    status.last_state = Some(state);
                }
                status.state = Some(ContainerState {
                    running: Some(ContainerStateRunning { started_at: Some(now.into()) }),
                    ..ContainerState::default()
                });
                status.image = image;
                status.container_id = Some(container_id(pod, &status));
            }
            status.ready = readiness == Readiness::Ready;
            status.started = Some(true);
        }
        Fate::Terminated { code } => {
            if state.terminated.is_none() {
                if status.container_id.is_none() {
                    status.container_id = Some(container_id(pod, &status));
                }
                status.state = Some(terminated(&status, code, now));
            }
            status.ready = false;
            status.started = Some(false);
        }
        Fate::CrashLoop { code } => {
            if state.waiting.is_none() {
                let end = if state.terminated.is_some() { state } else { terminated(&status, code, now) };
                status.restart_count += 1;
                status.last_state = Some(end);
                status.state = Some(ContainerState {
                    waiting: Some(ContainerStateWaiting {
                        reason: Some("CrashLoopBackOff".to_owned()),
                        message: Some(format!("back-off restarting failed container={}", container.name)),
                    }),
                    ..ContainerState::default()
                });
            }
            status.ready = false;
            status.started = Some(false);
        }
    }
    status.image_id = format!("{}@sha256:{}", status.image, digest(&[&status.image]));
    status
}

fn terminated(status: &ContainerStatus, code: i32, now: Timestamp) -> ContainerState {
    let started = status.state.as_ref().and_then(|state| state.running.as_ref()?.started_at.clone());
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: code,
            reason: Some(if code == 0 { "Completed" } else { "Error" }.to_owned()),
            started_at: Some(started.unwrap_or_else(|| now.into())),
            finished_at: Some(now.into()),
            container_id: status.container_id.clone(),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

/// Another one for every start, the same for the same start: a stub that begins anew reports no change.
fn container_id(pod: &str, status: &ContainerStatus) -> String {
    format!("spiritlevel://{}", digest(&[pod, &status.name, &status.restart_count.to_string()]))
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hex::encode(hash.finalize())
}
