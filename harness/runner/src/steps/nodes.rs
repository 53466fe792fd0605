//! `node`: something happens to a real node, and is undone. Every undo is written down first.

use super::play::{Failure, Play};
use serde_json::{Value, json};
use spiritlevel_cluster::Nodes;
use spiritlevel_model::{
    Period,
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
        let undo = match fault.action {
            NodeAction::Restart | NodeAction::Crash => "start",
            NodeAction::Pause => "unpause",
            NodeAction::Cut => "mend",
            NodeAction::StopKubelet => "startKubelet",
            NodeAction::RestartRuntime => "nothing",
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
    }
}

async fn mend(nodes: &Nodes, name: &str, action: NodeAction) -> Result<(), spiritlevel_cluster::Error> {
    match action {
        NodeAction::Restart | NodeAction::Crash => nodes.start(name).await,
        NodeAction::Pause => nodes.unpause(name).await,
        NodeAction::Cut => nodes.mend(name).await,
        NodeAction::StopKubelet => nodes.start_kubelet(name).await,
        NodeAction::RestartRuntime => Ok(()),
    }
}
