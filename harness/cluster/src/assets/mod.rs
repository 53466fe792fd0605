//! Where the control plane's binaries come from: a ladder of four steps, each saying what it does.
//!
//! `SPIRITLEVEL_ASSETS` → the cache → the upstream releases, verified → `go build` from pinned modules.

mod binaries;
mod build;
mod cache;
mod download;
mod etcdutl;
mod ladder;
mod sources;

pub use binaries::Binaries;
pub use ladder::obtain;
pub use sources::Sources;

pub(crate) use binaries::help;
pub(crate) use etcdutl::etcdutl;

/// The version of kube-apiserver and kube-controller-manager.
pub const KUBERNETES_VERSION: &str = "v1.36.3";
/// The version of etcd, as Kubernetes' own release notes pair it.
pub const ETCD_VERSION: &str = "v3.6.14";

/// This machine as Go names it, such as (`linux`, `amd64`).
fn platform() -> (&'static str, &'static str) {
    let os = if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    (os, arch)
}
