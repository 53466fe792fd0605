//! Settling is known, not slept: nothing is predicted, in flight or held any more, and nothing was written for a window that
//! is long against the operator's own reactions.

use crate::{lane::Lane, recorder::Live, stage::Stage};
use serde_json::Value;
use spiritlevel_model::{
    Meta, Period,
    history::{Event, Phase, ReplyOutcome, Settled},
    operation::Ref,
    readiness,
    world::Live as Object,
};
use std::time::Duration;
use tokio::time::Instant;

/// The window never grows beyond this.
const LONGEST_WINDOW: Duration = Duration::from_secs(20);
/// How often time alone is looked at; every record is looked at as well.
const TICK: Duration = Duration::from_millis(100);

/// Records come in bursts; looking at the world once for each would cost more than what it tells.
const BREATH: Duration = Duration::from_millis(25);

/// What a settle phase waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Every subject is ready.
    Ready,
    /// Every subject is gone.
    Gone,
}

/// What is still going on.
#[derive(Default)]
struct Pending {
    ours: Vec<String>,
    operator: Vec<String>,
}

/// Waits until the world has settled or `limit` is over, and records which.
pub(crate) async fn settle(
    stage: &Stage,
    lane: &Lane,
    phase: Phase,
    goal: Goal,
    limit: Duration,
    quiet: Option<Period>,
) -> Settled {
    let begun = Instant::now();
    let base = quiet.map_or(Duration::from_secs(2), |p| p.0);
    let mut changes = stage.recorder.changes();
    let settled = loop {
        let (pending, converged, window, still) = look(stage, lane, goal, base);
        let done = converged && pending.ours.is_empty() && pending.operator.is_empty();
        if done && still >= window {
            break Settled { settled: true, converged, ..report(phase, begun, window) };
        }
        if begun.elapsed() >= limit {
            let mut why = pending.operator.clone();
            why.extend(pending.ours.iter().cloned());
            if done {
                why.push(format!("something is still written: the last change was {} ms ago", still.as_millis()));
            }
            // A world that never comes to rest, or never converges, is the operator's to answer for.
            let operator_pending = done || !pending.operator.is_empty() || (!converged && pending.ours.is_empty());
            break Settled { converged, pending: why, operator_pending, ..report(phase, begun, window) };
        }
        let nap = if done { window.saturating_sub(still).min(limit.saturating_sub(begun.elapsed())) } else { TICK };
        tokio::select! {
            _ = changes.changed() => tokio::time::sleep(BREATH).await,
            () = tokio::time::sleep(nap.max(Duration::from_millis(1))) => {}
        }
    };
    stage.recorder.record(Event::Settled(settled.clone()));
    settled
}

fn report(phase: Phase, begun: Instant, window: Duration) -> Settled {
    let ms = |d: Duration| (d.as_secs_f64() * 1000.0).round();
    Settled {
        phase,
        settled: false,
        converged: false,
        took_ms: ms(begun.elapsed()),
        window_ms: ms(window),
        pending: Vec::new(),
        operator_pending: false,
    }
}

/// What is pending, whether the goal is reached, the window, and how long nothing has changed.
fn look(stage: &Stage, lane: &Lane, goal: Goal, base: Duration) -> (Pending, bool, Duration, Duration) {
    let mut pending = Pending::default();
    if let Some(kubelet) = lane.kubelet() {
        pending.ours.extend(stage.namespaces().iter().flat_map(|n| kubelet.busy(n)));
    }
    for replica in stage.replicas() {
        let in_flight = replica.listener().in_flight();
        if in_flight > 0 {
            pending.operator.push(format!("{in_flight} requests of {} are in flight", replica.actor()));
        }
        if replica.is_wanted() && !replica.is_running() {
            pending.operator.push(format!("{} is not running", replica.actor()));
        }
    }
    let now = stage.recorder.now_ms();
    let live = stage.recorder.live();
    if lane.kubelet().is_none() {
        let pods = live.world.of_kind("v1", "Pod").filter(|l| owns(stage, l));
        pending.ours.extend(pods.filter_map(|l| unfinished(&l.object)));
    }
    for collection in live.world.predicted_collections() {
        let text = format!("garbage collection of {}", collection.object);
        match collection.finalizers.first() {
            None => pending.ours.push(text),
            Some(f) if is_built_in(f) => pending.ours.push(format!("{text}, which waits for finalizer {f}")),
            Some(f) => pending.operator.push(format!("{text}, which waits for finalizer {f}")),
        }
    }
    for object in live.world.live().filter(|l| owns(stage, l)) {
        if let Some(why) = readiness::not_current(&object.resource, &object.object) {
            pending.ours.push(format!("{} {}: {why}", object.resource, object.object.name().unwrap_or_default()));
        }
    }
    let converged = not_converged(stage, &live, goal, None).is_empty();
    let still = Duration::from_secs_f64(((now - live.last_change_ms.max(live.last_cause_ms)) / 1000.0).max(0.0));
    // Reactions are measured only when they matter.
    let window = if converged && still >= base { window(&live, base) } else { base };
    (pending, converged, window, still)
}

/// What the subjects (or the one that `only` names) still lack.
pub(crate) fn not_converged(stage: &Stage, live: &Live, goal: Goal, only: Option<&Ref>) -> Vec<String> {
    let subject = &stage.plan.suite.subject;
    let mut lacking = Vec::new();
    for object in live.world.of_kind(&subject.api_version, &subject.kind).filter(|l| owns(stage, l)) {
        let name = object.object.name().unwrap_or_default();
        if only.is_some_and(|r| r.name.as_deref().is_some_and(|n| n != name)) {
            continue;
        }
        match goal {
            Goal::Gone => lacking.push(format!("{} {name} is still there", subject.kind)),
            Goal::Ready if object.object.is_terminating() => {
                lacking.push(format!("{} {name} is terminating", subject.kind));
            }
            Goal::Ready => {
                lacking.extend(
                    readiness::not_ready(subject, &object.object).map(|why| format!("{} {name}: {why}", subject.kind)),
                );
            }
        }
    }
    lacking
}

fn owns(stage: &Stage, object: &Object) -> bool {
    object.object.namespace().is_some_and(|n| stage.namespaces().iter().any(|own| own == n))
}

/// What a kubelet has still to do for a pod. One that cannot succeed (no image, a crash loop) is as done as it will be.
fn unfinished(pod: &Value) -> Option<String> {
    let name = pod.name().unwrap_or_default();
    if pod.is_terminating() {
        return Some(format!("pod {name} is terminating"));
    }
    let status = &pod["status"];
    let containers = ["initContainerStatuses", "containerStatuses"];
    let mut waiting = containers.iter().filter_map(|c| status[*c].as_array()).flatten();
    let stuck = waiting.any(|c| {
        let reason = c["state"]["waiting"]["reason"].as_str();
        reason.is_some_and(|r| !matches!(r, "ContainerCreating" | "PodInitializing"))
    });
    let unschedulable = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "PodScheduled" && c["status"] == "False");
    let of_job = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten().any(|o| o["kind"] == "Job");
    match status["phase"].as_str().unwrap_or("Pending") {
        "Pending" if !stuck && !unschedulable => Some(format!("pod {name} is starting")),
        "Running" if of_job && !stuck => Some(format!("pod {name} of a Job is at work")),
        _ => None,
    }
}

fn is_built_in(finalizer: &str) -> bool {
    finalizer.starts_with("kubernetes.io/") || matches!(finalizer, "foregroundDeletion" | "orphan")
}

/// Three times the longest gap between an event that reached the operator and its reaction to it.
fn window(live: &Live, base: Duration) -> Duration {
    let gap = reaction_gap(live);
    Duration::from_secs_f64(gap * 3.0 / 1000.0).clamp(base, LONGEST_WINDOW.max(base))
}

/// In milliseconds. Gaps across a restart, a fault or a failed request are waits, not reactions.
fn reaction_gap(live: &Live) -> f64 {
    let mut longest = 0.0_f64;
    let mut heard = std::collections::BTreeMap::new();
    let mut watchers = std::collections::BTreeMap::new();
    let mut writers = std::collections::BTreeMap::new();
    for record in &live.records {
        match &record.event {
            Event::StreamOpened(s) => {
                watchers.insert(s.stream, s.actor.clone());
            }
            Event::Frame(f) => {
                if let Some(actor) = watchers.get(&f.stream) {
                    heard.insert(actor.clone(), record.at_ms);
                }
            }
            Event::Request(r) if r.actor.is_operator() && !r.info.stores_nothing() => {
                let lease = r.info.resource.as_ref().is_some_and(|k| k.resource == "leases" || k.resource == "events");
                if let Some(at) = heard.remove(&r.actor).filter(|_| !lease) {
                    writers.insert(r.id, record.at_ms - at);
                }
            }
            Event::Answer(a) => {
                if let Some(gap) = writers.remove(&a.id)
                    && a.status.is_some_and(|s| s < 300)
                {
                    longest = longest.max(gap);
                }
            }
            Event::Reply(r) if !matches!(r.outcome, ReplyOutcome::Delivered(0..=399)) => heard.clear(),
            Event::Process(_) | Event::Fault(_) => heard.clear(),
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_unfinished_until_its_kubelet_has_done_what_it_can() {
        let waiting = |reason: &str| json!([{"state": {"waiting": {"reason": reason}}}]);
        let job = json!([{"kind": "Job", "name": "j"}]);
        for (pod, busy) in [
            (json!({"status": {"phase": "Running"}}), false),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}), true),
            (json!({"status": {}}), true),
            (json!({"status": {"phase": "Pending", "containerStatuses": waiting("ContainerCreating")}}), true),
            (json!({"status": {"phase": "Pending", "containerStatuses": waiting("ErrImagePull")}}), false),
            (
                json!({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}}),
                false,
            ),
            (json!({"metadata": {"ownerReferences": job}, "status": {"phase": "Running"}}), true),
            (json!({"metadata": {"ownerReferences": job}, "status": {"phase": "Succeeded"}}), false),
            (
                json!({"metadata": {"ownerReferences": job},
                    "status": {"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff")}}),
                false,
            ),
        ] {
            assert_eq!(unfinished(&pod).is_some(), busy, "{pod}");
        }
    }
}
