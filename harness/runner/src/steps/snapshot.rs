//! `snapshot` and `restore` of etcd, with the operator alive. What could undo a restore, a snapshot of just before, is on
//! disk first.

use super::play::{Failure, Play};
use crate::{Error, outage::Outage, stage::Stage};
use serde_json::{Value, json};
use spiritlevel_cluster::{Identity, Progress};
use spiritlevel_model::{
    Meta, Revision,
    fault::Legality,
    history::Epoch,
    operation::{Restore, Snapshot, SnapshotOf},
};
use std::path::PathBuf;

struct Says<'a>(&'a Stage);

impl Progress for Says<'_> {
    fn say(&self, text: &str) {
        self.0.say(text.into());
    }
}

impl Play<'_> {
    fn snapshot_path(&self, name: &str) -> PathBuf {
        self.around.private.join(format!("snapshot-{name}.db"))
    }

    pub(super) async fn snapshot(&self, snapshot: &Snapshot) -> Result<(), Failure> {
        let local = self.local()?;
        match snapshot.of {
            SnapshotOf::Etcd => {
                local.prepare_restore(&Says(self.stage)).await.map_err(Error::from)?;
                local.snapshot(&self.snapshot_path(&snapshot.name)).await.map_err(Error::from)?;
            }
        }
        let revision = self.store_revision().await?;
        self.note(format!("snapshot {} was taken at about revision {revision}", snapshot.name));
        Ok(())
    }

    pub(super) async fn restore(&self, restore: &Restore, path: &str) -> Result<(), Failure> {
        let (local, lane) = (self.local()?, self.around.lane);
        let snapshot = self.snapshot_path(&restore.from);
        if !snapshot.exists() {
            return Err(Failure::Broken(format!("there is no snapshot {}", restore.from)));
        }
        let undo = self.snapshot_path(&format!("before-{path}"));
        local.snapshot(&undo).await.map_err(Error::from)?;
        self.stage.writes.undo_record(&self.stage.recorder, &json!({"step": path, "undo": {"restore": undo}}));
        let outage = Outage::begin(self.stage, lane, path).await;
        let before = self.store_revision().await?;
        let bump = restore.bump_revision;
        local.restore(&snapshot, bump, &Says(self.stage)).await.map_err(Error::from)?;
        let legality = if bump.is_some() { Legality::Always } else { Legality::Never };
        let epoch = Epoch { step: path.into(), before, now: self.store_revision().await?, legality };
        lane.hub().epoch(&epoch);
        if let Some(kubelet) = lane.kubelet() {
            kubelet.relist();
        }
        outage.end(true).await?;
        local.resume_controllers().await.map_err(Error::from)?;
        self.note(format!("snapshot {} is back: revision {before} before, {} now", restore.from, epoch.now));
        Ok(())
    }

    /// The newest revision of the store: that of any list that must be up to date.
    async fn store_revision(&self) -> Result<Revision, Failure> {
        let client = self.around.lane.cluster().client(Identity::Witness).map_err(Error::from)?;
        let request = http::Request::get("/api/v1/namespaces?limit=1").body(Vec::new());
        let request = request.expect("a constant path is a valid request");
        let list: Value = client.request(request).await.map_err(Error::request("ask for the store's revision"))?;
        Ok(list.revision().unwrap_or_default())
    }
}
