//! `killPod`, `setPod`, `drift`.

use super::play::{Failure, Play};
use crate::{api, arrange::phase, harness_writes::merge_patch};
use serde_json::{Value, json};
use spiritlevel_cluster::kubelet_stub::PodState;
use spiritlevel_model::{
    Meta,
    operation::{Drift, Ref, SetPod},
};

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

    pub(super) fn kill_pod(&self, target: &Ref) -> Result<(), Failure> {
        for pod in self.pods(target)? {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name().unwrap_or_default());
            self.around.lane.kubelet().kill_pod(namespace, name).map_err(crate::Error::from)?;
        }
        Ok(())
    }

    pub(super) fn set_pod(&self, set: &SetPod) -> Result<(), Failure> {
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
                self.around.lane.kubelet().clear_pod(namespace, name);
            } else {
                self.around.lane.kubelet().set_pod(namespace, name, state);
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
