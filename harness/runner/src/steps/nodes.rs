//! `node`: something happens to a real node, and is undone. Every undo is written down first.

use super::{
    play::{Failure, Play},
    pods::is_refused,
};
use crate::{api::is_not_found, harness_writes::merge_patch};
use serde_json::{Value, json};
use spiritlevel_cluster::Nodes;
use spiritlevel_model::{
    Meta, Period,
    operation::{NodeAction, NodeFault, NodeRole},
};
use std::time::Duration;

/// Without `for`.
const LASTS: Period = Period::secs(2);
/// A node that starts again brings up everything that runs on it.
const BACK: Duration = Duration::from_secs(120);
/// Between two looks at something that has no watch while it is away.
const LOOK: Duration = Duration::from_millis(200);

impl Play<'_> {
    pub(super) async fn node(&self, fault: &NodeFault, path: &str) -> Result<(), Failure> {
        let lane = self.around.lane;
        let Some(nodes) = lane.nodes() else {
            return Err(Failure::Broken("this provider has no real nodes: `requires: {realPods: true}`".into()));
        };
        let names = nodes.names();
        let name = match fault.which {
            NodeRole::ControlPlane => names.first(),
            NodeRole::Worker => names.get(1),
        };
        let name = *name.ok_or_else(|| Failure::Broken("the cluster has no worker".into()))?;
        if fault.action == NodeAction::Drain {
            return self.drain(name, fault.lasts.unwrap_or(LASTS).0, path).await;
        }
        let undo = match fault.action {
            NodeAction::Restart | NodeAction::Crash => "start",
            NodeAction::Pause => "unpause",
            NodeAction::Cut => "mend",
            NodeAction::StopKubelet => "startKubelet",
            NodeAction::RestartRuntime | NodeAction::Drain => "nothing",
        };
        self.stage.writes.undo_record(&self.stage.recorder, &json!({"step": path, "node": name, "undo": undo}));
        let before = heartbeat(self, name).await;
        self.note(format!("node {name}: {}", json!(fault.action).as_str().unwrap_or_default()));
        disturb(nodes, name, fault.action).await.map_err(crate::Error::from)?;
        if fault.action.lasts() {
            tokio::time::sleep(fault.lasts.unwrap_or(LASTS).0).await;
        }
        mend(nodes, name, fault.action).await.map_err(crate::Error::from)?;
        self.until_back(name, before).await
    }

    /// As `kubectl drain` and `uncordon`: what a budget protects is asked for again until the time is over.
    async fn drain(&self, name: &str, lasts: Duration, path: &str) -> Result<(), Failure> {
        let client = &self.around.lane.clients().user;
        let url = format!("/api/v1/nodes/{name}");
        let undo = json!({"step": path, "node": name, "undo": "uncordon"});
        self.stage.writes.undo_record(&self.stage.recorder, &undo);
        self.note(format!("node {name}: drain"));
        let cordon = async |unschedulable: bool| {
            let patch = json!({"spec": {"unschedulable": unschedulable}});
            merge_patch(client, &url, &patch).await.map_err(crate::Error::request(format!("cordon {name}")))
        };
        cordon(true).await?;
        let evictions = async {
            // Who is refused is asked for again; who comes later is none of ours.
            let mut left = self.pods_on(name);
            while !left.is_empty() {
                let mut refused = Vec::new();
                for pod in left {
                    match self.evict(&pod).await {
                        Err(e) if is_refused(&e) => refused.push(pod),
                        Err(crate::Error::Request { source, .. }) if is_not_found(&source) => {}
                        other => other?,
                    }
                }
                left = refused;
                tokio::time::sleep(LOOK).await;
            }
            Ok::<_, crate::Error>(())
        };
        let until = tokio::time::Instant::now() + lasts;
        let evicted = tokio::time::timeout_at(until, evictions).await.unwrap_or(Ok(()));
        tokio::time::sleep_until(until).await;
        cordon(false).await?;
        self.note(format!("node {name} takes pods again"));
        Ok(evicted?)
    }

    /// The run's pods on a node, a DaemonSet's aside: those come back at once wherever they are.
    fn pods_on(&self, node: &str) -> Vec<Value> {
        let live = self.stage.recorder.live();
        let pods = live.world.of_kind("v1", "Pod").map(|l| &l.object);
        let mine = pods.filter(|p| {
            let run = p.namespace().is_some_and(|n| self.stage.namespaces().iter().any(|own| own == n));
            let owners = p["metadata"]["ownerReferences"].as_array();
            let daemon = owners.is_some_and(|all| all.iter().any(|o| o["kind"] == "DaemonSet"));
            run && !daemon && p["spec"]["nodeName"] == *node
        });
        mine.cloned().collect()
    }

    /// Until the API server answers and the node has said again that it is Ready.
    async fn until_back(&self, name: &str, before: Option<String>) -> Result<(), Failure> {
        let back = async {
            loop {
                let now = heartbeat(self, name).await;
                if now.is_some() && now != before {
                    return;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(BACK, back)
            .await
            .map_err(|_| Failure::Broken(format!("node {name} was not Ready again within {} s", BACK.as_secs())))?;
        self.note(format!("node {name} is Ready again"));
        Ok(())
    }
}

/// When a node that is Ready last said so; its lease is renewed more often than its status.
async fn heartbeat(play: &Play<'_>, name: &str) -> Option<String> {
    let client = &play.around.lane.clients().arrange;
    let get = async |url: String| {
        let request = http::Request::get(url).body(Vec::new()).ok()?;
        let asked = tokio::time::timeout(Duration::from_secs(2), client.request::<Value>(request));
        asked.await.ok()?.ok()
    };
    let node = get(format!("/api/v1/nodes/{name}")).await?;
    let mut conditions = node["status"]["conditions"].as_array()?.iter();
    conditions.find(|c| c["type"] == "Ready" && c["status"] == "True")?;
    let lease = get(format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")).await?;
    Some(lease["spec"]["renewTime"].as_str()?.to_owned())
}

async fn disturb(nodes: &Nodes, name: &str, action: NodeAction) -> Result<(), spiritlevel_cluster::Error> {
    match action {
        NodeAction::Restart => nodes.stop(name).await,
        NodeAction::Crash => nodes.kill(name).await,
        NodeAction::Pause => nodes.pause(name).await,
        NodeAction::Cut => nodes.cut(name).await,
        NodeAction::StopKubelet => nodes.stop_kubelet(name).await,
        NodeAction::RestartRuntime => nodes.restart_runtime(name).await,
        // Done by the API, not to the container.
        NodeAction::Drain => Ok(()),
    }
}

async fn mend(nodes: &Nodes, name: &str, action: NodeAction) -> Result<(), spiritlevel_cluster::Error> {
    match action {
        NodeAction::Restart | NodeAction::Crash => nodes.start(name).await,
        NodeAction::Pause => nodes.unpause(name).await,
        NodeAction::Cut => nodes.mend(name).await,
        NodeAction::StopKubelet => nodes.start_kubelet(name).await,
        NodeAction::RestartRuntime | NodeAction::Drain => Ok(()),
    }
}
