//! kube-apiserver: real admission, RBAC, garbage collection semantics; only its surroundings are small.

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

/// Everything with which it is started, again after a restart.
pub(crate) struct ApiServerStart {
    pub(crate) program: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) etcd_url: String,
    pub(crate) ca_cert: PathBuf,
    pub(crate) server_cert: PathBuf,
    pub(crate) server_key: PathBuf,
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public_key: PathBuf,
    pub(crate) tokens: PathBuf,
    /// Further arguments.
    pub(crate) extra: Vec<String>,
    /// Who signed its certificate.
    pub(crate) ca_pem: String,
    /// Who asks whether it is ready.
    pub(crate) admin_token: String,
}

// === impl ApiServerStart ===

impl ApiServerStart {
    /// On a free port.
    pub(crate) async fn start(&self, deadline: Deadline) -> Result<(Process, Endpoint), Error> {
        with_free_port(Component::ApiServer, |port| async move {
            let endpoint = Endpoint { url: format!("https://127.0.0.1:{port}"), ca_pem: self.ca_pem.clone() };
            Ok((self.start_at(&endpoint, port, deadline).await?, endpoint))
        })
        .await
    }

    /// Where it was before.
    pub(crate) async fn restart(&self, endpoint: &Endpoint, deadline: Deadline) -> Result<Process, Error> {
        let port = endpoint.url.rsplit(':').next().and_then(|port| port.parse().ok());
        self.start_at(endpoint, port.expect("`start` put the port there"), deadline).await
    }

    async fn start_at(&self, endpoint: &Endpoint, port: u16, deadline: Deadline) -> Result<Process, Error> {
        let args = arguments(self, port);
        let mut process = Process::start(Component::ApiServer, self.program.clone(), &args, self.log.clone())?;
        let client = connect(endpoint, &self.admin_token)?;
        process.ready("the API server", Duration::from_millis(25), deadline, || is_ready(&client)).await?;
        Ok(process)
    }
}

/// As an administrator: until the RBAC hook has run, everybody else is refused.
async fn is_ready(client: &Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new()).expect("a constant path is a valid request");
    client.request_text(request).await.is_ok()
}

fn arguments(files: &ApiServerStart, port: u16) -> Vec<String> {
    let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    let mut args = vec![
        format!("--etcd-servers={}", files.etcd_url),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // Without it even a server bound to loopback looks for a default route.
        "--advertise-address=127.0.0.1".to_owned(),
        // The reconciler would write a loopback address into Endpoints, which validation refuses.
        "--endpoint-reconciler-type=none".to_owned(),
        file("tls-cert-file", &files.server_cert),
        file("tls-private-key-file", &files.server_key),
        file("client-ca-file", &files.ca_cert),
        file("token-auth-file", &files.tokens),
        // Never AlwaysAllow: it hides the commonest real bug, a missing rule.
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        file("service-account-key-file", &files.service_account_public_key),
        file("service-account-signing-key-file", &files.service_account_key),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--shutdown-delay-duration=0s".to_owned(),
    ];
    args.extend(files.extra.iter().cloned());
    args
}
