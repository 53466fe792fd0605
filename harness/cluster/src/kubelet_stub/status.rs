//! The pod status a kubelet would report, and the smallest patch that gets there.
//!
//! Built from the status before, so that a start time, a container id or a condition of somebody else stays what it
//! was. Where nothing differs there is no patch: every write changes something.

use std::net::Ipv4Addr;

use k8s_openapi::{
    api::core::v1::{HostIP, Pod, PodIP, PodSpec, PodStatus},
    jiff::Timestamp,
};
use serde_json::{Map, Value, json};

use super::{
    conditions::{self, Readiness},
    container::{self, Fate},
    node,
};

/// Where a pod is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// All containers run.
    Running(Readiness),
    /// All containers are dead and will be restarted.
    Down {
        /// Their exit code.
        code: i32,
    },
    /// All containers keep dying.
    CrashLoop {
        /// Their exit code.
        code: i32,
    },
    /// The pod's end: Succeeded at exit code 0, else Failed.
    Ended {
        /// Their exit code.
        code: i32,
    },
    /// The pod's end by node pressure.
    Evicted,
}

/// What is known besides the pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    /// Now, in whole seconds.
    pub(super) now: Timestamp,
    /// The address for the pod, if it has none yet.
    pub(super) address: Ipv4Addr,
}

/// The patch of `pods/status` that makes `pod` what `target` says; `None` where it is that already.
pub(super) fn patch(pod: &Pod, target: Target, around: &Surroundings) -> Option<Value> {
    let before = pod.status.clone().unwrap_or_default();
    let after = report(pod, &before, target, around);
    difference(pod, &before, &after)
}

/// The patch that says why a pod is not scheduled; `None` where the pod says so already.
pub(super) fn unschedulable(pod: &Pod, message: &str, now: Timestamp) -> Option<Value> {
    let before = pod.status.clone().unwrap_or_default();
    let mut after = before.clone();
    let condition = conditions::unschedulable(message, pod.metadata.generation);
    conditions::put(after.conditions.get_or_insert_default(), condition, now);
    difference(pod, &before, &after)
}

fn report(pod: &Pod, before: &PodStatus, target: Target, around: &Surroundings) -> PodStatus {
    let spec = pod.spec.clone().unwrap_or_default();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let (fate, phase) = match target {
        Target::Running(readiness) => (Fate::Running(readiness), "Running"),
        Target::Down { code } => (Fate::Terminated { code }, "Running"),
        Target::CrashLoop { code } => (Fate::CrashLoop { code }, "Running"),
        Target::Ended { code: 0 } => (Fate::Terminated { code: 0 }, "Succeeded"),
        Target::Ended { code } => (Fate::Terminated { code }, "Failed"),
        Target::Evicted => (Fate::Terminated { code: 137 }, "Failed"),
    };
    let mut after = before.clone();
    after.phase = Some(phase.to_owned());
    after.start_time.get_or_insert(around.now.into());
    after.observed_generation = pod.metadata.generation;
    after.host_ip = Some(node::ADDRESS.to_string());
    after.host_ips = Some(vec![HostIP { ip: node::ADDRESS.to_string() }]);
    let address = before.pod_ip.clone().unwrap_or_else(|| address(&spec, around));
    after.pod_ips = Some(vec![PodIP { ip: address.clone() }]);
    after.pod_ip = Some(address);
    after.init_container_statuses =
        container::init_statuses(&spec, before.init_container_statuses.as_deref(), fate, uid, around.now);
    after.container_statuses =
        Some(container::statuses(&spec.containers, before.container_statuses.as_deref(), fate, uid, around.now));
    if target == Target::Evicted {
        after.reason = Some("Evicted".to_owned());
        after.message = Some("The node was low on resource: memory.".to_owned());
    }
    for condition in conditions::of(pod, &after, target) {
        conditions::put(after.conditions.get_or_insert_default(), condition, around.now);
    }
    after
}

fn address(spec: &PodSpec, around: &Surroundings) -> String {
    if spec.host_network == Some(true) { node::ADDRESS.to_string() } else { around.address.to_string() }
}

/// A strategic merge patch: whole fields, and of the conditions (merged by type) only those that differ. The uid makes
/// it fail with a conflict on a later pod of the same name, as the kubelet's own patches do.
fn difference(pod: &Pod, before: &PodStatus, after: &PodStatus) -> Option<Value> {
    let (before, after) = (fields(before), fields(after));
    let mut status = Map::new();
    for (key, value) in after {
        if before.get(&key) == Some(&value) {
            continue;
        }
        let value = match (key.as_str(), value) {
            ("conditions", Value::Array(all)) => {
                let old = before.get("conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                Value::Array(all.into_iter().filter(|new| !old.contains(new)).map(|new| replacing(new, old)).collect())
            }
            (_, value) => value,
        };
        status.insert(key, value);
    }
    (!status.is_empty()).then(|| json!({"metadata": {"uid": pod.metadata.uid}, "status": status}))
}

/// A merged condition keeps the fields that the patch does not name: what is gone must be said.
fn replacing(mut new: Value, old: &[Value]) -> Value {
    let same = old.iter().find(|old| old["type"] == new["type"]);
    for field in ["reason", "message"] {
        if same.is_some_and(|old| old.get(field).is_some()) && new.get(field).is_none() {
            new[field] = Value::Null;
        }
    }
    new
}

fn fields(status: &PodStatus) -> Map<String, Value> {
    match serde_json::to_value(status).expect("a pod status has string keys only") {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
