//! What a run wants of its pods: how fast they start, how its Jobs end, which pods misbehave.
//!
//! A suite's `kubelet:` section and a scenario's `setPod` step become these values; the stub looks up one
//! [`Outlook`] per pod and never sees the files.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;

/// The rules of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletRules {
    /// From binding to Ready; 200 ms.
    pub pod_ready_after: Duration,
    /// From the deletion request to the end of the containers, never longer than the pod's grace period; 50 ms.
    pub stop_after: Duration,
    /// From the death of a container to its restart; 200 ms.
    pub restart_after: Duration,
    /// How pods of Jobs end.
    pub jobs: Completion,
    /// Exceptions; the first whose labels all match decides, and what it leaves out comes from the fields above.
    pub matches: Vec<PodMatch>,
}

/// The end of a pod that runs to completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// From Running to the end of the containers; 1 s.
    pub complete_after: Duration,
    /// The containers' exit code; 0 is success.
    pub exit_code: i32,
}

/// An exception for the pods that carry all of `labels`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodMatch {
    /// Labels that a pod must have, all of them; none means every pod.
    pub labels: BTreeMap<String, String>,
    /// Overrides [`KubeletRules::pod_ready_after`].
    pub ready_after: Option<Duration>,
    /// Overrides [`KubeletRules::stop_after`].
    pub stop_after: Option<Duration>,
    /// The pods run to completion, whoever owns them; without it only pods of Jobs do.
    pub completes: Option<Completion>,
    /// The pods are in this state for as long as the rules hold.
    pub state: Option<PodState>,
}

/// What a pod is made to be, by a rule or by a `setPod` step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodState {
    /// Running, and not Ready.
    NotReady,
    /// Running and Ready, at once.
    Ready,
    /// Its containers have exited. With `restartPolicy: Never` (and `OnFailure` at code 0) that ends the pod; otherwise
    /// it is in CrashLoopBackOff until the state is lifted.
    Exited {
        /// The exit code of every container.
        code: i32,
    },
    /// Failed with reason `Evicted`, as a node under pressure does it.
    Evicted,
    /// In this phase, whatever its restart policy says.
    Phase(PodPhase),
}

/// `status.phase`, as far as a rule can ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// Never scheduled, or, if bound already, never started.
    Pending,
    /// As without the rule.
    Running,
    /// Ended with exit code 0.
    Succeeded,
    /// Ended with exit code 1.
    Failed,
}

/// The rules as they apply to one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outlook {
    pub(crate) ready_after: Duration,
    pub(crate) stop_after: Duration,
    pub(crate) restart_after: Duration,
    pub(crate) completes: Option<Completion>,
    pub(crate) state: Option<PodState>,
}

// === impl PodState ===

impl PodState {
    /// Whether the state is the end of the pod: such a one belongs to a single pod, not to the next of the same name.
    pub(crate) fn ends_pod(self) -> bool {
        matches!(self, Self::Exited { .. } | Self::Evicted | Self::Phase(PodPhase::Succeeded | PodPhase::Failed))
    }
}

// === impl Completion ===

impl Default for Completion {
    fn default() -> Self {
        Self { complete_after: Duration::from_secs(1), exit_code: 0 }
    }
}

// === impl KubeletRules ===

impl Default for KubeletRules {
    fn default() -> Self {
        Self {
            pod_ready_after: Duration::from_millis(200),
            stop_after: Duration::from_millis(50),
            restart_after: Duration::from_millis(200),
            jobs: Completion::default(),
            matches: Vec::new(),
        }
    }
}

impl KubeletRules {
    /// What these rules mean for `pod`.
    pub(crate) fn outlook(&self, pod: &Pod) -> Outlook {
        let exception = self.matches.iter().find(|rule| rule.covers(pod));
        Outlook {
            ready_after: exception.and_then(|rule| rule.ready_after).unwrap_or(self.pod_ready_after),
            stop_after: exception.and_then(|rule| rule.stop_after).unwrap_or(self.stop_after),
            restart_after: self.restart_after,
            completes: exception.and_then(|rule| rule.completes).or_else(|| belongs_to_job(pod).then_some(self.jobs)),
            state: exception.and_then(|rule| rule.state),
        }
    }
}

// === impl PodMatch ===

impl PodMatch {
    fn covers(&self, pod: &Pod) -> bool {
        let labels = pod.metadata.labels.as_ref();
        self.labels.iter().all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value))
    }
}

/// Whether the pod's controller is a Job of any group (`Job`, `PyTorchJob`, …) and lets its containers end.
fn belongs_to_job(pod: &Pod) -> bool {
    let owned = pod
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.controller == Some(true) && owner.kind.ends_with("Job"));
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    owned && matches!(policy, Some("Never" | "OnFailure"))
}
