//! Providers `k3s` and `kind`: clusters of containers, with real kubelets and real pods.
//!
//! Both speak public contracts only, the image rancher/k3s and the kind CLI. What differs from `local`: the built-in
//! controllers do not pass our proxy, so that their writes have no author in the history.

mod accounts;
mod docker;
mod k3s;
mod kind;
mod nodes;
mod owner;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use base64::Engine;
use futures::future::BoxFuture;
use k8s_openapi::api::{
    core::v1::{Node as KubeNode, ServiceAccount},
    storage::v1::StorageClass,
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tokio::{sync::Mutex, task::JoinSet};

use crate::{
    Cluster, CollectionProof, Component, Endpoint, Error, Exit, Identity, Kind, canary, clean, connect,
    process::Deadline,
};
use docker::Docker;
use owner::Owned;

pub use k3s::{K3S_IMAGE, K3sOptions};
pub use kind::KindOptions;
pub use nodes::{Node, Nodes};
pub use owner::{Kept, sweep};

const INTERVAL: Duration = Duration::from_millis(100);

/// Whether containers can be made at all: Docker's version, or why not.
pub async fn docker_version() -> Result<String, Error> {
    Docker::connect().await?.version().await
}

/// Why a cluster of `image` (none: kind's own) with these images on its nodes cannot be made without pulling anything; `None`
/// where it can.
pub async fn lacking(image: Option<&str>, images: &[String]) -> Option<String> {
    let docker = match Docker::connect().await {
        Ok(docker) => docker,
        Err(e) => return Some(format!("failed to {e}")),
    };
    let Some(image) = image else {
        return Some("kind may pull its node image: name one that is here with SPIRITLEVEL_KIND_IMAGE".into());
    };
    for name in std::iter::once(image).chain(images.iter().map(String::as_str)) {
        match docker.has_image(name).await {
            Ok(true) => {}
            Ok(false) => return Some(format!("the image {name} is not here: `kind-configs/images/build` makes it")),
            Err(e) => return Some(format!("failed to {e}")),
        }
    }
    None
}

/// A running cluster of containers. Dropping it removes them; [`Cluster::stop`] says whether that worked.
pub struct ContainerCluster {
    provider: &'static str,
    version: String,
    endpoint: Endpoint,
    tokens: BTreeMap<Identity, String>,
    start_timeout: Duration,
    nodes: Nodes,
    agent: bool,
    /// How what is kept is found.
    kept: Option<String>,
    /// Nodes that ended although nobody asked them to.
    ended: Arc<OnceLock<Exit>>,
    watches: Mutex<JoinSet<()>>,
    owned: Mutex<Owned>,
}

/// What a provider has started.
struct Started {
    provider: &'static str,
    docker: Docker,
    owned: Owned,
    kubeconfig: Kubeconfig,
    containers: Vec<String>,
    init: nodes::Init,
    /// Whether there are kubelets.
    agent: bool,
    /// Whether a default StorageClass has to be made.
    wants_storage: bool,
    deadline: Deadline,
}

// === impl Started ===

impl Started {
    /// Waits until the API server, every node and the first account are ready, and makes our own accounts.
    async fn finish(mut self, keep: bool) -> Result<ContainerCluster, Error> {
        let endpoint = endpoint(&self.kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(self.kubeconfig.clone(), &KubeConfigOptions::default())
            .await
            .map_err(|source| Error::Endpoint { url: endpoint.url.clone(), source: Box::new(source) })?;
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(5));
        let admin = Client::try_from(config).map_err(|source| Error::kube("make a client for the cluster", source))?;
        self.until("the API server", || async {
            let ready = http::Request::get("/readyz").body(Vec::new()).ok()?;
            admin.request_text(ready).await.ok().map(drop)
        })
        .await?;
        let names = if self.agent { self.ready_nodes(&admin).await? } else { Vec::new() };
        let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "default");
        // Admission lets no pod in before the account is there.
        self.until("the ServiceAccount default/default", || async { accounts.get_opt("default").await.ok()? }).await?;
        let tokens = accounts::tokens(&admin).await?;
        if self.wants_storage {
            make_storage_class(&admin).await?;
        }
        let version = admin.apiserver_version().await.map_err(|source| Error::kube("ask for the version", source))?;
        let (network, gateway) = self.docker.gateway(&self.containers[0]).await?;
        let gateway = gateway.parse().map_err(|_| Error::Docker {
            action: format!("read the gateway of the network {network}"),
            reason: format!("{gateway} is no address"),
        })?;
        let list = paired(&names, &self.containers);
        let mut kept = None;
        if keep {
            let config = self.owned.keep(&Self::yaml(&self.kubeconfig)?)?;
            kept = Some(format!(
                "kept: `export KUBECONFIG={}` reaches the cluster, `docker exec -it {} sh` its node; `spiritlevel clean` \
                 removes it",
                config.display(),
                self.containers.first().map_or("", String::as_str),
            ));
        }
        let nodes = Nodes { docker: self.docker.clone(), list, network, gateway, init: self.init };
        let cluster = ContainerCluster {
            provider: self.provider,
            version: version.git_version,
            endpoint,
            tokens,
            start_timeout: self.deadline.limit(),
            nodes,
            agent: self.agent,
            kept,
            ended: Arc::default(),
            watches: Mutex::default(),
            owned: Mutex::new(self.owned),
        };
        Ok(cluster)
    }

    /// Waits until every container is a node that is Ready; their names.
    async fn ready_nodes(&self, admin: &Client) -> Result<Vec<String>, Error> {
        let wanted = self.containers.len();
        let api: Api<KubeNode> = Api::all(admin.clone());
        self.until("every node to be Ready", || async {
            let list = api.list(&ListParams::default()).await.ok()?.items;
            let ready = list.iter().all(|n| is_ready(n) && !is_tainted(n));
            (list.len() == wanted && ready).then(|| list.iter().map(ResourceExt::name_any).collect::<Vec<_>>())
        })
        .await
    }

    fn yaml(kubeconfig: &Kubeconfig) -> Result<String, Error> {
        serde_yaml::to_string(kubeconfig).map_err(|e| Error::KindConfig { reason: e.to_string() })
    }

    /// Asks until there is an answer; a node that ends meanwhile is the answer, too.
    async fn until<T, F>(&self, what: &str, ask: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Option<T>>,
    {
        until(&self.docker, &self.containers, self.deadline, what, ask).await
    }
}

async fn until<T, F>(
    docker: &Docker,
    containers: &[String],
    deadline: Deadline,
    what: &str,
    ask: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Option<T>>,
{
    loop {
        // A request may hang, for instance while the port is mapped but nobody listens yet.
        if let Ok(Some(found)) = tokio::time::timeout(Duration::from_secs(5), ask()).await {
            return Ok(found);
        }
        for container in containers {
            if let Some(status) = docker.ended(container).await? {
                let log_tail = docker.log_tail(container).await;
                return Err(Error::Ended(Exit { component: Component::Node, status, log_tail }));
            }
        }
        if deadline.is_over() {
            let log_tail = match containers.first() {
                Some(container) => docker.log_tail(container).await,
                None => String::new(),
            };
            return Err(Error::Timeout { what: what.to_owned(), after: deadline.limit(), log_tail });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Which container is which node. A node is named after its container's host name.
fn paired(names: &[String], containers: &[String]) -> Vec<Node> {
    let node = |container: &String| {
        let name = names.iter().find(|n| *n == container).or_else(|| names.first().filter(|_| containers.len() == 1));
        Node { name: name.unwrap_or(container).clone(), container: container.clone() }
    };
    containers.iter().map(node).collect()
}

fn is_ready(node: &KubeNode) -> bool {
    let mut conditions = node.status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions.any(|c| c.type_ == "Ready" && c.status == "True")
}

fn is_tainted(node: &KubeNode) -> bool {
    let mut taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
    taints.any(|t| t.key.starts_with("node.kubernetes.io/"))
}

fn endpoint(kubeconfig: &Kubeconfig) -> Result<Endpoint, Error> {
    let cluster = kubeconfig.clusters.first().and_then(|c| c.cluster.as_ref());
    let url = cluster.and_then(|c| c.server.clone()).unwrap_or_default();
    let wrong = |source: Box<dyn std::error::Error + Send + Sync>| Error::Endpoint { url: url.clone(), source };
    let ca = cluster.and_then(|c| c.certificate_authority_data.clone()).unwrap_or_default();
    let ca = base64::engine::general_purpose::STANDARD.decode(ca).map_err(|e| wrong(Box::new(e)))?;
    let ca_pem = String::from_utf8(ca).map_err(|e| wrong(Box::new(e)))?;
    Ok(Endpoint { url, ca_pem })
}

/// Volumes on the node's disk, made by the controller manager itself: no provisioner has to be pulled.
async fn make_storage_class(admin: &Client) -> Result<(), Error> {
    let class: StorageClass = serde_json::from_value(json!({
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/host-path",
        "allowVolumeExpansion": true,
    }))
    .expect("all required fields are given");
    let classes: Api<StorageClass> = Api::all(admin.clone());
    let made = classes.create(&PostParams::default(), &class).await;
    made.map(drop).map_err(|source| Error::kube("make a StorageClass", source))
}

// === impl ContainerCluster ===

impl ContainerCluster {
    /// A cluster in one container of rancher/k3s's contract.
    pub async fn start_k3s(options: K3sOptions, keep: bool, progress: &dyn crate::Progress) -> Result<Self, Error> {
        let docker = prepare(progress).await?;
        let started = k3s::start(docker, options, progress).await?;
        started.finish(keep).await?.watched().await
    }

    /// A cluster made by the kind CLI.
    pub async fn start_kind(options: KindOptions, keep: bool, progress: &dyn crate::Progress) -> Result<Self, Error> {
        let docker = prepare(progress).await?;
        let started = kind::start(docker, options, progress).await?;
        started.finish(keep).await?.watched().await
    }

    /// Notices when the first node ends.
    async fn watched(self) -> Result<Self, Error> {
        let mut watches = self.watches.lock().await;
        for node in &self.nodes.list {
            let (docker, container, ended) = (self.nodes.docker.clone(), node.container.clone(), self.ended.clone());
            watches.spawn(async move {
                loop {
                    docker.wait(&container).await;
                    // A scenario may restart a node; one that stays away is dead.
                    tokio::time::sleep(NODE_GONE).await;
                    if let Ok(Some(status)) = docker.ended(&container).await {
                        let log_tail = docker.log_tail(&container).await;
                        let _ = ended.set(Exit { component: Component::Node, status, log_tail });
                        return;
                    }
                }
            });
        }
        drop(watches);
        Ok(self)
    }

    async fn end(&self) -> Result<(), Error> {
        self.watches.lock().await.shutdown().await;
        self.owned.lock().await.remove().await
    }
}

/// So long a node may be away before it counts as dead: a scenario stops one for seconds, or a minute.
const NODE_GONE: Duration = Duration::from_secs(180);

async fn prepare(progress: &dyn crate::Progress) -> Result<Docker, Error> {
    let docker = Docker::connect().await?;
    match (sweep(Kept::Stays, progress).await, clean::sweep()) {
        (Ok(_), Ok(removed)) => removed.iter().for_each(|line| progress.say(&format!("removed {line}"))),
        // What others left behind is no reason not to start.
        (Err(error), _) | (_, Err(error)) => tracing::warn!(%error, "leftovers stay"),
    }
    Ok(docker)
}

impl Cluster for ContainerCluster {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn token(&self, identity: Identity) -> &str {
        self.tokens.get(&identity).map_or("", String::as_str)
    }

    fn client(&self, identity: Identity) -> Result<Client, Error> {
        connect(&self.endpoint, self.token(identity))
    }

    fn kept(&self) -> Option<String> {
        self.kept.clone()
    }

    fn nodes(&self) -> Option<&Nodes> {
        Some(&self.nodes).filter(|_| self.agent)
    }

    fn start_controllers<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<(), Error>> {
        // They run already, and straight to the API server.
        Box::pin(std::future::ready(Ok(())))
    }

    fn restart_controllers(&self) -> BoxFuture<'_, Result<(), Error>> {
        // The collector asks by itself which kinds there are, every 30 s.
        Box::pin(std::future::ready(Ok(())))
    }

    fn prove_collection<'a>(&'a self, kinds: &'a [Kind]) -> BoxFuture<'a, Result<CollectionProof, Error>> {
        Box::pin(async {
            let client = self.client(Identity::Harness)?;
            canary::prove(&client, kinds, self.start_timeout).await
        })
    }

    fn prove_namespace_deletion<'a>(&'a self, proof: &'a CollectionProof) -> BoxFuture<'a, Result<Duration, Error>> {
        Box::pin(async {
            let client = self.client(Identity::Harness)?;
            canary::prove_namespace_deletion(&client, proof, self.start_timeout).await
        })
    }

    fn alive(&self) -> Option<Exit> {
        self.ended.get().cloned()
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.end())
    }
}

/// How long something took, for a progress line.
fn seconds(since: Instant) -> String {
    format!("{:.1} s", since.elapsed().as_secs_f64())
}
