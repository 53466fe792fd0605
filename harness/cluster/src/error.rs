//! What can go wrong with the surroundings. A failing operator is never one of these.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Component, Exit};

/// Why a control plane could not be brought up or used. Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// None of the four ways led to the control plane's binaries.
    #[error(
        "find the control plane's binaries ({wanted}). What was tried:\n{tried}\n\
         Do one of these: set SPIRITLEVEL_ASSETS to a directory that holds etcd, kube-apiserver and \
         kube-controller-manager; or copy the three to {}; or run once with network and `curl`, to download the upstream \
         releases; or install Go 1.26 or newer (https://go.dev/dl), to build them from source (7 minutes, once)",
        cache.display()
    )]
    NoAssets {
        /// Versions and platform.
        wanted: String,
        /// One line for each way.
        tried: String,
        /// Where a copy would be found.
        cache: PathBuf,
    },
    /// Nothing led to etcd's tool for snapshots.
    #[error(
        "find etcdutl, which restores snapshots of etcd. What was tried: {tried}. Copy it to {}, or install Go 1.26 or \
         newer (https://go.dev/dl)",
        cache.display()
    )]
    NoEtcdutl {
        /// Each way and why it did not help.
        tried: String,
        /// Where a copy would be found.
        cache: PathBuf,
    },
    /// A snapshot could not be taken or put back.
    #[error("{action} a snapshot of etcd: {reason}")]
    Snapshot {
        /// `take`, `restore`.
        action: &'static str,
        /// Why.
        reason: String,
    },
    /// `SPIRITLEVEL_ASSETS` names a directory that does not hold all three programs.
    #[error(
        "use SPIRITLEVEL_ASSETS={}: it has no executable file {}; put it there, or unset SPIRITLEVEL_ASSETS to let \
         spiritlevel get the binaries itself",
        directory.display(),
        missing.join(", ")
    )]
    AssetsIncomplete {
        /// The directory as given.
        directory: PathBuf,
        /// Names of what is not there.
        missing: Vec<&'static str>,
    },
    /// A program says that it is another version than the one asked for.
    #[error("use {}: it is {found}, and {wanted} is needed; replace it or remove its directory", binary.display())]
    WrongVersion {
        /// The program.
        binary: PathBuf,
        /// What it said.
        found: String,
        /// What was expected.
        wanted: String,
    },
    /// A program cannot even print its version.
    #[error("run {}: it does not start ({reason}); it may be built for another platform", binary.display())]
    NotRunnable {
        /// The program.
        binary: PathBuf,
        /// What the operating system or the program said.
        reason: String,
    },
    /// No room left.
    #[error("write below {}: no space left on the device; free some (a control plane needs about 150 MB), or set XDG_RUNTIME_DIR or TMPDIR to a larger file system", path.display())]
    DiskFull {
        /// A path on the full file system.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("{action} {}", path.display())]
    Io {
        /// What was being done, such as `write`.
        action: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// Why the operating system refused.
        #[source]
        source: io::Error,
    },
    /// The operating system gave no randomness.
    #[error("draw random tokens")]
    Random {
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Certificates could not be made.
    #[error("make the control plane's certificates")]
    Pki(#[from] rcgen::Error),
    /// No free port on the loopback address.
    #[error("reserve a port on 127.0.0.1")]
    NoPort(#[source] io::Error),
    /// Other programs took every port that had been reserved.
    #[error("start {component}: its port was taken by another program {attempts} times in a row; try again")]
    PortTaken {
        /// Who needed the port.
        component: Component,
        /// How often it was tried.
        attempts: u32,
    },
    /// A process could not be started or watched.
    #[error("run {component}")]
    Process {
        /// Which one.
        component: Component,
        /// Why.
        #[source]
        source: spiritlevel_supervise::Error,
    },
    /// A process could not be frozen or thawed.
    #[error("send a signal to {component}: it may have ended")]
    Signal {
        /// Which one.
        component: Component,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A process of the control plane ended on its own.
    #[error("keep the control plane running: {0}")]
    Ended(Exit),
    /// Something did not become ready in time.
    #[error("wait for {what}: not there after {} s; its last log lines:\n{log_tail}", after.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
        /// The end of the log of whoever should have done it.
        log_tail: String,
    },
    /// The controllers were to be restarted before they had been started.
    #[error("restart the controllers: they were never started")]
    NoControllers,
    /// The cluster was stopped before.
    #[error("use the control plane: it was stopped")]
    Stopped,
    /// An endpoint whose URL or certificates make no sense.
    #[error("use the endpoint {url}")]
    Endpoint {
        /// As given.
        url: String,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A pod was to be killed that is not running.
    #[error(
        "kill pod {namespace}/{name}: the kubelet stub knows no running pod of that name; wait for it to be Ready first"
    )]
    NoRunningPod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
    /// A request to the API server failed.
    #[error("{action}")]
    Kube {
        /// What was being done.
        action: String,
        /// The API server's answer, or why there was none.
        #[source]
        source: Box<kube::Error>,
    },
    /// No Docker daemon.
    #[error(
        "reach Docker: {reason}. The providers k3s and kind need it: start the daemon, or point DOCKER_HOST to one, and make \
         sure that you may use its socket (group `docker`); the provider local needs none"
    )]
    NoDocker {
        /// What the client said.
        reason: String,
    },
    /// Docker refused something.
    #[error("{action}: {reason}")]
    Docker {
        /// What was being done.
        action: String,
        /// What Docker said, and what helps where that is known.
        reason: String,
    },
    /// An image that is neither here nor in its registry.
    #[error(
        "get the image {image}: {reason}. Where there is no registry, build a stand-in with `kind-configs/images/build` and \
         name it: --cluster-image, SPIRITLEVEL_K3S_IMAGE, SPIRITLEVEL_KIND_IMAGE"
    )]
    NoImage {
        /// As asked for.
        image: String,
        /// What Docker said.
        reason: String,
    },
    /// A program in a container failed.
    #[error("run `{command}` in {container}: {status}{}{output}", if output.is_empty() { "" } else { ": " })]
    InContainer {
        /// The program and its arguments.
        command: String,
        /// Where.
        container: String,
        /// How it ended.
        status: String,
        /// What it said.
        output: String,
    },
    /// A node that the cluster does not have.
    #[error("find the node {name}: the cluster has {known}")]
    NoNode {
        /// As asked for.
        name: String,
        /// The nodes there are.
        known: String,
    },
    /// The kind CLI is missing.
    #[error(
        "find the kind CLI: it is not in the PATH, and {reason}; see https://kind.sigs.k8s.io, or use the provider k3s"
    )]
    NoKind {
        /// Why it could not be installed.
        reason: String,
    },
    /// kind's configuration makes no sense.
    #[error("read kind's configuration: {reason}")]
    KindConfig {
        /// What is wrong.
        reason: String,
    },
    /// Not a CRD at all.
    #[error("install a CRD: {reason}; expected an object of kind CustomResourceDefinition, apiextensions.k8s.io/v1")]
    NotACrd {
        /// What is missing or different.
        reason: String,
    },
    /// The API server does not accept a CRD.
    #[error("install the CRD {name}: the API server says: {message}")]
    CrdInvalid {
        /// `metadata.name`.
        name: String,
        /// The answer's message.
        message: String,
    },
    /// Another CRD of this name is installed already.
    #[error(
        "install the CRD {name}: another version of it is installed in this control plane; use a control plane of its own"
    )]
    CrdDiffers {
        /// `metadata.name`.
        name: String,
    },
    /// The garbage collector did not do its work, so no verdict about orphans would be worth anything.
    #[error(
        "prove garbage collection of {kind}: its object was still there {} s after its owner was deleted; the controller \
         manager may not have seen the kind: restart the controllers after installing CRDs",
        after.as_secs()
    )]
    NotCollected {
        /// The dependent's kind.
        kind: String,
        /// How long was waited.
        after: Duration,
    },
}

impl Error {
    /// A failed file operation, with a full disk told apart.
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { action, path, source },
        }
    }

    /// What Docker refused, with a remedy where one is known.
    pub(crate) fn docker(action: impl Into<String>, reason: impl Into<String>) -> Self {
        let (action, mut reason) = (action.into(), reason.into());
        if let Some(remedy) = remedy(&reason) {
            reason = format!("{reason}. {remedy}");
        }
        Self::Docker { action, reason }
    }

    /// A failed request.
    pub(crate) fn kube(action: impl Into<String>, source: kube::Error) -> Self {
        Self::Kube { action: action.into(), source: Box::new(source) }
    }
}

/// What helps against what Docker says.
fn remedy(reason: &str) -> Option<&'static str> {
    let says = |text: &str| reason.to_ascii_lowercase().contains(text);
    if says("unable to apply caps") {
        Some(
            "This machine lacks a capability that privileged containers are given: run dockerd with the runtime wrapper \
             kind-configs/docker/boundcaps (`.ci/docker start` does)",
        )
    } else if says("no space left on device") {
        Some(
            "Free some space where Docker keeps its data (`docker system df`, `docker system prune`): a cluster needs 2 GB",
        )
    } else if says("permission denied") {
        Some("You may not use Docker's socket: join the group `docker`, or run as its user")
    } else if says("cgroup") {
        Some("The kernel's control groups do not suit: `docker info` says which version and driver there are")
    } else if says("privileged") {
        Some("Nodes need privileged containers, which this Docker does not allow; use the provider local")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_refusals_come_with_a_remedy() {
        for (reason, expected) in [
            ("runc create failed: unable to apply caps: operation not permitted: unknown", "boundcaps"),
            ("write /x: no space left on device", "prune"),
            ("dial unix docker.sock: connect: permission denied", "group"),
            ("Some Other Thing", ""),
        ] {
            let text = Error::docker("start it", reason).to_string();
            assert!(text.starts_with(&format!("start it: {reason}")) && text.contains(expected), "{text}");
            assert_eq!(expected.is_empty(), text == format!("start it: {reason}"), "{text}");
        }
    }
}
