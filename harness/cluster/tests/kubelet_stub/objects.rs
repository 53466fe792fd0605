//! The objects of the trials, and what is asked of them.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod},
};
use serde_json::{Value, json};

pub(crate) fn pod(name: &str, restart_policy: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": restart_policy,
            "initContainers": [{"name": "init", "image": "example/init:1"}],
            "containers": [{"name": "main", "image": "example/main:1"}],
        },
    });
    serde_json::from_value(pod).expect("the literal is a Pod")
}

pub(crate) fn pod_with_claim(name: &str, claim: &str) -> Pod {
    let mut pod = pod(name, "Always");
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    pod.spec.as_mut().expect("it has one").volumes =
        serde_json::from_value(volumes).expect("the literal is a list of volumes");
    pod
}

pub(crate) fn template(app: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": format!("example/{app}:1")}]},
    })
}

pub(crate) fn claim(name: &str, class: Option<&str>) -> PersistentVolumeClaim {
    let claim = json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    serde_json::from_value(claim).expect("the literal is a claim")
}

pub(crate) fn stateful_set_of(replicas: i32) -> StatefulSet {
    let set = json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template("db"),
            "volumeClaimTemplates": [claim("data", None)],
        },
    });
    serde_json::from_value(set).expect("the literal is a StatefulSet")
}

pub(crate) fn job(name: &str, fails: &str, restart_policy: &str) -> Job {
    let job = json!({
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 1,
            "template": {
                "metadata": {"labels": {"fails": fails}},
                "spec": {
                    "restartPolicy": restart_policy,
                    "containers": [{"name": "main", "image": "example/main:1"}],
                },
            },
        },
    });
    serde_json::from_value(job).expect("the literal is a Job")
}

pub(crate) fn bound(claim: Option<&PersistentVolumeClaim>) -> bool {
    claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some("Bound")
}

pub(crate) fn in_phase(phase: &'static str) -> impl Fn(Option<&Pod>) -> bool {
    move |pod| pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some(phase)
}

pub(crate) fn condition<'a>(pod: Option<&'a Pod>, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = pod?.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((&found.status, found.message.as_deref().unwrap_or_default()))
}

pub(crate) fn is_ready(pod: Option<&Pod>) -> bool {
    condition(pod, "Ready").is_some_and(|(status, _)| status == "True")
}

pub(crate) fn restarts(pod: Option<&Pod>) -> i32 {
    let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
    statuses.map_or(0, |all| all.iter().map(|status| status.restart_count).sum())
}

/// A version of a pod in a line.
pub(crate) fn describe(pod: &Pod) -> String {
    let mut text = pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
    if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) {
        text.push_str(" bound");
    }
    if is_ready(Some(pod)) {
        text.push_str(" ready");
    }
    match pod.metadata.deletion_grace_period_seconds {
        Some(grace) => format!("{text} deleting in {grace} s"),
        None => text,
    }
}
