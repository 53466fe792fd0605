//! Provider `kind`: the kind CLI, with a plain configuration.

use std::{
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use kube::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use super::{
    Started,
    docker::{Docker, is_port_taken},
    nodes::Init,
    owner::Owned,
    seconds,
};
use crate::{Component, Error, Progress, assets, local::ports::with_free_port, process::Deadline};

/// The CLI that is installed where there is none.
const MODULE: &str = "sigs.k8s.io/kind@v0.33.0";

const SINGLE: &str = include_str!("../../../../kind-configs/single.yaml");
const TWO_NODES: &str = include_str!("../../../../kind-configs/two-nodes.yaml");

/// What may differ between two clusters.
#[derive(Clone, Debug)]
pub struct KindOptions {
    /// A node image; left out: the one that belongs to this release of kind.
    pub image: Option<String>,
    /// Nodes, the control plane's included.
    pub nodes: u32,
    /// kind's configuration; left out: one from `kind-configs/`.
    pub config: Option<String>,
    /// Appended to kube-apiserver's command line.
    pub api_server_args: Vec<String>,
    /// How long everything may take together.
    pub start_timeout: Duration,
}

impl Default for KindOptions {
    fn default() -> Self {
        Self {
            image: None,
            nodes: 1,
            config: None,
            api_server_args: Vec::new(),
            start_timeout: Duration::from_secs(240),
        }
    }
}

impl KindOptions {
    /// The defaults, with the image that `SPIRITLEVEL_KIND_IMAGE` names.
    pub fn from_env() -> Self {
        Self { image: std::env::var("SPIRITLEVEL_KIND_IMAGE").ok(), ..Self::default() }
    }
}

pub(super) async fn start(docker: Docker, options: KindOptions, progress: &dyn Progress) -> Result<Started, Error> {
    let begun = Instant::now();
    let program = program(progress).await?;
    if let Some(image) = &options.image {
        docker.obtain(image, progress).await?;
    }
    let owned = Owned::new(&docker)?;
    let of = options.image.as_deref().unwrap_or("kind's own image");
    progress.say(&format!("creating a kind cluster of {of}"));
    let deadline = Deadline::after(options.start_timeout);
    let kubeconfig = owned.directory().path().join("kubeconfig");
    with_free_port(Component::Node, |port| create(&program, &docker, &options, &owned, port, progress)).await?;
    let read = std::fs::read_to_string(&kubeconfig).map_err(|source| Error::io("read", &kubeconfig, source))?;
    let kubeconfig = Kubeconfig::from_yaml(&read)
        .map_err(|source| Error::Endpoint { url: kubeconfig.display().to_string(), source: Box::new(source) })?;
    let (mut containers, _) = docker.named(owned.name()).await?;
    containers.sort_by_key(|c| (!c.ends_with("-control-plane"), c.clone()));
    progress.say(&format!("kind was done after {}", seconds(begun)));
    Ok(Started {
        provider: "kind",
        docker,
        owned,
        kubeconfig,
        containers,
        init: Init::Systemd,
        agent: true,
        wants_storage: false,
        deadline,
    })
}

async fn create(
    program: &PathBuf,
    docker: &Docker,
    options: &KindOptions,
    owned: &Owned,
    port: u16,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let config = owned.directory().write("kind.yaml", &config(options, port)?)?;
    let mut child = Command::new(program)
        .args(["create", "cluster", "--name", owned.name()])
        .args(options.image.iter().flat_map(|image| ["--image", image]))
        .arg("--config")
        .arg(&config)
        .arg("--kubeconfig")
        .arg(owned.directory().path().join("kubeconfig"))
        // A network of its own, so that it can go with the cluster.
        .env("KIND_EXPERIMENTAL_DOCKER_NETWORK", owned.name())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| Error::io("run", program, source))?;
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if line.trim_start().starts_with('✓') {
                progress.say(&format!("kind: {}", line.trim().trim_start_matches('✓').trim()));
            }
            said.push(line);
        }
    }
    let status = child.wait().await.map_err(|source| Error::io("wait for", program, source))?;
    if status.success() {
        return Ok(());
    }
    let (containers, _) = docker.named(owned.name()).await?;
    for container in containers {
        docker.remove(&container).await?;
    }
    let output = reason(&said);
    if output.contains("failed to pull image") {
        return Err(Error::NoImage { image: "of kind's nodes".to_owned(), reason: output });
    }
    if is_port_taken(&output) {
        return Err(Error::PortTaken { component: Component::Node, attempts: 1 });
    }
    Err(Error::docker("create a kind cluster", output))
}

/// What kind said, without its warning about control groups, which is no reason why it failed.
fn reason(said: &[String]) -> String {
    let lines = said.iter().filter(|line| !line.contains("cgroup v1 is deprecated")).map(String::as_str);
    lines.collect::<Vec<_>>().join("\n")
}

/// The configuration with our port and arguments.
fn config(options: &KindOptions, port: u16) -> Result<String, Error> {
    let text = options.config.as_deref().unwrap_or(if options.nodes > 1 { TWO_NODES } else { SINGLE });
    let invalid = |reason: String| Error::KindConfig { reason };
    let mut config: Value = serde_yaml::from_str(text).map_err(|e| invalid(e.to_string()))?;
    if config["kind"] != "Cluster" {
        return Err(invalid(format!("its kind is {}, not Cluster", config["kind"])));
    }
    config["networking"]["apiServerAddress"] = json!("127.0.0.1");
    config["networking"]["apiServerPort"] = json!(port);
    if !options.api_server_args.is_empty() {
        let args = options.api_server_args.iter().map(|a| {
            let (name, value) = a.trim_start_matches("--").split_once('=').unwrap_or((a, "true"));
            json!({"name": name.trim_start_matches("--"), "value": value})
        });
        let patch = json!({"kind": "ClusterConfiguration", "apiServer": {"extraArgs": args.collect::<Vec<_>>()}});
        let patch = serde_yaml::to_string(&patch).map_err(|e| invalid(e.to_string()))?;
        match config["kubeadmConfigPatches"].as_array_mut() {
            Some(patches) => patches.push(json!(patch)),
            None => config["kubeadmConfigPatches"] = json!([patch]),
        }
    }
    serde_yaml::to_string(&config).map_err(|e| invalid(e.to_string()))
}

/// The CLI: in the `PATH`, in our cache, or installed into it.
async fn program(progress: &dyn Progress) -> Result<PathBuf, Error> {
    if let Some(found) = in_path("kind") {
        return Ok(found);
    }
    let bin = assets::Sources::from_env().cache.join("bin");
    let cached = bin.join("kind");
    if cached.is_file() {
        return Ok(cached);
    }
    let Some(go) = in_path("go") else {
        return Err(Error::NoKind { reason: "there is no `go` to install it with".into() });
    };
    progress.say(&format!("installing {MODULE} (half a minute, once)"));
    std::fs::create_dir_all(&bin).map_err(|source| Error::io("make", &bin, source))?;
    let output = Command::new(&go)
        .args(["install", MODULE])
        .env("GOBIN", &bin)
        .env("CGO_ENABLED", "0")
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|source| Error::io("run", &go, source))?;
    if !output.status.success() || !cached.is_file() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::NoKind { reason: format!("`go install {MODULE}` failed: {}", said.trim()) });
    }
    Ok(cached)
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_and_arguments_are_put_into_the_configuration() {
        let options = KindOptions {
            nodes: 2,
            api_server_args: vec!["--watch-cache=false".into(), "--profiling".into()],
            ..KindOptions::default()
        };
        let config: Value = serde_yaml::from_str(&config(&options, 4711).unwrap()).unwrap();
        assert_eq!(config["nodes"].as_array().unwrap().len(), 2);
        assert_eq!(config["networking"]["apiServerPort"], 4711);
        let patches = config["kubeadmConfigPatches"].as_array().unwrap();
        let last: Value = serde_yaml::from_str(patches.last().unwrap().as_str().unwrap()).unwrap();
        let args = json!([{"name": "watch-cache", "value": "false"}, {"name": "profiling", "value": "true"}]);
        assert_eq!(last["apiServer"]["extraArgs"], args);
    }

    #[test]
    fn a_warning_is_no_reason() {
        let said = ["WARNING: cgroup v1 is deprecated", "ERROR: failed to create cluster"].map(str::to_owned);
        assert_eq!(reason(&said), "ERROR: failed to create cluster");
    }

    #[test]
    fn another_kind_of_file_is_refused() {
        let options = KindOptions { config: Some("kind: Pod".into()), ..KindOptions::default() };
        let error = config(&options, 1).unwrap_err().to_string();
        assert!(error.contains("Cluster"), "{error}");
    }
}
