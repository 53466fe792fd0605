//! etcd, tuned for data that nobody needs tomorrow.

use std::{path::PathBuf, time::Duration};

use kube::Client;

use super::ports::with_free_port;
use crate::{
    Component, Endpoint, Error, connect,
    process::{Deadline, Process},
};

/// A started etcd and its client URL.
pub(crate) struct Etcd {
    pub(crate) process: Process,
    pub(crate) url: String,
}

impl Etcd {
    /// On a free port, with empty data.
    pub(crate) async fn start(start: &EtcdStart, deadline: Deadline) -> Result<Self, Error> {
        with_free_port(Component::Etcd, |port| async move {
            let url = format!("http://127.0.0.1:{port}");
            let process = start.start_at(&url, "etcd", deadline).await?;
            Ok(Self { process, url })
        })
        .await
    }
}

/// With what etcd is started, again after a restore.
pub(crate) struct EtcdStart {
    pub(crate) program: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) ca_pem: String,
}

// === impl EtcdStart ===

impl EtcdStart {
    /// At this URL, with the data in this folder of the directory.
    pub(crate) async fn start_at(&self, url: &str, data: &str, deadline: Deadline) -> Result<Process, Error> {
        let data = self.directory.join(data);
        let args = [
            "--name=default".to_owned(),
            format!("--data-dir={}", data.display()),
            // The data dies with the process anyway.
            "--unsafe-no-fsync=true".to_owned(),
            "--log-level=warn".to_owned(),
            // The only member elects itself after one election timeout: 0.1 s instead of up to 1 s.
            "--heartbeat-interval=20".to_owned(),
            "--election-timeout=100".to_owned(),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        ];
        let log = self.directory.join("etcd.log");
        let mut process = Process::start(Component::Etcd, self.program.clone(), &args, log)?;
        let client = connect(&Endpoint { url: url.to_owned(), ca_pem: self.ca_pem.clone() }, "")?;
        process.ready("etcd", Duration::from_millis(20), deadline, || is_healthy(&client)).await?;
        Ok(process)
    }
}

async fn is_healthy(client: &Client) -> bool {
    let request = http::Request::get("/health").body(Vec::new()).expect("a constant path is a valid request");
    client.request_text(request).await.is_ok_and(|answer| answer.contains(r#""health":"true""#))
}
