//! Snapshots of etcd, taken and put back as its own tools do it, with the rest of the control plane alive around it.

use std::{path::Path, process::Stdio, sync::atomic::Ordering};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{AsyncBufReadExt, StreamExt};
use serde_json::Value;
use tokio::{fs::File, io::AsyncWriteExt, process::Command};

use super::{
    LocalCluster,
    control_plane::{CONTROLLERS_GRACE, GRACE},
};
use crate::{Endpoint, Error, Progress, assets, connect, process::Deadline};

impl LocalCluster {
    /// Makes sure that a snapshot could be put back, which may take a build.
    pub async fn prepare_restore(&self, progress: &dyn Progress) -> Result<(), Error> {
        assets::etcdutl(&self.sources, progress).await.map(drop)
    }

    /// Writes a snapshot of the running etcd to `path`, in the format of `etcdctl snapshot save`.
    pub async fn snapshot(&self, path: &Path) -> Result<(), Error> {
        let failed = |reason: String| Error::Snapshot { action: "take", reason };
        let url = self.api_server_start.etcd_url.clone();
        let client = connect(&Endpoint { url, ca_pem: self.etcd_start.ca_pem.clone() }, "")?;
        // The gateway speaks the same gRPC service in JSON, a line for each message.
        let request = http::Request::post("/v3/maintenance/snapshot").body(b"{}".to_vec());
        let request = request.expect("a constant path is a valid request");
        let answer = client.request_stream(request).await.map_err(|e| Error::kube("take a snapshot of etcd", e))?;
        let mut file = File::create(path).await.map_err(|source| Error::io("create", path, source))?;
        let mut lines = Box::pin(answer.lines());
        let mut left = None;
        while let Some(line) = lines.next().await {
            let line = line.map_err(|e| failed(e.to_string()))?;
            let message: Value = serde_json::from_str(&line).map_err(|e| failed(e.to_string()))?;
            let result = &message["result"];
            if result.is_null() {
                return Err(failed(line));
            }
            let blob = STANDARD.decode(result["blob"].as_str().unwrap_or_default());
            let blob = blob.map_err(|e| failed(e.to_string()))?;
            file.write_all(&blob).await.map_err(|source| Error::io("write", path, source))?;
            // Zero is left out in protobuf's JSON.
            left = Some(result["remaining_bytes"].as_str().unwrap_or("0") == "0");
        }
        file.flush().await.map_err(|source| Error::io("write", path, source))?;
        match left {
            Some(true) => Ok(()),
            _ => Err(failed("the stream ended early".to_owned())),
        }
    }

    /// Stops everything, puts the snapshot back (with revisions bumped by so much, and all before marked as compacted), and
    /// starts etcd and the API server where they were. The controllers come with [`Self::resume_controllers`].
    pub async fn restore(&self, snapshot: &Path, bump: Option<u64>, progress: &dyn Progress) -> Result<(), Error> {
        let etcdutl = assets::etcdutl(&self.sources, progress).await?;
        if let Some(mut controllers) = self.controller_manager.lock().await.take() {
            controllers.stop(CONTROLLERS_GRACE).await?;
        }
        self.stop_api_server().await?;
        let mut etcd = self.etcd.lock().await;
        let Some(mut running) = etcd.take() else { return Err(Error::Stopped) };
        running.stop(GRACE).await?;
        let number = self.restores.fetch_add(1, Ordering::SeqCst) + 1;
        let data = format!("etcd-{number}");
        let mut restore = Command::new(etcdutl);
        restore.args(["snapshot", "restore"]).arg(snapshot).arg("--data-dir").arg(self.directory.path().join(&data));
        if let Some(bump) = bump {
            // The tool takes either both or none.
            restore.arg(format!("--bump-revision={bump}")).arg("--mark-compacted");
        }
        let failed = |reason: String| Error::Snapshot { action: "restore", reason };
        let output =
            restore.stdin(Stdio::null()).kill_on_drop(true).output().await.map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(said.lines().last().unwrap_or_default().to_owned()));
        }
        let before = if number == 1 { "etcd".to_owned() } else { format!("etcd-{}", number - 1) };
        let before = self.directory.path().join(before);
        std::fs::remove_dir_all(&before).map_err(|source| Error::io("remove", &before, source))?;
        let deadline = Deadline::after(self.start_timeout);
        *etcd = Some(self.etcd_start.start_at(&self.api_server_start.etcd_url, &data, deadline).await?);
        drop(etcd);
        self.start_api_server().await
    }

    /// Starts the controllers after a restore; they reach the API server as before.
    pub async fn resume_controllers(&self) -> Result<(), Error> {
        let mut slot = self.controller_manager.lock().await;
        self.run_controllers(&mut slot).await
    }
}
