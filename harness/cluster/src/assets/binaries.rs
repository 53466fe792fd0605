//! The three programs, and whether they are what they should be.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::{ETCD_VERSION, KUBERNETES_VERSION};
use crate::{Component, Error};

const COMPONENTS: [Component; 3] = [Component::Etcd, Component::ApiServer, Component::ControllerManager];

/// Paths of the three programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub kube_apiserver: PathBuf,
    /// kube-controller-manager.
    pub kube_controller_manager: PathBuf,
}

// === impl Binaries ===

impl Binaries {
    /// The programs in `directory`, or the names of those that are missing or cannot be executed.
    pub(super) fn in_directory(directory: &Path) -> Result<Self, Vec<&'static str>> {
        let missing: Vec<&str> =
            COMPONENTS.map(Component::program).into_iter().filter(|name| !is_program(&directory.join(name))).collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(Self {
            etcd: directory.join("etcd"),
            kube_apiserver: directory.join("kube-apiserver"),
            kube_controller_manager: directory.join("kube-controller-manager"),
        })
    }

    /// Asks each for its version; they must be of the pinned minor version.
    pub(super) async fn verify(&self) -> Result<(), Error> {
        let (etcd, api_server, controller_manager) = tokio::join!(
            verify(&self.etcd, "etcd Version: ", ETCD_VERSION),
            verify(&self.kube_apiserver, "Kubernetes v", KUBERNETES_VERSION),
            verify(&self.kube_controller_manager, "Kubernetes v", KUBERNETES_VERSION),
        );
        // In this order, so that the same mistake is always told in the same words.
        etcd.and(api_server).and(controller_manager)
    }
}

/// What `program --help` prints.
pub(crate) async fn help(program: &Path) -> Result<String, Error> {
    output(program, "--help").await
}

pub(super) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

async fn verify(program: &Path, before: &str, wanted: &str) -> Result<(), Error> {
    verify_by(program, "--version", before, wanted).await
}

/// Whether what the program prints when it is given `argument` is of the wanted minor version.
pub(super) async fn verify_by(program: &Path, argument: &str, before: &str, wanted: &str) -> Result<(), Error> {
    let output = output(program, argument).await?;
    let found = output.lines().next().unwrap_or_default().trim();
    let minor = |version: &str| {
        let mut parts = version.trim_start_matches('v').split('.').map(str::to_owned);
        (parts.next(), parts.next())
    };
    if found.strip_prefix(before).map(minor) == Some(minor(wanted)) {
        return Ok(());
    }
    Err(Error::WrongVersion { binary: program.to_owned(), found: format!("`{found}`"), wanted: wanted.to_owned() })
}

async fn output(program: &Path, argument: &str) -> Result<String, Error> {
    let not_runnable = |reason: String| Error::NotRunnable { binary: program.to_owned(), reason };
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.map_err(|error| not_runnable(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(not_runnable(format!("{}: {}", output.status, said.lines().next().unwrap_or_default())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
