//! The nodes of a cluster of containers: what can be done to them and to the pods on them, for real.

use std::{net::IpAddr, time::Duration};

use super::docker::Docker;
use crate::Error;

/// How long a node may take to end when it is asked to. systemd in a container rarely does in time.
const GRACE: Duration = Duration::from_secs(2);

/// A node, which is a container of this machine's Docker.
#[derive(Clone, Debug)]
pub struct Node {
    /// As the API server knows it.
    pub name: String,
    /// As Docker knows it.
    pub(super) container: String,
}

/// Who runs containers and kubelets inside a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Init {
    /// One process that starts everything, and starts it again.
    K3s,
    /// systemd, with kubelet and containerd as units.
    Systemd,
}

/// All nodes of a cluster.
#[derive(Debug)]
pub struct Nodes {
    pub(super) docker: Docker,
    pub(super) list: Vec<Node>,
    pub(super) network: String,
    pub(super) gateway: IpAddr,
    pub(super) init: Init,
}

impl Nodes {
    /// Their names; the control plane's first.
    pub fn names(&self) -> Vec<&str> {
        self.list.iter().map(|n| n.name.as_str()).collect()
    }

    /// This machine as pods reach it.
    pub fn host_address(&self) -> IpAddr {
        self.gateway
    }

    fn node(&self, name: &str) -> Result<&Node, Error> {
        let found = self.list.iter().find(|n| n.name == name);
        found.ok_or_else(|| Error::NoNode { name: name.to_owned(), known: self.names().join(", ") })
    }

    /// Puts an image of this machine's Docker onto every node.
    pub async fn load_image(&self, image: &str) -> Result<(), Error> {
        let loads = self.list.iter().map(|n| self.docker.import_image(&n.container, image));
        futures::future::try_join_all(loads).await.map(drop)
    }

    /// Signals the main process of a pod's container. `id` is as in the pod's status: `containerd://…`.
    pub async fn signal_container(&self, node: &str, id: &str, signal: &str) -> Result<(), Error> {
        self.task(node, &["kill", "--signal", signal], id).await
    }

    /// Stops all processes of a pod's container, so that no probe is answered. Not by the freezer: into a frozen cgroup
    /// nothing can be executed, and the kubelet takes a probe that it could not make for no answer, neither good nor bad
    /// (tried on v1.36.3: the pod stays Ready).
    pub async fn pause_container(&self, node: &str, id: &str) -> Result<(), Error> {
        self.task(node, &["kill", "--all", "--signal", "SIGSTOP"], id).await
    }

    /// Lets them go on.
    pub async fn resume_container(&self, node: &str, id: &str) -> Result<(), Error> {
        self.task(node, &["kill", "--all", "--signal", "SIGCONT"], id).await
    }

    async fn task(&self, node: &str, what: &[&str], id: &str) -> Result<(), Error> {
        let id = id.rsplit('/').next().unwrap_or(id);
        let argv = [&["ctr", "--namespace", "k8s.io", "tasks"], what, &[id]].concat();
        self.docker.exec(&self.node(node)?.container, &argv).await.map(drop)
    }

    /// Ends a node: its processes get SIGTERM, and SIGKILL soon after.
    pub async fn stop(&self, node: &str) -> Result<(), Error> {
        self.docker.stop(&self.node(node)?.container, GRACE).await
    }

    /// Kills a node: SIGKILL for everything on it.
    pub async fn kill(&self, node: &str) -> Result<(), Error> {
        self.docker.kill(&self.node(node)?.container).await
    }

    /// Starts a node that was ended.
    pub async fn start(&self, node: &str) -> Result<(), Error> {
        self.docker.start(&self.node(node)?.container).await
    }

    /// Stops the clock of a node: requests to it hang.
    pub async fn pause(&self, node: &str) -> Result<(), Error> {
        self.docker.pause(&self.node(node)?.container).await
    }

    /// Lets it go on.
    pub async fn unpause(&self, node: &str) -> Result<(), Error> {
        self.docker.unpause(&self.node(node)?.container).await
    }

    /// Takes a node off the network.
    pub async fn cut(&self, node: &str) -> Result<(), Error> {
        self.docker.disconnect(&self.node(node)?.container, &self.network).await
    }

    /// Puts it back.
    pub async fn mend(&self, node: &str) -> Result<(), Error> {
        self.docker.connect_to(&self.node(node)?.container, &self.network).await
    }

    /// Stops the kubelet of a node; its pods go on unattended.
    pub async fn stop_kubelet(&self, node: &str) -> Result<(), Error> {
        self.kubelet(node, "stop", "STOP").await
    }

    /// Starts it again.
    pub async fn start_kubelet(&self, node: &str) -> Result<(), Error> {
        self.kubelet(node, "start", "CONT").await
    }

    async fn kubelet(&self, node: &str, systemctl: &str, signal: &str) -> Result<(), Error> {
        let container = &self.node(node)?.container;
        match self.init {
            Init::Systemd => self.docker.exec(container, &["systemctl", systemctl, "kubelet"]).await.map(drop),
            // k3s runs the kubelet inside itself, or starts it again at once: it can only be frozen, where it is a process.
            Init::K3s => {
                let frozen = self.docker.exec(container, &["pkill", &format!("-{signal}"), "-x", "kubelet"]).await;
                frozen.map(drop).map_err(|_| Error::Docker {
                    action: format!("{systemctl} the kubelet of {node}"),
                    reason: "k3s has no kubelet process of its own; use the provider kind".to_owned(),
                })
            }
        }
    }

    /// Restarts the container runtime of a node; its pods go on.
    pub async fn restart_runtime(&self, node: &str) -> Result<(), Error> {
        let container = &self.node(node)?.container;
        match self.init {
            Init::Systemd => self.docker.exec(container, &["systemctl", "restart", "containerd"]).await.map(drop),
            Init::K3s => self.docker.exec(container, &["pkill", "-KILL", "-x", "containerd"]).await.map(drop),
        }
    }
}
