//! The surroundings that the ladder looks at, read once.

use std::{ffi::OsString, path::PathBuf};

use super::{KUBERNETES_VERSION, platform};

/// Where binaries may come from. [`Sources::from_env`] suits everyone but tests.
#[derive(Debug, Clone)]
pub struct Sources {
    /// `SPIRITLEVEL_ASSETS`: a directory with the three programs.
    pub assets: Option<PathBuf>,
    /// Where programs are kept once they were downloaded or built.
    pub cache: PathBuf,
    /// Kubernetes' releases: `SPIRITLEVEL_KUBERNETES_URL`, for a mirror.
    pub kubernetes_url: String,
    /// etcd's releases: `SPIRITLEVEL_ETCD_URL`, for a mirror.
    pub etcd_url: String,
    /// The program that downloads.
    pub curl: OsString,
    /// The program that builds.
    pub go: OsString,
}

// === impl Sources ===

impl Sources {
    /// As the environment has it.
    pub fn from_env() -> Self {
        let url = |name: &str, upstream: &str| std::env::var(name).unwrap_or_else(|_| upstream.to_owned());
        Self {
            assets: std::env::var_os("SPIRITLEVEL_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from),
            cache: cache_root().join("spiritlevel"),
            kubernetes_url: url("SPIRITLEVEL_KUBERNETES_URL", "https://dl.k8s.io/release"),
            etcd_url: url("SPIRITLEVEL_ETCD_URL", "https://github.com/etcd-io/etcd/releases/download"),
            curl: "curl".into(),
            go: "go".into(),
        }
    }

    /// The cache's directory for this version and platform.
    pub fn cache_directory(&self) -> PathBuf {
        let (os, arch) = platform();
        self.cache.join(format!("{}-{os}-{arch}", KUBERNETES_VERSION.trim_start_matches('v')))
    }
}

/// `$XDG_CACHE_HOME`, else `~/.cache`, else, for users without a home, the directory for temporary files.
fn cache_root() -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
}
