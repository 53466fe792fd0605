//! `restartApiserver` and `freezeEtcd`. Every undo is written down first.

use super::play::{Failure, Play};
use crate::{Error, outage::Outage};
use serde_json::json;
use spiritlevel_cluster::{Component, LocalCluster};
use spiritlevel_model::operation::{FreezeEtcd, RestartApiserver};

impl Play<'_> {
    pub(super) fn local(&self) -> Result<&LocalCluster, Failure> {
        let local = self.around.lane.cluster().local();
        local.ok_or_else(|| Failure::Broken("only provider local has a control plane of processes".into()))
    }

    pub(super) async fn restart_api_server(&self, restart: &RestartApiserver, path: &str) -> Result<(), Failure> {
        let local = self.local()?;
        self.stage.writes.undo_record(&self.stage.recorder, &json!({"step": path, "undo": "startApiserver"}));
        let outage = Outage::begin(self.stage, self.around.lane, path).await;
        local.stop_api_server().await.map_err(Error::from)?;
        self.note("the API server is stopped".into());
        if let Some(gap) = restart.gap {
            tokio::time::sleep(gap.0).await;
        }
        local.start_api_server().await.map_err(Error::from)?;
        outage.end(false).await?;
        self.note("the API server is ready again".into());
        Ok(())
    }

    pub(super) async fn freeze_etcd(&self, freeze: &FreezeEtcd, path: &str) -> Result<(), Failure> {
        let local = self.local()?;
        self.stage.writes.undo_record(&self.stage.recorder, &json!({"step": path, "undo": "thawEtcd"}));
        local.freeze(Component::Etcd).await.map_err(Error::from)?;
        self.note("etcd is frozen".into());
        tokio::time::sleep(freeze.elapsed.0).await;
        local.thaw(Component::Etcd).await.map_err(Error::from)?;
        self.note("etcd goes on".into());
        Ok(())
    }
}
