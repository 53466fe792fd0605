//! What the status should say: a pure function of what is seen, so that it can be compared with what it does say.

use kube::ResourceExt;

use crate::crd::{Condition, Phase, PostgresCluster, PostgresClusterStatus};
use crate::observed::{Instance, Observed, Role};

/// Something that the operator will not or cannot solve by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One CamelCase word.
    pub reason: &'static str,
    /// One sentence, the same as long as the problem is the same.
    pub message: String,
}

/// What the planner found out, beside the next step.
#[derive(Clone, Debug, Default)]
pub struct Situation {
    /// What needs a person.
    pub problems: Vec<Problem>,
    /// What solves itself in time, such as a pod that is still terminating.
    pub waiting: Vec<String>,
    /// Whether the planner has a step to take.
    pub busy: bool,
}

/// The status for what is seen.
pub fn status(cluster: &PostgresCluster, observed: &Observed, situation: &Situation) -> PostgresClusterStatus {
    let told = cluster.status.clone().unwrap_or_default();
    let instances = observed.instances(cluster);
    let ready: Vec<_> = instances.iter().filter(|i| i.ready && i.is_wanted(cluster)).collect();
    let primaries: Vec<_> = instances.iter().filter(|i| i.role == Some(Role::Primary)).collect();
    let wanted = cluster.spec.replicas as usize;

    let all_ready = ready.len() == wanted && ready.iter().all(|i| i.up_to_date) && instances.len() == wanted;
    let one_primary = primaries.len() == 1 && primaries[0].ready;
    let settled = !situation.busy && situation.waiting.is_empty();
    let is_ready = all_ready && one_primary && settled && situation.problems.is_empty();

    let members = members(cluster, &told, &instances);
    let lost: Vec<_> = members.iter().filter(|name| !ready.iter().any(|i| &i.name == *name)).cloned().collect();
    let degraded = degraded(&situation.problems, &lost);
    let phase = match (is_ready, &degraded) {
        (true, _) => Phase::Running,
        (false, Some(_)) => Phase::Degraded,
        (false, None) if instances.is_empty() => Phase::Pending,
        (false, None) => Phase::Provisioning,
    };

    let count = format!("{} of {wanted} instances are ready", ready.len());
    let ready_reason = match (is_ready, all_ready, one_primary) {
        (true, ..) => "AllReady",
        (false, false, _) => "InstancesNotReady",
        (false, true, false) => "NoPrimary",
        (false, true, true) => "ChildrenNotLevel",
    };
    let (progressing, progress_reason, progress) = match (cluster.spec.paused, is_ready) {
        (true, _) => (false, "Paused", "spec.paused is true, nothing is changed".to_owned()),
        (false, true) => (false, "Level", "everything is as the spec says".to_owned()),
        (false, false) if situation.waiting.is_empty() => (true, "Working", count.clone()),
        (false, false) => (true, "Waiting", format!("waiting for {}", situation.waiting.join(", "))),
    };
    let is_degraded = degraded.is_some();
    let (degraded_reason, trouble) = degraded.unwrap_or(("AsExpected", "nothing is lost or in the way".to_owned()));

    let conditions = Conditions { cluster, told: &told, now: observed.now.to_string() };
    PostgresClusterStatus {
        observed_generation: cluster.metadata.generation.unwrap_or_default(),
        phase,
        replicas: as_i32(instances.len()),
        ready_replicas: as_i32(ready.len()),
        initialized: observed.is_initialized(cluster),
        primary: primaries.first().map(|i| i.name.clone()),
        members,
        replacements: told.replacements.clone(),
        conditions: vec![
            conditions.condition("Ready", is_ready, ready_reason, count),
            conditions.condition("Progressing", progressing, progress_reason, progress),
            conditions.condition("Degraded", is_degraded, degraded_reason, trouble),
        ],
    }
}

/// Whether the status must change before anything else does: bad news first, good news last. Who reads Ready=True while
/// we are already taking something apart was lied to. That there is a database stands first of all: it keeps us from
/// making another.
pub fn must_come_first(told: Option<&PostgresClusterStatus>, truth: &PostgresClusterStatus) -> bool {
    let Some(told) = told else { return true };
    let too_rosy = told.is_true("Ready") && !truth.is_true("Ready");
    let unacknowledged = told.observed_generation != truth.observed_generation && !truth.is_true("Ready");
    too_rosy || unacknowledged || (truth.initialized && !told.initialized)
}

/// Members are those that have been ready once, as long as the spec wants them.
fn members(cluster: &PostgresCluster, told: &PostgresClusterStatus, instances: &[Instance]) -> Vec<String> {
    let name = cluster.name_any();
    (0..cluster.spec.replicas)
        .map(|ordinal| crate::children::instance_name(&name, ordinal))
        .filter(|pod| told.members.contains(pod) || instances.iter().any(|i| &i.name == pod && i.ready))
        .collect()
}

fn as_i32(instances: usize) -> i32 {
    i32::try_from(instances).expect("names hold ordinals of 32 bits")
}

fn degraded(problems: &[Problem], lost: &[String]) -> Option<(&'static str, String)> {
    if let Some(first) = problems.first() {
        let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
        return Some((first.reason, messages.join("; ")));
    }
    (!lost.is_empty()).then(|| ("InstanceDown", format!("not ready: {}", lost.join(", "))))
}

struct Conditions<'a> {
    cluster: &'a PostgresCluster,
    told: &'a PostgresClusterStatus,
    now: String,
}

impl Conditions<'_> {
    /// The transition time moves only when the status does: otherwise every look would be a write.
    fn condition(&self, type_: &str, value: bool, reason: &str, message: String) -> Condition {
        let status = if value { "True" } else { "False" };
        let before = self.told.conditions.iter().find(|c| c.type_ == type_ && c.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: self.cluster.metadata.generation.unwrap_or_default(),
            last_transition_time: before.map_or_else(|| self.now.clone(), |c| c.last_transition_time.clone()),
        }
    }
}
