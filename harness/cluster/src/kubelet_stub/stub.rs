//! The handle that a runner holds.

use std::sync::Arc;

use kube::{Api, Client};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    driver::{Shared, drive},
    node,
    rules::{KubeletRules, PodState},
    watch::follow,
    world::News,
};
use crate::Error;

/// A running kubelet stub. Dropping it ends it, too; what it wrote stays.
#[derive(Debug)]
pub struct KubeletStub {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

// === impl KubeletStub ===

impl KubeletStub {
    /// Creates the Node and the default StorageClass where they are missing, and begins to serve every namespace.
    ///
    /// `client` should be of an identity of its own, since what it writes is attributed to `kubelet-stub`.
    pub async fn start(client: Client) -> Result<Self, Error> {
        node::ensure(&client)
            .await
            .map_err(|source| Error::kube("create the kubelet stub's Node and StorageClass", source))?;
        let shared = Arc::new(Shared::new());
        let (out, news) = mpsc::channel(1024);
        let mut tasks = JoinSet::new();
        let epoch = || shared.epoch.subscribe();
        tasks.spawn(follow(Api::all(client.clone()), epoch(), out.clone(), News::Pod));
        tasks.spawn(follow(Api::all(client.clone()), epoch(), out.clone(), News::Claim));
        tasks.spawn(follow(Api::all(client.clone()), epoch(), out.clone(), News::Volume));
        tasks.spawn(follow(Api::all(client.clone()), epoch(), out, News::Class));
        tasks.spawn(drive(Arc::clone(&shared), client, news));
        Ok(Self { shared, tasks })
    }

    /// The rules of `namespace` from now on. A namespace without rules has [`KubeletRules::default`].
    pub fn rules(&self, namespace: &str, rules: KubeletRules) {
        self.shared.world().set_rules(namespace, rules);
        self.shared.nudge.notify_one();
    }

    /// The run of `namespace` is over: its rules and states go, its pods are served by the defaults until they are gone.
    pub fn forget(&self, namespace: &str) {
        self.shared.world().forget(namespace);
        self.shared.nudge.notify_one();
    }

    /// What is still to be done in `namespace`, a line for each object, such as `pod pg-1-0: starting`; empty when the
    /// stub will not write there before somebody else does.
    ///
    /// It knows of what its watches have delivered: an object created a moment ago may not be among it.
    pub fn busy(&self, namespace: &str) -> Vec<String> {
        self.shared.world().busy(namespace, self.shared.now())
    }

    /// Counts up whenever [`Self::busy`] may say something else, so that nobody has to poll.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.ticks.subscribe()
    }

    /// Puts the pod of this name into `state` until [`Self::clear_pod`] or [`Self::forget`].
    ///
    /// A state that ends the pod (exited, evicted, Succeeded, Failed) is for the pod of that name now, or for the first
    /// one to come; its successor starts as usual. The others are for whatever pod has the name.
    pub fn set_pod(&self, namespace: &str, name: &str, state: PodState) {
        self.shared.world().set_pod((namespace.to_owned(), name.to_owned()), Some(state));
        self.shared.nudge.notify_one();
    }

    /// Lifts the state of [`Self::set_pod`]: the pod does what its rules say.
    pub fn clear_pod(&self, namespace: &str, name: &str) {
        self.shared.world().set_pod((namespace.to_owned(), name.to_owned()), None);
        self.shared.nudge.notify_one();
    }

    /// The containers of a running pod die with exit code 137. By its restart policy they are started again after
    /// [`KubeletRules::restart_after`], with one restart more, or the pod is Failed.
    ///
    /// Fails if the stub knows no such running pod. It may hear of one a moment after others do: try again on
    /// [`Self::changes`].
    pub fn kill_pod(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let killed = self.shared.world().kill_pod(&(namespace.to_owned(), name.to_owned()), self.shared.now());
        self.shared.nudge.notify_one();
        if killed {
            Ok(())
        } else {
            Err(Error::NoRunningPod { namespace: namespace.to_owned(), name: name.to_owned() })
        }
    }

    /// Forgets every object and lists again, as is needed after etcd was restored from a snapshot: old versions may be
    /// the newest then. Rules and states stay.
    pub fn relist(&self) {
        self.shared.world().distrust();
        self.shared.epoch.send_modify(|epoch| *epoch += 1);
    }

    /// Ends the stub: no request of it is under way afterwards.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
