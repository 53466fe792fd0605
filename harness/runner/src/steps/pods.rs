//! `killPod`, `setPod`, `drift`.

use super::play::{Failure, Play};
use crate::{api, arrange::phase, harness_writes::merge_patch};
use serde_json::{Value, json};
use spiritlevel_cluster::{
    Nodes,
    kubelet_stub::{KubeletStub, PodState},
};
use spiritlevel_model::{
    Meta,
    operation::{Drift, KillPod, Ref, SetPod},
};
use std::time::Duration;
use tokio::time::Instant;

/// As long as a disruption budget may refuse: the controller that counts for it runs behind.
const EVICTION: Duration = Duration::from_secs(30);
/// Between two tries.
const LOOK: Duration = Duration::from_millis(200);

/// Until the kubelet stub has heard of a pod that runs.
const HEARS: Duration = Duration::from_secs(10);

impl Play<'_> {
    fn pods(&self, target: &Ref) -> Result<Vec<Value>, Failure> {
        let target = Ref { api_version: "v1".into(), kind: "Pod".into(), ..target.clone() };
        let live = self.stage.recorder.live();
        let pods: Vec<Value> = api::referred(&live.world, &target, self.namespace()).into_iter().cloned().collect();
        if pods.is_empty() {
            return Err(Failure::Broken(format!("there is no such pod: {target:?}")));
        }
        Ok(pods)
    }

    pub(super) async fn kill_pod(&self, kill: &KillPod) -> Result<(), Failure> {
        for pod in self.pods(&kill.target)? {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name().unwrap_or_default());
            if let Some(kubelet) = self.around.lane.kubelet() {
                kill_stubbed(kubelet, namespace, name).await?;
            } else if let Some(nodes) = self.around.lane.nodes() {
                for (node, container) in running(&pod, kill.container.as_deref())? {
                    nodes.signal_container(&node, &container, "SIGKILL").await.map_err(crate::Error::from)?;
                }
            }
        }
        Ok(())
    }

    /// What `setPod` means for a pod that runs: frozen, no probe of it is answered; evicted, by the API.
    async fn set_real_pod(&self, nodes: &Nodes, pod: &Value, set: &SetPod) -> Result<(), Failure> {
        match (set.ready, set.phase.as_deref(), set.exit_code) {
            (Some(ready), None, None) => {
                for (node, container) in running(pod, None)? {
                    let undo = json!({"node": node, "container": container, "undo": "resume"});
                    if ready {
                        nodes.resume_container(&node, &container).await.map_err(crate::Error::from)?;
                        self.stage.frozen().remove(&(node, container));
                    } else {
                        self.stage.writes.undo_record(&self.stage.recorder, &undo);
                        self.stage.frozen().insert((node.clone(), container.clone()));
                        nodes.pause_container(&node, &container).await.map_err(crate::Error::from)?;
                    }
                }
                Ok(())
            }
            (None, Some("Evicted"), None) => {
                let until = tokio::time::Instant::now() + EVICTION;
                loop {
                    match self.evict(pod).await {
                        Err(e) if is_refused(&e) && tokio::time::Instant::now() < until => tokio::time::sleep(LOOK).await,
                        evicted => return Ok(evicted?),
                    }
                }
            }
            _ => Err(Failure::Broken(
                "a pod that runs can be set to `ready: false`, `ready: true` and `phase: Evicted`; the rest is for the \
                 kubelet stub of provider local"
                    .into(),
            )),
        }
    }

    /// Asks for an eviction once; refused where a disruption budget does not allow it, or is still being counted.
    pub(super) async fn evict(&self, pod: &Value) -> Result<(), crate::Error> {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name().unwrap_or_default());
        let doing = || crate::Error::request(format!("evict pod {namespace}/{name}"));
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace},
        });
        let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(eviction.to_string().into_bytes())
            .map_err(kube::Error::HttpError)
            .map_err(doing())?;
        self.around.lane.clients().user.request::<Value>(request).await.map(drop).map_err(doing())
    }

    pub(super) async fn set_pod(&self, set: &SetPod) -> Result<(), Failure> {
        let Some(kubelet) = self.around.lane.kubelet() else {
            for pod in self.pods(&set.target)? {
                if let Some(nodes) = self.around.lane.nodes() {
                    self.set_real_pod(nodes, &pod, set).await?;
                }
            }
            return Ok(());
        };
        let state = match (set.exit_code, set.phase.as_deref(), set.ready) {
            (Some(code), _, _) => PodState::Exited { code },
            (None, Some("Evicted"), _) => PodState::Evicted,
            (None, Some(name), _) => PodState::Phase(phase(name).ok_or_else(|| {
                Failure::Broken(format!("{name} is not a phase: Pending, Running, Succeeded, Failed or Evicted"))
            })?),
            (None, None, Some(false)) => PodState::NotReady,
            (None, None, Some(true)) => PodState::Ready,
            (None, None, None) => return Err(Failure::Broken("setPod needs `ready`, `phase` or `exitCode`".into())),
        };
        for pod in self.pods(&set.target)? {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name().unwrap_or_default());
            if state == PodState::Ready {
                // Ready is what its rules say anyway.
                kubelet.clear_pod(namespace, name);
            } else {
                kubelet.set_pod(namespace, name, state);
            }
        }
        Ok(())
    }

    pub(super) async fn drift(&self, drift: &Drift, path: &str) -> Result<(), Failure> {
        let client = &self.around.lane.clients().drift;
        let objects = self.objects(client);
        objects.kind(&drift.target.api_version, &drift.target.kind)?;
        let found: Vec<Value> = {
            let live = self.stage.recorder.live();
            api::referred(&live.world, &drift.target, self.namespace()).into_iter().cloned().collect()
        };
        if found.is_empty() {
            return Err(Failure::Broken(format!("there is no such {} to change", drift.target.kind)));
        }
        for object in found {
            let url = objects.url(&drift.target.api_version, &drift.target.kind, object.namespace(), object.name())?;
            // Secrets stay out of the undo file: what it undoes is a change of ours to a child that its operator keeps.
            let kept = if drift.target.kind == "Secret" { json!({"uid": object.uid()}) } else { object.clone() };
            self.stage.writes.undo_record(&self.stage.recorder, &json!({"step": path, "url": url, "undo": kept}));
            if drift.delete {
                objects.delete(&url, None).await?;
                continue;
            }
            let patch = match &drift.set {
                Some(patch) => patch.clone(),
                None if drift.strip_owners => json!({"metadata": {"ownerReferences": null}}),
                None => return Err(Failure::Broken("drift needs `set`, `delete` or `stripOwners`".into())),
            };
            let answer =
                merge_patch(client, &url, &patch).await.map_err(crate::Error::request(format!("change {url}")))?;
            self.until_seen(&answer).await;
        }
        Ok(())
    }
}

/// Whether a disruption budget stands in the way.
pub(super) fn is_refused(error: &crate::Error) -> bool {
    matches!(error, crate::Error::Request { source, .. } if matches!(&**source, kube::Error::Api(s) if s.code == 429))
}

/// Node and id of each container of a pod that runs, or of the one with that name.
fn running(pod: &Value, container: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let containers = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let named = containers.filter(|c| container.is_none_or(|name| c["name"] == *name));
    let running = named.filter(|c| !c["state"]["running"].is_null());
    let ids: Vec<_> =
        running.filter_map(|c| c["containerID"].as_str()).map(|id| (node.to_owned(), id.to_owned())).collect();
    if ids.is_empty() {
        let name = pod.name().unwrap_or_default();
        let which = container.map_or_else(|| "no container".to_owned(), |c| format!("no container {c}"));
        return Err(Failure::Broken(format!("{which} of pod {name} runs: wait for it to be Ready first")));
    }
    Ok(ids)
}

/// The stub may not have heard yet that a pod runs: after a restore it lists anew.
async fn kill_stubbed(kubelet: &KubeletStub, namespace: &str, name: &str) -> Result<(), Failure> {
    let end = Instant::now() + HEARS;
    loop {
        match kubelet.kill_pod(namespace, name) {
            Ok(()) => return Ok(()),
            Err(spiritlevel_cluster::Error::NoRunningPod { .. }) if Instant::now() < end => {
                tokio::time::sleep(LOOK).await;
            }
            Err(e) => return Err(crate::Error::from(e).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_taken_by_name_and_only_while_they_run() {
        let pod = json!({
            "metadata": {"name": "p"}, "spec": {"nodeName": "n"},
            "status": {"containerStatuses": [
                {"name": "a", "containerID": "containerd://1", "state": {"running": {}}},
                {"name": "b", "containerID": "containerd://2", "state": {"terminated": {}}},
                {"name": "c", "containerID": "containerd://3", "state": {"running": {}}},
            ]},
        });
        let ids =
            |container| running(&pod, container).map(|list| list.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
        assert_eq!(ids(None).unwrap(), ["containerd://1", "containerd://3"]);
        assert_eq!(ids(Some("c")).unwrap(), ["containerd://3"]);
        let Err(Failure::Broken(why)) = ids(Some("b")) else { panic!("it does not run") };
        assert!(why.starts_with("no container b of pod p"), "{why}");
    }
}
