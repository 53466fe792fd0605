//! Identities where there is no `--token-auth-file`: ServiceAccounts of ours, each with a token.

use std::{collections::BTreeMap, time::Duration};

use futures::future::try_join_all;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use serde_json::json;

use crate::{Error, Identity};

/// Where the accounts live.
const NAMESPACE: &str = "spiritlevel-system";
/// No invocation is longer.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Makes an account for every identity. Certificates, as kubeconfig files have, do not pass a proxy; tokens do.
pub(super) async fn tokens(admin: &Client) -> Result<BTreeMap<Identity, String>, Error> {
    let failed = |what: &'static str| move |source| Error::kube(what, source);
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.to_owned());
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    namespaces.create(&PostParams::default(), &namespace).await.map_err(failed("create our namespace"))?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "spiritlevel"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": format!("system:serviceaccounts:{NAMESPACE}"),
        }],
    }))
    .expect("all required fields are given");
    let bindings: Api<ClusterRoleBinding> = Api::all(admin.clone());
    bindings.create(&PostParams::default(), &binding).await.map_err(failed("grant our accounts their rights"))?;
    let made = try_join_all(Identity::ALL.into_iter().map(|identity| token(admin, identity))).await?;
    Ok(made.into_iter().collect())
}

async fn token(admin: &Client, identity: Identity) -> Result<(Identity, String), Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), NAMESPACE);
    // `spiritlevel:kubelet-stub` and `system:kube-controller-manager` are no names of objects.
    let name = identity.user_name().rsplit(':').next().unwrap_or_default().to_owned();
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let account = ServiceAccount { metadata, ..ServiceAccount::default() };
    let doing = |what: &str| format!("{what} the account {name}");
    let created = accounts.create(&PostParams::default(), &account).await;
    created.map_err(|source| Error::kube(doing("create"), source))?;
    let lifetime = i64::try_from(LIFETIME.as_secs()).ok();
    let spec = TokenRequestSpec { expiration_seconds: lifetime, ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = accounts.create_token_request(&name, &PostParams::default(), &request).await;
    let answer = answer.map_err(|source| Error::kube(doing("ask for a token of"), source))?;
    Ok((identity, answer.status.and_then(|s| s.token).unwrap_or_default()))
}
