//! `restartOperator`, `stopOperator`, `startOperator`, `duplicateReconcile`.

use super::play::{Failure, Play};
use crate::{api, harness_writes::merge_patch, replica::Replica};
use serde_json::{Value, json};
use spiritlevel_model::{
    Meta,
    fault::CloseWatch,
    operation::{DuplicateReconcile, RestartOperator, StartOperator, StopOperator, TOUCH, Via},
};
use std::sync::Arc;

impl Play<'_> {
    fn chosen(&self, replica: Option<usize>) -> Result<Vec<Arc<Replica>>, Failure> {
        let all = self.stage.replicas();
        match replica {
            None => Ok(all),
            Some(n) => {
                let one = all.get(n).cloned();
                one.map(|r| vec![r])
                    .ok_or_else(|| Failure::Broken(format!("there is no replica {n}, only {}", all.len())))
            }
        }
    }

    pub(super) async fn restart(&self, restart: &RestartOperator, path: &str) -> Result<(), Failure> {
        let replicas = self.chosen(restart.replica)?;
        for replica in &replicas {
            replica.stop(restart.signal, path).await;
            self.stage.writes.release_leases(&self.stage.recorder, replica.actor(), &self.stage.plan).await;
        }
        if let Some(gap) = restart.gap {
            tokio::time::sleep(gap.0).await;
        }
        for replica in &replicas {
            replica.start(Some(path)).await?;
        }
        Ok(())
    }

    pub(super) async fn stop(&self, stop: &StopOperator, path: &str) -> Result<(), Failure> {
        for replica in self.chosen(stop.replica)? {
            replica.stop(stop.signal, path).await;
            self.stage.writes.release_leases(&self.stage.recorder, replica.actor(), &self.stage.plan).await;
        }
        Ok(())
    }

    pub(super) async fn start(&self, start: &StartOperator, path: &str) -> Result<(), Failure> {
        for replica in self.chosen(start.replica)? {
            replica.start(Some(path)).await?;
        }
        Ok(())
    }

    pub(super) async fn duplicate(&self, duplicate: &DuplicateReconcile, path: &str) -> Result<(), Failure> {
        let target = &duplicate.target;
        let client = &self.around.lane.clients().touch;
        let objects = self.objects(client);
        let resource = objects.kind(&target.api_version, &target.kind)?.key().to_string();
        let times = duplicate.times.unwrap_or(1);
        match duplicate.via {
            Via::Touch => {
                let found: Vec<Value> = {
                    let live = self.stage.recorder.live();
                    api::referred(&live.world, target, self.namespace()).into_iter().cloned().collect()
                };
                if found.is_empty() {
                    return Err(Failure::Broken(format!("there is no such {} to touch", target.kind)));
                }
                for object in &found {
                    let url = objects.url(&target.api_version, &target.kind, object.namespace(), object.name())?;
                    for _ in 0..times {
                        let before = object["metadata"]["annotations"].get(TOUCH).cloned().unwrap_or(Value::Null);
                        let undo =
                            json!({"step": path, "url": url, "undo": {"metadata": {"annotations": {TOUCH: before}}}});
                        self.stage.writes.undo_record(&self.stage.recorder, &undo);
                        let patch =
                            json!({"metadata": {"annotations": {TOUCH: self.stage.writes.next_touch().to_string()}}});
                        let answer = merge_patch(client, &url, &patch)
                            .await
                            .map_err(crate::Error::request(format!("touch {url}")))?;
                        self.until_seen(&answer).await;
                    }
                }
            }
            Via::Replay | Via::Relist => {
                let how = if duplicate.via == Via::Replay { CloseWatch::Clean } else { CloseWatch::Expire };
                for _ in 0..times {
                    // An operator that has just been started, or whose watch has just been ended, opens it in its own time.
                    let watched = self.until_watched(&resource).await.is_ok();
                    if !watched || self.stage.end_watches(&resource, how, path) == 0 {
                        return Err(Failure::TimedOut(format!("the operator has no open watch on {resource}")));
                    }
                    self.until_watched(&resource).await?;
                }
            }
        }
        Ok(())
    }

    /// Until the operator watches a resource again.
    async fn until_watched(&self, resource: &str) -> Result<(), Failure> {
        let open = || {
            let watches = |r: &Arc<Replica>| {
                r.listener()
                    .streams()
                    .iter()
                    .any(|s| s.info.resource.as_ref().is_some_and(|k| k.to_string() == resource))
            };
            self.stage.replicas().iter().any(watches)
        };
        let limit = self.stage.plan.suite.defaults.timeouts.assert.0;
        match self.stage.recorder.wait_for(limit, |_| open().then_some(())).await {
            Some(()) => Ok(()),
            None => Err(Failure::Failed(format!(
                "the operator did not watch {resource} again within {} s",
                limit.as_secs()
            ))),
        }
    }
}
