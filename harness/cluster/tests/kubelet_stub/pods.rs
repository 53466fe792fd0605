//! Single pods: life, death, and what is done to them on purpose.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    api::{DeleteParams, ListParams, Patch, PatchParams, WatchParams},
    core::WatchEvent,
};
use serde_json::json;
use spiritlevel_cluster::kubelet_stub::{KubeletRules, PodMatch, PodPhase, PodState};

use crate::{
    ground::{Corner, DEADLINE, Outcome, quick, until},
    objects::{condition, describe, in_phase, is_ready, pod, restarts},
};

pub(crate) async fn versions(corner: &Corner<'_>) -> Outcome {
    let pods = corner.api::<Pod>();
    let start = pods.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    let watch = pods.watch(&WatchParams::default().disable_bookmarks(), &start).await?;
    corner.create(pod("one", "Always")).await?;
    corner.ready("one").await?;
    pods.delete("one", &DeleteParams::default()).await?;
    let ends = |event: &WatchEvent<Pod>| matches!(event, WatchEvent::Deleted(_));
    let mut seen = Vec::new();
    let mut watch = watch.boxed();
    while let Some(event) = tokio::time::timeout(DEADLINE, watch.try_next()).await?? {
        let last = ends(&event);
        seen.push(match event {
            WatchEvent::Added(pod) => format!("added {}", describe(&pod)),
            WatchEvent::Modified(pod) => format!("modified {}", describe(&pod)),
            WatchEvent::Deleted(_) => "deleted".to_owned(),
            other => format!("{other:?}"),
        });
        if last {
            break;
        }
    }
    // The kubelet's DELETE makes two versions: the API server first notes that no grace period is left.
    let want = [
        "added Pending",
        "modified Pending bound",
        "modified Running bound ready",
        "modified Running bound ready deleting in 30 s",
        "modified Succeeded bound deleting in 30 s",
        "modified Succeeded bound deleting in 0 s",
        "deleted",
    ];
    assert_eq!(seen, want);
    Ok(())
}

pub(crate) async fn grace(corner: &Corner<'_>) -> Outcome {
    let slow = PodMatch { stop_after: Some(Duration::from_secs(3600)), ..PodMatch::default() };
    corner.rules(KubeletRules { matches: vec![slow], ..quick() });
    corner.create(pod("slow", "Always")).await?;
    let mut held = pod("held", "Always");
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    corner.create(held).await?;
    corner.ready("slow").await?;
    corner.ready("held").await?;
    let pods = corner.api::<Pod>();
    let one_second = DeleteParams { grace_period_seconds: Some(1), ..DeleteParams::default() };
    let began = Instant::now();
    pods.delete("slow", &one_second).await?;
    pods.delete("held", &one_second).await?;
    until(&corner.ground.stub, "a grace period runs", |stub| !stub.busy(&corner.namespace).is_empty()).await?;
    corner.gone::<Pod>("slow").await?;
    assert!(began.elapsed() >= Duration::from_secs(1), "removed after {:?}", began.elapsed());
    corner
        .wait("held", |pod: Option<&Pod>| pod.is_some_and(|pod| pod.metadata.deletion_grace_period_seconds == Some(0)))
        .await?;
    corner.idle().await?;
    corner.patch::<Pod>("held", json!({"metadata": {"finalizers": null}})).await?;
    corner.gone::<Pod>("held").await
}

pub(crate) async fn kill(corner: &Corner<'_>) -> Outcome {
    corner.rules(KubeletRules { restart_after: Duration::from_secs(3600), ..quick() });
    corner.create(pod("always", "Always")).await?;
    corner.create(pod("never", "Never")).await?;
    corner.ready("always").await?;
    corner.ready("never").await?;
    assert!(corner.ground.stub.kill_pod(&corner.namespace, "absent").is_err());
    until(&corner.ground.stub, "it runs", |stub| stub.kill_pod(&corner.namespace, "never").is_ok()).await?;
    corner.wait("never", in_phase("Failed")).await?;
    until(&corner.ground.stub, "it runs", |stub| stub.kill_pod(&corner.namespace, "always").is_ok()).await?;
    corner.wait("always", |pod: Option<&Pod>| !is_ready(pod) && restarts(pod) == 0).await?;
    assert!(!corner.ground.stub.busy(&corner.namespace).is_empty(), "a restart is due");
    corner.rules(quick());
    corner.wait("always", |pod: Option<&Pod>| is_ready(pod) && restarts(pod) == 1).await?;
    corner.idle().await
}

pub(crate) async fn set_pod(corner: &Corner<'_>) -> Outcome {
    corner.rules(quick());
    let stub = &corner.ground.stub;
    let set = |name: &str, state| stub.set_pod(&corner.namespace, name, state);
    let clear = |name: &str| stub.clear_pod(&corner.namespace, name);

    set("a", PodState::Phase(PodPhase::Pending));
    corner.create(pod("a", "Always")).await?;
    corner
        .wait("a", |pod: Option<&Pod>| condition(pod, "PodScheduled").is_some_and(|(status, _)| status == "False"))
        .await?;
    corner.idle().await?;
    clear("a");
    corner.ready("a").await?;

    set("a", PodState::NotReady);
    corner.wait("a", |pod: Option<&Pod>| !is_ready(pod)).await?;
    corner.idle().await?;
    clear("a");
    corner.ready("a").await?;

    set("a", PodState::Exited { code: 2 });
    let crashes = |pod: Option<&Pod>| {
        let status = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref()?.first().cloned());
        let waiting = status.and_then(|status| status.state?.waiting?.reason);
        waiting.as_deref() == Some("CrashLoopBackOff")
    };
    corner.wait("a", crashes).await?;
    corner.idle().await?;
    clear("a");
    corner.ready("a").await?;

    set("a", PodState::Evicted);
    let evicted = |pod: Option<&Pod>| pod.and_then(|pod| pod.status.as_ref()?.reason.as_deref()) == Some("Evicted");
    corner.wait("a", evicted).await?;
    corner.idle().await?;
    corner.api::<Pod>().delete("a", &DeleteParams::default()).await?;
    corner.gone::<Pod>("a").await?;
    // An end was of one pod: the next of that name lives.
    corner.create(pod("a", "Always")).await?;
    corner.ready("a").await
}

pub(crate) async fn gates(corner: &Corner<'_>) -> Outcome {
    corner.rules(quick());
    let mut gated = pod("gated", "Always");
    let spec = gated.spec.as_mut().ok_or("a pod has a spec")?;
    spec.scheduling_gates = Some(serde_json::from_value(json!([{"name": "example.com/wait"}]))?);
    spec.readiness_gates = Some(serde_json::from_value(json!([{"conditionType": "example.com/served"}]))?);
    corner.create(gated).await?;
    corner
        .wait("gated", |pod: Option<&Pod>| condition(pod, "PodScheduled").is_some_and(|(status, _)| status == "False"))
        .await?;
    corner.idle().await?;
    corner.patch::<Pod>("gated", json!({"spec": {"schedulingGates": []}})).await?;
    corner
        .wait("gated", |pod: Option<&Pod>| {
            condition(pod, "ContainersReady").is_some_and(|(status, _)| status == "True")
        })
        .await?;
    corner.idle().await?;
    let pods = corner.api::<Pod>();
    assert!(!is_ready(Some(&pods.get("gated").await?)), "the readiness gate is closed");
    let served = json!({"status": {"conditions": [{"type": "example.com/served", "status": "True"}]}});
    pods.patch_status("gated", &PatchParams::default(), &Patch::Strategic(served)).await?;
    corner.ready("gated").await?;
    let ready = pods.get("gated").await?.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = ready.into_iter().find(|condition| condition.type_ == "Ready").ok_or("a Ready condition")?;
    assert_eq!((ready.reason, ready.message), (None, None), "nothing is left of the time before");
    Ok(())
}
