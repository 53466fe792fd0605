//! The operator's token: asked for as a kubelet does, and renewed in its files while it runs.

use crate::{Error, rbac::ACCOUNT, recorder::Recorder};
use kube::Client;
use serde_json::{Value, json};
use spiritlevel_cluster::Endpoint;
use spiritlevel_operator::ServiceAccountDir;
use std::path::PathBuf;

/// Longer than any run.
const LIFETIME_SECONDS: u32 = 86_400;

/// Asks for a token of the operator's account.
pub(crate) async fn ask(client: &Client, namespace: &str, recorder: &Recorder) -> Result<String, Error> {
    let spec = json!({"expirationSeconds": LIFETIME_SECONDS});
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let url = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}/token");
    let request = http::Request::post(&url)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(request.to_string().into_bytes())
        .map_err(kube::Error::HttpError)
        .map_err(Error::request("ask for the operator's token"))?;
    let answer: Value = client.request(request).await.map_err(Error::request("ask for the operator's token"))?;
    let token = answer["status"]["token"].as_str().unwrap_or_default().to_owned();
    recorder.redactor().learn(&token);
    Ok(token)
}

/// Where a replica reads its token.
pub(crate) struct Credentials {
    pub(crate) client: Client,
    pub(crate) account: ServiceAccountDir,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) endpoint: Endpoint,
    /// The operator's namespace, where its account is, and the subjects'.
    pub(crate) operator_namespace: String,
    pub(crate) namespace: String,
}

impl Credentials {
    /// A kubeconfig with this token.
    pub(crate) fn write_kubeconfig(&self, token: &str) -> Result<(), Error> {
        let rendered = spiritlevel_cluster::kubeconfig::render(&self.endpoint, token, &self.namespace);
        std::fs::write(&self.kubeconfig, rendered).map_err(|e| Error::file("write", &self.kubeconfig, e))
    }

    /// Puts a new token in the place of the old one.
    pub(crate) async fn renew(&self, recorder: &Recorder) -> Result<(), Error> {
        let token = ask(&self.client, &self.operator_namespace, recorder).await?;
        self.account.set_token(&token)?;
        self.write_kubeconfig(&token)
    }
}
