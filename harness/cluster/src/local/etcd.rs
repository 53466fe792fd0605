//! etcd, tuned for data that nobody needs tomorrow.

use std::{path::Path, time::Duration};

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
    pub(crate) async fn start(
        program: &Path,
        directory: &Path,
        ca_pem: &str,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        with_free_port(Component::Etcd, |port| async move {
            let url = format!("http://127.0.0.1:{port}");
            let data = directory.join("etcd");
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
            let mut process = Process::start(Component::Etcd, program.to_owned(), &args, directory.join("etcd.log"))?;
            let client = connect(&Endpoint { url: url.clone(), ca_pem: ca_pem.to_owned() }, "")?;
            process.ready("etcd", Duration::from_millis(20), deadline, || is_healthy(&client)).await?;
            Ok(Self { process, url })
        })
        .await
    }
}

async fn is_healthy(client: &Client) -> bool {
    let request = http::Request::get("/health").body(Vec::new()).expect("a constant path is a valid request");
    client.request_text(request).await.is_ok_and(|answer| answer.contains(r#""health":"true""#))
}
