//! kube-controller-manager, as a client of whatever endpoint it is given.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kube::Client;

use super::ports::with_free_port;
use crate::{
    Component, Endpoint, Error, connect,
    process::{Deadline, Process},
};

/// Files and settings with which it is started.
pub(crate) struct ControllerManagerFiles {
    pub(crate) program: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) ca_cert: PathBuf,
    pub(crate) server_cert: PathBuf,
    pub(crate) server_key: PathBuf,
    pub(crate) service_account_key: PathBuf,
    /// Names as in `--controllers`.
    pub(crate) controllers: Vec<&'static str>,
    /// Who signed the certificate of its own health endpoint.
    pub(crate) ca_pem: String,
}

/// Starts it and waits until it says that it is healthy.
pub(crate) async fn start(files: &ControllerManagerFiles, deadline: Deadline) -> Result<Process, Error> {
    with_free_port(Component::ControllerManager, |port| async move {
        let args = arguments(files, port);
        let mut process =
            Process::start(Component::ControllerManager, files.program.clone(), &args, files.log.clone())?;
        let endpoint = Endpoint { url: format!("https://127.0.0.1:{port}"), ca_pem: files.ca_pem.clone() };
        let client = connect(&endpoint, "")?;
        let interval = Duration::from_millis(20);
        process.ready("the controller manager", interval, deadline, || is_healthy(&client)).await?;
        Ok(process)
    })
    .await
}

async fn is_healthy(client: &Client) -> bool {
    let request = http::Request::get("/healthz").body(Vec::new()).expect("a constant path is a valid request");
    client.request_text(request).await.is_ok()
}

fn arguments(files: &ControllerManagerFiles, port: u16) -> Vec<String> {
    let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    vec![
        file("kubeconfig", &files.kubeconfig),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        file("tls-cert-file", &files.server_cert),
        file("tls-private-key-file", &files.server_key),
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics".to_owned(),
        file("root-ca-file", &files.ca_cert),
        file("service-account-private-key-file", &files.service_account_key),
        // Each controller becomes an actor with a name.
        "--use-service-account-credentials=true".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
        format!("--controllers={}", files.controllers.join(",")),
    ]
}
