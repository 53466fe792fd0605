//! A lane: one control plane that serves many runs, each in namespaces of its own.

use crate::{Error, hub::Hub, place::Place, witness::Witness};
use kube::Client;
use serde_json::Value;
use spiritlevel_cluster::{Cluster, Endpoint, Identity, Kind, Nodes, Progress, connect, kubelet_stub::KubeletStub};
use spiritlevel_model::Actor;
use spiritlevel_proxy::{HostPort, Listener, Proxy, Upstream};
use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{sync::Mutex, task::JoinSet, time::Instant};

/// A control plane with its witness, its proxy and its kubelet stub.
pub struct Lane {
    cluster: Arc<dyn Cluster>,
    proxy: Proxy,
    hub: Arc<Hub>,
    witness: Witness,
    /// Only where there are no real ones.
    kubelet: Option<KubeletStub>,
    clients: Clients,
    /// Where the scenario's user speaks to the API server.
    user: Endpoint,
    listeners: Vec<Listener>,
    kinds: Vec<Kind>,
    times: LaneTimes,
    /// Proves the deletion of a namespace, beside the runs.
    canary: Mutex<JoinSet<()>>,
    /// Why it cannot be used, although its processes live.
    unproven: Arc<OnceLock<String>>,
}

/// How long a lane took to start.
#[derive(Clone, Copy, Debug)]
pub struct LaneTimes {
    /// Until everything was ready.
    pub total: Duration,
    /// Of that, until garbage collection was proven.
    pub collection: Duration,
}

/// One client for each actor of ours; all go through the proxy, so that every write has an author.
#[derive(Clone)]
pub struct Clients {
    /// Prepares runs and clears up after them.
    pub arrange: Client,
    /// The scenario's steps.
    pub user: Client,
    /// The second round.
    pub probe: Client,
    /// Changes of children by somebody else.
    pub drift: Client,
    /// Touches before a conflict.
    pub conflict: Client,
    /// Touches for a duplicate reconcile.
    pub touch: Client,
    /// Releases leases of the dead.
    pub lease: Client,
    /// Takes permissions from the operator and gives them back.
    pub revoke: Client,
    /// Makes and removes configurations of webhooks.
    pub webhook: Client,
}

impl Lane {
    /// Starts a control plane with these CRDs, until garbage collection is proven.
    pub async fn start(place: &Place, crds: Vec<Value>, progress: &dyn Progress) -> Result<Self, Error> {
        let begun = Instant::now();
        let cluster = place.start(progress).await?;
        let endpoint = cluster.endpoint().clone();
        // Pods reach this machine at another address than its own processes do.
        let addresses: Vec<IpAddr> = cluster.nodes().map(Nodes::host_address).into_iter().collect();
        let proxy = Proxy::reached_at(Upstream { url: endpoint.url, ca_pem: endpoint.ca_pem }, &addresses)?;
        let hub = Arc::new(Hub::default());
        let mut listeners = Vec::new();
        let mut listen = |actor: Actor| -> Result<Endpoint, Error> {
            let listener = proxy.listen(actor, Arc::new(HostPort::new()), hub.clone())?;
            let endpoint = Endpoint { url: listener.url(), ca_pem: proxy.ca_pem().to_owned() };
            listeners.push(listener);
            Ok(endpoint)
        };
        let controllers = listen(Actor("kube-controller-manager".into()))?;
        let user = listen(Actor::user())?;
        let mut client = |actor: Actor, identity: Identity| -> Result<Client, Error> {
            Ok(connect(&listen(actor)?, cluster.token(identity))?)
        };
        let clients = Clients {
            arrange: client(Actor::harness("arrange"), Identity::Harness)?,
            user: connect(&user, cluster.token(Identity::User))?,
            probe: client(Actor::harness("probe"), Identity::Harness)?,
            drift: client(Actor::harness("drift"), Identity::Harness)?,
            conflict: client(Actor::harness("conflict"), Identity::Harness)?,
            touch: client(Actor::harness("touch"), Identity::Harness)?,
            lease: client(Actor::harness("lease"), Identity::Harness)?,
            revoke: client(Actor::harness("revoke"), Identity::Harness)?,
            webhook: client(Actor::harness("webhook"), Identity::Harness)?,
        };
        let stub = client(Actor::kubelet_stub(), Identity::KubeletStub)?;
        // Before the controllers: the collector then knows the kinds from its first moment on.
        if !crds.is_empty() {
            progress.say(&format!("installing {} CRDs", crds.len()));
            spiritlevel_cluster::crds::install(&cluster.client(Identity::Admin)?, crds).await?;
        }
        let witness = Witness::new(cluster.client(Identity::Witness)?, hub.clone());
        let (controllers, kinds, kubelet) = tokio::join!(
            async { cluster.start_controllers(&controllers).await.map_err(Error::from) },
            witness.extend(),
            async {
                match cluster.nodes() {
                    None => KubeletStub::start(stub).await.map(Some).map_err(Error::from),
                    Some(_) => Ok(None),
                }
            },
        );
        controllers?;
        let (kinds, kubelet) = (kinds?, kubelet?);
        if cluster.nodes().is_some() {
            progress.say("proving garbage collection; its controller looks for new kinds every 30 s");
        }
        let custom: Vec<Kind> = kinds.iter().filter(|k| is_custom(k)).cloned().collect();
        let proof = cluster.prove_collection(&custom).await?;
        let times = LaneTimes { total: begun.elapsed(), collection: proof.took };
        // The namespace controller always takes five seconds; runs do not wait for it, but they must know.
        let (mut canary, unproven) = (JoinSet::new(), Arc::new(OnceLock::new()));
        let (of, told) = (cluster.clone(), unproven.clone());
        canary.spawn(async move {
            if let Err(e) = of.prove_namespace_deletion(&proof).await {
                let _ = told.set(format!("namespaces are not deleted: {}", Error::from(e).chain()));
            }
        });
        let canary = Mutex::new(canary);
        Ok(Self { cluster, proxy, hub, witness, kubelet, clients, user, listeners, kinds, times, canary, unproven })
    }

    /// The control plane itself, beside the proxy.
    pub fn cluster(&self) -> &dyn Cluster {
        self.cluster.as_ref()
    }

    /// Its nodes, where pods are real.
    pub fn nodes(&self) -> Option<&Nodes> {
        self.cluster.nodes()
    }

    /// The proxy, for the operator's own listeners.
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Where versions and shared exchanges come from.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Our own clients.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Where our own clients, the kubelet stub and the built-in controllers are heard.
    pub(crate) fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Sees every object version.
    pub(crate) fn witness(&self) -> &Witness {
        &self.witness
    }

    /// Nothing that is seen on it can be trusted from now on.
    pub(crate) fn give_up(&self, why: String) {
        let _ = self.unproven.set(why);
    }

    /// Waits until nothing is proven any more: the canaries speak to the API server.
    pub(crate) async fn until_proven(&self) {
        while self.canary.lock().await.join_next().await.is_some() {}
    }

    /// The stand-in for kubelets, where there are none.
    pub fn kubelet(&self) -> Option<&KubeletStub> {
        self.kubelet.as_ref()
    }

    /// The kinds that are served.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Version of Kubernetes.
    pub fn version(&self) -> &str {
        self.cluster.version()
    }

    /// A kubeconfig of the scenario's user, for its scripts.
    pub fn user_kubeconfig(&self, dir: &Path, namespace: &str) -> Result<PathBuf, Error> {
        let path = dir.join("user.kubeconfig");
        let token = self.cluster.token(Identity::User);
        let rendered = spiritlevel_cluster::kubeconfig::render(&self.user, token, namespace);
        std::fs::write(&path, rendered).map_err(|e| Error::file("write", &path, e))?;
        Ok(path)
    }

    /// How long it took to start.
    pub fn times(&self) -> LaneTimes {
        self.times
    }

    /// Why it is dead, if it is.
    pub fn failure(&self) -> Option<String> {
        self.cluster.alive().map(|exit| exit.to_string()).or_else(|| self.unproven.get().cloned())
    }

    /// Ends everything. Watches are cut first: an API server waits for them.
    pub async fn stop(self) -> Result<(), Error> {
        self.canary.lock().await.shutdown().await;
        self.witness.stop().await;
        if let Some(kubelet) = self.kubelet {
            kubelet.stop().await;
        }
        for listener in self.listeners {
            listener.stop().await;
        }
        Ok(self.cluster.stop().await?)
    }
}

fn is_custom(kind: &Kind) -> bool {
    kind.group.contains('.') && !kind.group.ends_with(".k8s.io") && !kind.group.ends_with(".kubernetes.io")
}
