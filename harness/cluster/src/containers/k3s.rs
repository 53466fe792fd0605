//! Provider `k3s`: one container, on testcontainers.

use std::time::{Duration, Instant};

use kube::config::Kubeconfig;
use testcontainers::{
    GenericImage, ImageExt,
    core::{IntoContainerPort, Mount},
    runners::AsyncRunner,
};

use super::{
    Started,
    docker::{Docker, causes, is_port_taken},
    nodes::Init,
    owner::Owned,
    seconds, until,
};
use crate::{Component, Error, Progress, local::ports::with_free_port, process::Deadline};

/// What is run unless something else is asked for.
pub const K3S_IMAGE: &str = "rancher/k3s:v1.36.3-k3s1";

/// The kubelet stub schedules, provisions volumes, and sends no heartbeats. What has a network has an agent.
const WITHOUT_AGENT: [&str; 6] = [
    "--disable-agent",
    "--disable-scheduler",
    "--disable-cloud-controller",
    "--disable-network-policy",
    "--flannel-backend=none",
    "--kube-controller-manager-arg=controllers=*,-node-lifecycle-controller,-taint-eviction-controller,\
     -node-ipam-controller,-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,\
     -horizontal-pod-autoscaler-controller",
];

const PORT: u16 = 6443;
const KUBECONFIG: &str = "/etc/rancher/k3s/k3s.yaml";

/// What may differ between two clusters.
#[derive(Clone, Debug)]
pub struct K3sOptions {
    /// An image of rancher/k3s's contract, `NAME:TAG`.
    pub image: String,
    /// Whether there is a node. Without, it is a control plane only.
    pub agent: bool,
    /// Appended to kube-apiserver's command line.
    pub api_server_args: Vec<String>,
    /// How long everything may take together, a pull aside.
    pub start_timeout: Duration,
}

impl Default for K3sOptions {
    fn default() -> Self {
        Self {
            image: K3S_IMAGE.to_owned(),
            agent: true,
            api_server_args: Vec::new(),
            start_timeout: Duration::from_secs(180),
        }
    }
}

impl K3sOptions {
    /// The defaults, with the image that `SPIRITLEVEL_K3S_IMAGE` names.
    pub fn from_env() -> Self {
        let default = Self::default();
        Self { image: std::env::var("SPIRITLEVEL_K3S_IMAGE").unwrap_or(default.image), ..default }
    }
}

pub(super) async fn start(docker: Docker, options: K3sOptions, progress: &dyn Progress) -> Result<Started, Error> {
    let begun = Instant::now();
    docker.obtain(&options.image, progress).await?;
    let owned = Owned::new(&docker)?;
    progress.say(&format!("starting {}", options.image));
    let port = with_free_port(Component::Node, |port| run(&docker, &options, &owned, port)).await?;
    let containers = vec![owned.name().to_owned()];
    let deadline = Deadline::after(options.start_timeout);
    let written = until(&docker, &containers, deadline, "k3s to write its kubeconfig", || async {
        let yaml = docker.exec(owned.name(), &["cat", KUBECONFIG]).await.ok()?;
        // It may be half written.
        let config = Kubeconfig::from_yaml(&yaml).ok()?;
        (!config.auth_infos.is_empty()).then_some(config)
    });
    let mut kubeconfig = written.await?;
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|c| c.cluster.as_mut()) {
        cluster.server = Some(format!("https://127.0.0.1:{port}"));
    }
    progress.say(&format!("k3s wrote its kubeconfig after {}", seconds(begun)));
    Ok(Started {
        provider: "k3s",
        docker,
        owned,
        kubeconfig,
        containers,
        init: Init::K3s,
        agent: options.agent,
        wants_storage: options.agent,
        deadline,
    })
}

async fn run(docker: &Docker, options: &K3sOptions, owned: &Owned, port: u16) -> Result<u16, Error> {
    let (name, tag) =
        options.image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).unwrap_or((&options.image, "latest"));
    let mut command = vec![
        "server".to_owned(),
        "--disable=traefik,servicelb,metrics-server,coredns,local-storage".to_owned(),
        "--tls-san=127.0.0.1".to_owned(),
    ];
    if options.agent {
        // Volumes without a provisioner's image.
        command.push("--kube-controller-manager-arg=enable-hostpath-provisioner=true".to_owned());
        // A kubelet can miss one of two changes of a pod that follow each other (`markPodProcessed` in its volume manager),
        // and shows the last one in downward API volumes with its next look at the pod: by default a minute later.
        command.push("--kubelet-arg=sync-frequency=10s".to_owned());
    } else {
        command.extend(WITHOUT_AGENT.map(ToOwned::to_owned));
    }
    command
        .extend(options.api_server_args.iter().map(|a| format!("--kube-apiserver-arg={}", a.trim_start_matches("--"))));
    let request = GenericImage::new(name, tag)
        .with_container_name(owned.name())
        // Becomes the node's name, and stays over restarts.
        .with_hostname(owned.name())
        .with_network(owned.name())
        // A published port changes with every restart; a mapped one stays.
        .with_mapped_port(port, PORT.tcp())
        .with_privileged(options.agent)
        .with_mount(Mount::tmpfs_mount("/run"))
        .with_cmd(command)
        .with_env_var("K3S_KUBECONFIG_MODE", "644")
        .with_startup_timeout(options.start_timeout);
    match request.start().await {
        Ok(container) => {
            // It has an owner already, which removes it by name, also outside of a runtime.
            std::mem::forget(container);
            Ok(port)
        }
        Err(e) => {
            let reason = causes(&e);
            // What was made of it before it failed.
            docker.remove(owned.name()).await?;
            if is_port_taken(&reason) {
                return Err(Error::PortTaken { component: Component::Node, attempts: 1 });
            }
            Err(Error::docker(format!("start a container of {}", options.image), reason))
        }
    }
}
