//! Where runs are made: which control plane a plan needs, and whether it can be had.

use crate::Error;
use spiritlevel_cluster::{
    Cluster, ContainerCluster, LocalCluster, LocalOptions, Progress,
    containers::{self, K3sOptions, KindOptions},
};
use spiritlevel_model::{plan::Plan, suite::Provider};
use std::{path::Path, sync::Arc};

/// Control planes of processes at once: each takes 400 MB and a start of 5 s.
const MOST_LANES: usize = 4;
/// Of containers, with kubelets and pods, two are enough for two cores.
const MOST_CLUSTERS: usize = 2;

/// Which control plane a run needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// How it is made.
    pub provider: Provider,
    /// The image of its nodes, where it has any.
    pub image: Option<String>,
    /// So many nodes.
    pub nodes: u32,
    /// kind's configuration.
    pub config: Option<String>,
    /// Whether k3s has a node.
    pub agent: bool,
    /// Images that every node needs.
    pub images: Vec<String>,
    /// Further arguments of kube-apiserver.
    pub api_server_args: Vec<String>,
    /// Whether it stays when its runs are over.
    pub keep: bool,
}

impl Place {
    /// Makes one.
    pub(crate) async fn start(&self, progress: &dyn Progress) -> Result<Arc<dyn Cluster>, Error> {
        let api_server_args = self.api_server_args.clone();
        let cluster: Arc<dyn Cluster> = match self.provider {
            Provider::Local => Arc::new(
                LocalCluster::start(LocalOptions { api_server_args, ..LocalOptions::default() }, progress).await?,
            ),
            Provider::K3s => {
                let default = K3sOptions::from_env();
                let image = self.image.clone().unwrap_or(default.image);
                let options = K3sOptions { image, agent: self.agent, api_server_args, ..default };
                Arc::new(ContainerCluster::start_k3s(options, self.keep, progress).await?)
            }
            Provider::Kind => {
                let default = KindOptions::from_env();
                let image = self.image.clone().or(default.image);
                let (nodes, config) = (self.nodes, self.config.clone());
                let options = KindOptions { image, nodes, config, api_server_args, ..default };
                Arc::new(ContainerCluster::start_kind(options, self.keep, progress).await?)
            }
        };
        if let Some(nodes) = cluster.nodes() {
            for image in &self.images {
                progress.say(&format!("loading {image}"));
                nodes.load_image(image).await?;
            }
        }
        Ok(cluster)
    }
}

impl Place {
    /// Whether a run that asks for `other` can be here; images can be added.
    pub(crate) fn serves(&self, other: &Self) -> bool {
        Self { images: Vec::new(), ..self.clone() } == Self { images: Vec::new(), ..other.clone() }
    }

    /// So many of them at once, whatever `--jobs` says.
    pub(crate) fn most(&self) -> usize {
        if self.provider == Provider::Local { MOST_LANES } else { MOST_CLUSTERS }
    }
}

/// Where a run is made.
pub(crate) fn place(plan: &Plan, keep: bool) -> Result<Place, Error> {
    let cluster = &plan.suite.cluster;
    let read = |name: &String| {
        let path = Path::new(&plan.suite_dir).join(name);
        std::fs::read_to_string(&path).map_err(|e| Error::file("read", &path, e))
    };
    let config = cluster.config.as_ref().filter(|_| cluster.provider == Provider::Kind).map(read).transpose()?;
    let real = cluster.has_real_pods();
    Ok(Place {
        provider: cluster.provider,
        image: cluster.image.clone().filter(|_| cluster.provider != Provider::Local),
        nodes: nodes(plan),
        config,
        agent: !cluster.is_control_plane_only(),
        images: if real { images(plan) } else { Vec::new() },
        api_server_args: cluster.apiserver_args.clone(),
        keep,
    })
}

/// What every node needs before the run.
fn images(plan: &Plan) -> Vec<String> {
    let operator = plan.suite.operator.inside().and_then(|d| d.image.clone());
    plan.suite.cluster.images.iter().cloned().chain(operator).collect()
}

fn nodes(plan: &Plan) -> u32 {
    plan.scenario.requires.and_then(|r| r.nodes).unwrap_or(1).max(1)
}

/// Why the control plane that a plan asks for cannot be made here, as things are; `None` where it can. For those who would
/// rather skip than fail.
pub async fn lacking(plan: &Plan) -> Option<String> {
    let cluster = &plan.suite.cluster;
    let image = match cluster.provider {
        Provider::Local => return None,
        Provider::K3s => Some(K3sOptions::from_env().image),
        Provider::Kind => KindOptions::from_env().image,
    };
    let images = if cluster.has_real_pods() { cluster.images.as_slice() } else { &[] };
    // The operator's own is made when it is needed.
    containers::lacking(cluster.image.as_ref().or(image.as_ref()).map(String::as_str), images).await
}

/// What this provider cannot do for a scenario.
pub(crate) fn cannot(plan: &Plan) -> Option<String> {
    let (cluster, requires) = (&plan.suite.cluster, plan.scenario.requires.unwrap_or_default());
    let provider = cluster.provider;
    let name = if cluster.is_control_plane_only() { "k3s without its agent" } else { provider.name() };
    if !cluster.agent && provider == Provider::Kind {
        return Some("cluster.agent is false; provider kind has a kubelet on every node".into());
    }
    if requires.real_pods && !cluster.has_real_pods() {
        return Some(format!("needs pods that run (requires.realPods); provider {name} has a kubelet stub"));
    }
    if plan.suite.operator.is_inside() && !cluster.has_real_pods() {
        return Some(format!("runs the operator inside the cluster; provider {name} runs no pods"));
    }
    let nodes = nodes(plan);
    let most = match provider {
        Provider::Local | Provider::K3s => 1,
        Provider::Kind => 2,
    };
    // A configuration of the suite's own has as many as it says.
    (nodes > most && plan.suite.cluster.config.is_none())
        .then(|| format!("needs {nodes} nodes (requires.nodes); provider {name} has {most}"))
}
