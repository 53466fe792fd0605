//! Tables: a pod, what surrounds it, and the action that follows.

use std::time::Duration;

use expect_test::{Expect, expect};
use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use serde_json::{Value, json};

use super::{Claim, Moment, Stage, Standing, next};
use crate::kubelet_stub::{
    action::{Action, Write},
    rules::{Completion, KubeletRules, PodMatch, PodPhase, PodState},
    status::Surroundings,
};

// === scheduling ===

#[test]
fn a_pod_without_a_node_is_bound() {
    Case::new(unscheduled()).check(expect!["bind uid-1"]);
}

#[test]
fn a_gated_pod_is_left_alone() {
    let mut pod = unscheduled();
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    Case::new(pod).check(expect!["rest"]);
}

#[test]
fn a_deleted_pod_is_not_bound() {
    let mut pod = unscheduled();
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    Case::new(pod).check(expect!["rest"]);
}

#[test]
fn a_pod_of_another_node_is_left_alone() {
    let mut pod = bound();
    pod["spec"]["nodeName"] = json!("elsewhere");
    Case::new(pod).after(10_000).check(expect!["rest"]);
}

#[test]
fn claims_come_first() {
    let with = |standing| Case::new(unscheduled()).claim("data", standing);
    with(Standing::Bound).check(expect!["bind uid-1"]);
    with(Standing::Binding).after(60_000).check(expect!["await: waits for claim data to be bound"]);
    with(Standing::NeedsNode).check(expect![[r#"select node for data {"metadata":{"resourceVersion":"7","annotations":{"volume.kubernetes.io/selected-node":"spiritlevel-node"}}}"#]]);
    // It may only be late.
    with(Standing::Missing).after(100).check(expect!["wait 400 ms: looks for claim data"]);
    with(Standing::Missing).after(500).check(expect![[r#"
        status (to be called unschedulable)
          conditions: PodScheduled=False Unschedulable (0/1 nodes are available: persistentvolumeclaim "data" not found.)"#]]);
    with(Standing::Deleting).after(500).check(expect![[r#"
        status (to be called unschedulable)
          conditions: PodScheduled=False Unschedulable (0/1 nodes are available: persistentvolumeclaim "data" is being deleted.)"#]]);
    with(Standing::Unbound).after(500).check(expect![[r"
        status (to be called unschedulable)
          conditions: PodScheduled=False Unschedulable (0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.)"]]);
}

#[test]
fn stuck_pending_is_said_once() {
    let case = Case::new(unscheduled()).state(PodState::Phase(PodPhase::Pending));
    case.check(expect![[r"
        status (to be called unschedulable)
          conditions: PodScheduled=False Unschedulable (0/1 nodes are available: 1 node(s) held back by a kubelet rule.)"]]);
    case.applied().check(expect!["rest"]);
}

// === starting ===

#[test]
fn a_bound_pod_becomes_ready_after_its_time() {
    Case::new(bound()).after(150).check(expect!["wait 50 ms: starting"]);
    Case::new(bound()).after(200).check(expect![[r#"
        status (to be started)
          conditions: PodReadyToStartContainers=True, Initialized=True, Ready=True, ContainersReady=True
          containerStatuses: main running ready restarts 0
          hostIP: "10.1.0.1"
          hostIPs: [{"ip":"10.1.0.1"}]
          phase: "Running"
          podIP: "10.1.0.9"
          podIPs: [{"ip":"10.1.0.9"}]
          startTime: "2026-11-30T18:00:00Z""#]]);
}

#[test]
fn what_has_been_written_is_not_written_again() {
    Case::new(bound()).after(200).applied().check(expect!["rest"]);
}

#[test]
fn init_containers_have_completed_and_sidecars_run() {
    let mut pod = bound();
    pod["spec"]["initContainers"] = json!([
        {"name": "prepare", "image": "example/prepare"},
        {"name": "proxy", "image": "example/proxy", "restartPolicy": "Always"},
    ]);
    Case::new(pod).after(200).check_field(
        "initContainerStatuses",
        expect!["prepare exited 0 ready restarts 0, proxy running ready restarts 0"],
    );
}

#[test]
fn a_host_network_pod_has_the_nodes_address() {
    let mut pod = bound();
    pod["spec"]["hostNetwork"] = json!(true);
    Case::new(pod).after(200).check_field("podIP", expect![[r#""10.1.0.1""#]]);
}

#[test]
fn the_generation_is_reported() {
    let mut pod = bound();
    pod["metadata"]["generation"] = json!(1);
    let running = Case::new(pod).after(200).applied();
    running.check(expect!["rest"]);
    running.with("/metadata/generation", json!(2)).check(expect![[r"
        status (to change its state)
          observedGeneration: 2"]]);
}

#[test]
fn a_new_image_restarts_the_container() {
    running()
        .with("/spec/containers/0/image", json!("example/main:2"))
        .check_field("containerStatuses", expect!["main running ready restarts 1 last exited 0"]);
}

#[test]
fn a_closed_readiness_gate_keeps_ready_false() {
    let mut pod = bound();
    pod["spec"]["readinessGates"] = json!([{"conditionType": "example.com/served"}]);
    let closed = Case::new(pod).after(200);
    closed.check_field("conditions", expect![[r#"PodReadyToStartContainers=True, Initialized=True, Ready=False ReadinessGatesNotMet ([corresponding condition of pod readiness gate "example.com/served" does not exist.]), ContainersReady=True"#]]);
    let mut open = closed.applied();
    open.pod["status"]["conditions"]
        .as_array_mut()
        .expect("it is a list")
        .push(json!({"type": "example.com/served", "status": "True"}));
    open.check(expect![[r"
        status (to change its state)
          conditions: Ready=True -reason -message"]]);
}

// === rules and states ===

#[test]
fn the_first_matching_exception_decides() {
    let exception = |labels: &[(&str, &str)], millis| PodMatch {
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ready_after: Some(Duration::from_millis(millis)),
        ..PodMatch::default()
    };
    let mut case = Case::new(bound());
    case.rules.matches = vec![
        exception(&[("role", "replica")], 1_000),
        exception(&[("role", "primary"), ("app", "db")], 2_000),
        exception(&[], 3_000),
    ];
    case.check(expect!["wait 3000 ms: starting"]);
    case.with("/metadata/labels", json!({"role": "primary", "app": "db"})).check(expect!["wait 2000 ms: starting"]);
}

#[test]
fn states_of_a_running_pod() {
    let set = |state| running().state(state);
    set(PodState::Ready).check(expect!["rest"]);
    set(PodState::NotReady).check(expect![[r"
        status (to change its state)
          conditions: Ready=False ContainersNotReady (containers with unready status: [main]), ContainersReady=False ContainersNotReady (containers with unready status: [main])
          containerStatuses: main running restarts 0"]]);
    set(PodState::Phase(PodPhase::Succeeded)).check(expect![[r#"
        status (to change its state)
          conditions: PodReadyToStartContainers=False, Ready=False PodCompleted, ContainersReady=False PodCompleted
          containerStatuses: main exited 0 restarts 0
          phase: "Succeeded""#]]);
    set(PodState::Phase(PodPhase::Failed)).check(expect![[r#"
        status (to change its state)
          conditions: PodReadyToStartContainers=False, Ready=False PodFailed, ContainersReady=False PodFailed
          containerStatuses: main exited 1 restarts 0
          phase: "Failed""#]]);
    set(PodState::Evicted).check(expect![[r#"
        status (to change its state)
          conditions: PodReadyToStartContainers=False, Ready=False PodFailed, ContainersReady=False PodFailed, DisruptionTarget=True TerminationByKubelet (The node was low on resource: memory.)
          containerStatuses: main exited 137 restarts 0
          message: "The node was low on resource: memory."
          phase: "Failed"
          reason: "Evicted""#]]);
}

#[test]
fn exit_codes_mean_what_the_restart_policy_makes_of_them() {
    let exits =
        |policy: &str, code| running().with("/spec/restartPolicy", json!(policy)).state(PodState::Exited { code });
    exits("Never", 0).check_field("phase", expect![[r#""Succeeded""#]]);
    exits("Never", 2).check_field("phase", expect![[r#""Failed""#]]);
    exits("OnFailure", 0).check_field("phase", expect![[r#""Succeeded""#]]);
    let crashes = exits("Always", 2);
    crashes.check_field("containerStatuses", expect!["main waiting CrashLoopBackOff restarts 1 last exited 2"]);
    let held = crashes.applied().after(60_000);
    held.check(expect!["rest"]);
    held.clear().check_field("containerStatuses", expect!["main running ready restarts 2 last exited 2"]);
}

#[test]
fn an_ended_pod_stays_ended() {
    running().state(PodState::Evicted).applied().clear().after(60_000).check(expect!["rest"]);
}

// === completing and dying ===

#[test]
fn a_jobs_pod_completes() {
    let case = running().with("/spec/restartPolicy", json!("Never")).with("/metadata/ownerReferences", owner("Job"));
    case.clone().after(400).check(expect!["wait 600 ms: runs to completion"]);
    case.clone().after(1_000).check(expect![[r#"
        status (to complete)
          conditions: PodReadyToStartContainers=False, Ready=False PodCompleted, ContainersReady=False PodCompleted
          containerStatuses: main exited 0 restarts 0
          phase: "Succeeded""#]]);
    let mut fails = case.after(1_000);
    fails.rules.jobs.exit_code = 3;
    fails.check_field("phase", expect![[r#""Failed""#]]);
    let again = fails.with("/spec/restartPolicy", json!("OnFailure"));
    again.check_field("containerStatuses", expect!["main exited 3 restarts 0"]);
    again.applied().after(200).check_field("containerStatuses", expect!["main running ready restarts 1 last exited 3"]);
}

#[test]
fn only_jobs_complete_unless_a_rule_says_so() {
    let case = running().with("/spec/restartPolicy", json!("Never")).after(60_000);
    case.check(expect!["rest"]);
    case.clone().with("/metadata/ownerReferences", owner("ReplicaSet")).check(expect!["rest"]);
    case.clone()
        .with("/metadata/ownerReferences", owner("PyTorchJob"))
        .check_field("phase", expect![[r#""Succeeded""#]]);
    let mut rule = case;
    let completes = Completion { complete_after: Duration::from_secs(5), exit_code: 1 };
    rule.rules.matches = vec![PodMatch { completes: Some(completes), ..PodMatch::default() }];
    rule.check_field("phase", expect![[r#""Failed""#]]);
}

#[test]
fn a_killed_container_comes_back() {
    let killed = running().kill();
    killed.check(expect![[r"
        status (its container is to die)
          conditions: Ready=False ContainersNotReady (containers with unready status: [main]), ContainersReady=False ContainersNotReady (containers with unready status: [main])
          containerStatuses: main exited 137 restarts 0"]]);
    let down = killed.applied();
    down.clone().after(150).check(expect!["wait 50 ms: to be restarted"]);
    down.after(200).check(expect![[r"
        status (to be restarted)
          conditions: Ready=True -reason -message, ContainersReady=True -reason -message
          containerStatuses: main running ready restarts 1 last exited 137"]]);
    running().with("/spec/restartPolicy", json!("Never")).kill().check_field("phase", expect![[r#""Failed""#]]);
}

// === stopping ===

#[test]
fn a_deleted_pod_ends_and_then_goes() {
    let case = running()
        .with("/metadata/deletionTimestamp", json!("2026-11-30T18:00:30Z"))
        .with("/metadata/deletionGracePeriodSeconds", json!(30));
    case.clone().after(20).check(expect!["wait 30 ms: stopping within its grace period"]);
    let stopped = case.clone().after(50);
    stopped.check(expect![[r#"
        status (to be stopped)
          conditions: PodReadyToStartContainers=False, Ready=False PodCompleted, ContainersReady=False PodCompleted
          containerStatuses: main exited 0 restarts 0
          phase: "Succeeded""#]]);
    stopped.applied().after(50).check(expect!["delete uid-1"]);
    stopped.with("/metadata/deletionGracePeriodSeconds", json!(0)).check(expect!["rest"]);
    // Work that was cut short is not done.
    case.with("/spec/restartPolicy", json!("Never")).after(50).check_field("phase", expect![[r#""Failed""#]]);
}

#[test]
fn stopping_takes_the_grace_period_at_most() {
    let mut case = running()
        .with("/metadata/deletionTimestamp", json!("2026-11-30T18:00:02Z"))
        .with("/metadata/deletionGracePeriodSeconds", json!(2));
    case.rules.stop_after = Duration::from_secs(3600);
    case.after(0).check(expect!["wait 2000 ms: stopping within its grace period"]);
}

// === the table's frame ===

#[derive(Clone)]
struct Case {
    pod: Value,
    claims: Vec<Claim>,
    rules: KubeletRules,
    state: Option<PodState>,
    elapsed: Duration,
    killed: bool,
}

impl Case {
    fn new(pod: Value) -> Self {
        Self {
            pod,
            claims: Vec::new(),
            rules: KubeletRules::default(),
            state: None,
            elapsed: Duration::ZERO,
            killed: false,
        }
    }

    fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        self.pod.pointer_mut(parent).expect("the parent is there")[key] = value;
        self
    }

    fn claim(mut self, name: &str, standing: Standing) -> Self {
        self.claims.push(Claim { name: name.to_owned(), standing, resource_version: Some("7".to_owned()) });
        self
    }

    fn state(mut self, state: PodState) -> Self {
        self.state = Some(state);
        self
    }

    fn clear(mut self) -> Self {
        self.state = None;
        self
    }

    fn kill(mut self) -> Self {
        self.killed = true;
        self
    }

    fn after(mut self, millis: u64) -> Self {
        self.elapsed = Duration::from_millis(millis);
        self
    }

    fn action(&self) -> Action {
        let pod: Pod = serde_json::from_value(self.pod.clone()).expect("the case is a Pod");
        let mut outlook = self.rules.outlook(&pod);
        outlook.state = self.state.or(outlook.state);
        let around = Surroundings { now: now(), address: [10, 1, 0, 9].into() };
        next(&pod, &self.claims, &outlook, &Moment { elapsed: self.elapsed, killed: self.killed, around })
    }

    /// The pod after its status was written, at the start of its next stage.
    fn applied(&self) -> Self {
        let Action::Write(Write::PodStatus { patch, .. }) = self.action() else {
            panic!("no status to apply: {}", render(&self.action()))
        };
        let mut next = self.clone();
        let before = stage(&self.pod);
        for (key, value) in patch["status"].as_object().expect("the patch has a status") {
            let status = &mut next.pod["status"];
            match (key.as_str(), value.as_array()) {
                ("conditions", Some(new)) => {
                    let all = status["conditions"].as_array_mut().expect("every pod here has conditions");
                    for condition in new {
                        all.retain(|old| old["type"] != condition["type"]);
                        all.push(condition.clone());
                    }
                }
                _ => status[key] = value.clone(),
            }
        }
        if stage(&next.pod) != before {
            next.elapsed = Duration::ZERO;
        }
        next.killed = false;
        next
    }

    #[track_caller]
    fn check(&self, want: Expect) {
        want.assert_eq(&render(&self.action()));
    }

    #[track_caller]
    fn check_field(&self, field: &str, want: Expect) {
        let Action::Write(Write::PodStatus { patch, .. }) = self.action() else {
            panic!("no status: {}", render(&self.action()))
        };
        want.assert_eq(&render_field(field, &patch["status"][field]));
    }
}

fn stage(pod: &Value) -> Stage {
    Stage::of(&serde_json::from_value(pod.clone()).expect("the case is a Pod"))
}

fn unscheduled() -> Value {
    json!({
        "metadata": {"name": "pod", "namespace": "ns", "uid": "uid-1"},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "main", "image": "example/main:1"}]},
        "status": {"phase": "Pending", "conditions": []},
    })
}

fn bound() -> Value {
    let mut pod = unscheduled();
    pod["spec"]["nodeName"] = json!("spiritlevel-node");
    pod["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T17:59:00Z"}]);
    pod
}

fn running() -> Case {
    Case::new(bound()).after(200).applied()
}

fn owner(kind: &str) -> Value {
    json!([{"apiVersion": "example.com/v1", "kind": kind, "name": "owner", "uid": "uid-2", "controller": true}])
}

fn now() -> Timestamp {
    "2026-11-30T18:00:00Z".parse().expect("a valid time")
}

fn render(action: &Action) -> String {
    match action {
        Action::Rest => "rest".to_owned(),
        Action::Await(why) => format!("await: {why}"),
        Action::Wait(left, why) => format!("wait {} ms: {why}", left.as_millis()),
        Action::Write(Write::Bind { uid }) => format!("bind {uid}"),
        Action::Write(Write::DeletePod { uid }) => format!("delete {uid}"),
        Action::Write(Write::SelectNode { claim, patch }) => format!("select node for {claim} {patch}"),
        Action::Write(Write::PodStatus { patch, why }) => {
            assert_eq!(patch["metadata"]["uid"], "uid-1", "a patch is for one pod only");
            let fields = patch["status"].as_object().expect("the patch has a status");
            let mut lines: Vec<String> =
                fields.iter().map(|(key, value)| format!("\n  {key}: {}", render_field(key, value))).collect();
            lines.sort();
            format!("status ({why}){}", lines.concat())
        }
        other @ Action::Write(_) => format!("{other:?}"),
    }
}

fn render_field(key: &str, value: &Value) -> String {
    let each = |render: fn(&Value) -> String| {
        value.as_array().into_iter().flatten().map(render).collect::<Vec<_>>().join(", ")
    };
    match key {
        "conditions" => each(render_condition),
        "containerStatuses" | "initContainerStatuses" => each(render_container),
        _ => value.to_string(),
    }
}

fn render_condition(condition: &Value) -> String {
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    let mut line = format!("{}={}", text("type"), text("status"));
    for (key, open, close) in [("reason", "", ""), ("message", "(", ")")] {
        match condition.get(key) {
            Some(Value::Null) => line = format!("{line} -{key}"),
            Some(_) => line = format!("{line} {open}{}{close}", text(key)),
            None => {}
        }
    }
    line
}

fn render_container(container: &Value) -> String {
    let state = |state: &Value| {
        if let Some(code) = state.pointer("/terminated/exitCode") {
            format!("exited {code}")
        } else if let Some(reason) = state.pointer("/waiting/reason") {
            format!("waiting {}", reason.as_str().unwrap_or_default())
        } else {
            "running".to_owned()
        }
    };
    let ready = if container["ready"] == true { " ready" } else { "" };
    let last = container.get("lastState").map(|last| format!(" last {}", state(last))).unwrap_or_default();
    format!(
        "{} {}{ready} restarts {}{last}",
        container["name"].as_str().unwrap_or_default(),
        state(&container["state"]),
        container["restartCount"]
    )
}
