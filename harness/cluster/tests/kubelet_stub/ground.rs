//! One control plane and one stub for all trials, a namespace for each.

use std::{error::Error, fmt::Debug, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{Namespace, PersistentVolume, ServiceAccount},
};
use kube::{
    Api, Client, Resource,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::wait::{Condition, await_condition},
};
use libtest_mimic::Failed;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use spiritlevel_cluster::{
    Cluster, Identity, LocalCluster, LocalOptions,
    kubelet_stub::{KubeletRules, KubeletStub},
};
use tokio::runtime::Runtime;

use crate::objects::is_ready;

/// No wait of a trial takes longer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// A trial.
pub(crate) type Test = for<'a> fn(&'a Corner<'a>) -> BoxFuture<'a, Outcome>;

/// What all trials share; made by the first.
pub(crate) struct Ground {
    pub(crate) runtime: Runtime,
    pub(crate) cluster: LocalCluster,
    pub(crate) stub: KubeletStub,
}

/// One trial's corner.
pub(crate) struct Corner<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

// === impl Ground ===

impl Ground {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let (cluster, stub) = runtime.block_on(async {
            let cluster = LocalCluster::start(LocalOptions::default(), &|text: &str| eprintln!("{text}")).await?;
            let endpoint = cluster.endpoint().clone();
            cluster.start_controllers(&endpoint).await?;
            let stub = KubeletStub::start(cluster.client(Identity::KubeletStub)?).await?;
            Ok::<_, Box<dyn Error>>((cluster, stub))
        })?;
        Ok(Self { runtime, cluster, stub })
    }

    pub(crate) fn run(&self, name: &str, test: Test) -> Result<(), Failed> {
        self.runtime.block_on(async {
            let namespace: String = name.replace('_', "-").chars().take(40).collect();
            let client = self.cluster.client(Identity::User)?;
            let corner = Corner { ground: self, client, namespace: namespace.trim_end_matches('-').to_owned() };
            corner.arrange().await?;
            let outcome = test(&corner).await;
            let busy = self.stub.busy(&corner.namespace);
            outcome.map_err(|error| Failed::from(format!("{error}; the stub says: {busy:?}")))?;
            self.stub.forget(&corner.namespace);
            Ok(())
        })
    }

    pub(crate) fn end(self) {
        let Self { runtime, cluster, stub } = self;
        runtime.block_on(async {
            stub.stop().await;
            if let Err(error) = cluster.stop().await {
                eprintln!("failed to stop the control plane: {error}");
            }
        });
    }
}

// === impl Corner ===

impl Corner<'_> {
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn rules(&self, rules: KubeletRules) {
        self.ground.stub.rules(&self.namespace, rules);
    }

    pub(crate) async fn arrange(&self) -> Outcome {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": self.namespace}}))?;
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        // Without its account, admission refuses pods.
        let accounts = self.api::<ServiceAccount>();
        let there = await_condition(accounts, "default", |account: Option<&_>| account.is_some());
        tokio::time::timeout(DEADLINE, there).await??;
        Ok(())
    }

    pub(crate) async fn create<K>(&self, object: K) -> Result<K, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        self.api::<K>().create(&PostParams::default(), &object).await
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> Result<K, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    pub(crate) async fn wait<K>(&self, name: &str, condition: impl Condition<K>) -> Outcome
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Send
            + Sync
            + DeserializeOwned
            + 'static,
    {
        let waiting = await_condition(self.api::<K>(), name, condition);
        tokio::time::timeout(DEADLINE, waiting).await.map_err(|_| format!("waited too long for {name}"))??;
        Ok(())
    }

    pub(crate) async fn gone<K>(&self, name: &str) -> Outcome
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Send
            + Sync
            + DeserializeOwned
            + 'static,
    {
        self.wait(name, |object: Option<&K>| object.is_none()).await
    }

    pub(crate) async fn ready(&self, name: &str) -> Outcome {
        self.wait(name, is_ready).await
    }

    pub(crate) async fn idle(&self) -> Outcome {
        idle(&self.ground.stub, &self.namespace).await
    }

    /// Names of the volumes whose claims are or were in this namespace.
    pub(crate) async fn volumes(&self) -> Result<Vec<String>, kube::Error> {
        let all = Api::<PersistentVolume>::all(self.client.clone()).list(&ListParams::default()).await?;
        let here = all.into_iter().filter(|volume| {
            let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
            reference.and_then(|reference| reference.namespace.as_ref()) == Some(&self.namespace)
        });
        Ok(here.filter_map(|volume| volume.metadata.name).collect())
    }

    /// Waits until no volume of this namespace is left.
    pub(crate) async fn reclaimed(&self) -> Outcome {
        for name in self.volumes().await? {
            let api = Api::<PersistentVolume>::all(self.client.clone());
            let gone = await_condition(api, &name, |volume: Option<&PersistentVolume>| volume.is_none());
            tokio::time::timeout(DEADLINE, gone).await.map_err(|_| format!("volume {name} is never reclaimed"))??;
        }
        Ok(())
    }
}

// === helpers ===

/// Waits until the stub has nothing left to do in `namespace`.
pub(crate) async fn idle(stub: &KubeletStub, namespace: &str) -> Outcome {
    until(stub, "the stub is idle", |stub| stub.busy(namespace).is_empty()).await
}

/// Waits until `holds`, asked again whenever the stub has heard or done something.
pub(crate) async fn until(stub: &KubeletStub, what: &str, holds: impl Fn(&KubeletStub) -> bool) -> Outcome {
    let mut changes = stub.changes();
    let waiting = async {
        while !holds(stub) {
            changes.changed().await?;
        }
        Ok::<_, Box<dyn Error>>(())
    };
    tokio::time::timeout(DEADLINE, waiting).await.map_err(|_| format!("waited too long until {what}"))?
}

/// Rules with which nothing takes time that it need not take.
pub(crate) fn quick() -> KubeletRules {
    KubeletRules {
        pod_ready_after: Duration::from_millis(20),
        stop_after: Duration::ZERO,
        restart_after: Duration::from_millis(20),
        ..KubeletRules::default()
    }
}
