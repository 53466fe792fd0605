//! `spiritlevel doctor`.

use crate::{Error, Exit, voice::say};
use spiritlevel_cluster::assets::{KUBERNETES_VERSION, Sources, obtain};
use spiritlevel_operator::Isolation;
use std::{net::TcpListener, path::Path, path::PathBuf};
use tokio::process::Command;

/// A control plane's data and logs, and some runs.
const DISK: u64 = 500 << 20;

/// What came of looking.
enum Sign {
    /// As it should be.
    Good,
    /// Runs are possible, with less.
    Less,
    /// No runs are possible.
    Bad,
}

/// One thing that was looked at.
struct Look {
    what: &'static str,
    sign: Sign,
    found: String,
    remedy: Option<String>,
}

/// Looks whether this machine has what is needed.
pub(super) async fn doctor() -> Result<Exit, Error> {
    let mut exit = Exit::Pass;
    let (go, curl) = (program("go", "version").await, program("curl", "--version").await);
    let obtainable = [&go, &curl].iter().any(|look| matches!(look.sign, Sign::Good));
    let control_plane = if obtainable { binaries().await } else { binaries().await.without_tools() };
    for look in [user(), control_plane, isolation().await, ports(), disk(), go, curl, docker().await] {
        let sign = match look.sign {
            Sign::Good => "✓",
            Sign::Less => "–",
            Sign::Bad => "✗",
        };
        say(&format!(" {sign} {:<14} {}\n", look.what, look.found.replace('\n', "\n                  ")));
        if let Some(remedy) = look.remedy {
            say(&format!("                  remedy: {}\n", remedy.replace('\n', "\n                  ")));
        }
        if matches!(look.sign, Sign::Bad) {
            exit = Exit::Error;
        }
    }
    Ok(exit)
}

// === impl Look ===

impl Look {
    /// Programs that are not there yet, and nothing to get them with.
    fn without_tools(self) -> Self {
        if !matches!(self.sign, Sign::Less) {
            return self;
        }
        let remedy = "install `curl` or Go 1.26, or set SPIRITLEVEL_ASSETS to a folder that holds etcd, kube-apiserver and \
                      kube-controller-manager";
        let found = format!("{}, and there is neither curl nor go to get it with", self.found.trim_end_matches(" yet"));
        Self { sign: Sign::Bad, found, remedy: Some(remedy.into()), ..self }
    }
}

fn good(what: &'static str, found: impl Into<String>) -> Look {
    Look { what, sign: Sign::Good, found: found.into(), remedy: None }
}

fn user() -> Look {
    let uid = rustix::process::getuid();
    let found = if uid.is_root() { "root; an ordinary user is enough".into() } else { format!("uid {}", uid.as_raw()) };
    good("user", found)
}

async fn binaries() -> Look {
    let sources = Sources::from_env();
    let cache = sources.cache_directory();
    let missing = ["etcd", "kube-apiserver", "kube-controller-manager"].iter().any(|name| !cache.join(name).is_file());
    if sources.assets.is_none() && missing {
        return Look {
            what: "control plane",
            sign: Sign::Less,
            found: format!("{KUBERNETES_VERSION} is not in {} yet", cache.display()),
            remedy: Some("`spiritlevel setup` gets it now, else the first run does".into()),
        };
    }
    // Nothing is downloaded: either the named directory counts, or the cache is full.
    match obtain(&sources, &spiritlevel_cluster::Quiet).await {
        Ok(found) => {
            let dir = found.etcd.parent().unwrap_or(Path::new(".")).display().to_string();
            good("control plane", format!("{KUBERNETES_VERSION} in {dir}"))
        }
        Err(error) => Look {
            what: "control plane",
            sign: Sign::Bad,
            found: format!("failed to {error}"),
            remedy: Some("unset SPIRITLEVEL_ASSETS, or run `spiritlevel setup`".into()),
        },
    }
}

async fn isolation() -> Look {
    match spiritlevel_operator::probe().await {
        Ok(Isolation::Full) => good("isolation", "operators get namespaces of their own"),
        Ok(Isolation::Host { why }) => Look {
            what: "isolation",
            sign: Sign::Less,
            found: format!("operators run in this machine's network: {why}"),
            remedy: Some(
                "allow user namespaces; on Ubuntu: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; \
                 in a container: run it with `--security-opt seccomp=unconfined`"
                    .into(),
            ),
        },
        Err(error) => Look {
            what: "isolation",
            sign: Sign::Bad,
            found: format!("failed to {error}"),
            remedy: Some("SPIRITLEVEL_BIN must name this program, or be unset".into()),
        },
    }
}

async fn docker() -> Look {
    match spiritlevel_cluster::containers::docker_version().await {
        Ok(version) => good("docker", format!("{version}: the providers k3s and kind can be used")),
        Err(error) => Look {
            what: "docker",
            sign: Sign::Less,
            found: format!("failed to {error}"),
            remedy: Some("only needed for the providers k3s and kind".into()),
        },
    }
}

fn ports() -> Look {
    match TcpListener::bind(("127.0.0.1", 0)) {
        Ok(_) => good("ports", "127.0.0.1 gives free ones"),
        Err(error) => Look {
            what: "ports",
            sign: Sign::Bad,
            found: format!("127.0.0.1 gives none: {error}"),
            remedy: Some("bring up the loopback device: `ip link set lo up`".into()),
        },
    }
}

/// Where control planes keep their data.
fn disk() -> Look {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_dir());
    let dir = runtime.unwrap_or_else(std::env::temp_dir);
    match rustix::fs::statvfs(&dir) {
        Ok(stat) => {
            let free = stat.f_bavail * stat.f_frsize;
            let found = format!("{} MB free in {}", free >> 20, dir.display());
            if free >= DISK {
                return good("disk", found);
            }
            let remedy = format!(
                "free some: {} MB are wanted; or set XDG_RUNTIME_DIR or TMPDIR to a larger file system",
                DISK >> 20
            );
            Look { what: "disk", sign: Sign::Bad, found, remedy: Some(remedy) }
        }
        Err(error) => Look {
            what: "disk",
            sign: Sign::Bad,
            found: format!("{}: {error}", dir.display()),
            remedy: Some("set TMPDIR to a folder that exists".into()),
        },
    }
}

async fn program(name: &'static str, argument: &str) -> Look {
    let output = Command::new(name).arg(argument).output().await;
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            good(name, text.lines().next().unwrap_or_default())
        }
        _ => {
            let what_for = if name == "go" {
                "building the control plane or operators written in Go; https://go.dev/dl"
            } else {
                "downloading the control plane"
            };
            Look {
                what: name,
                sign: Sign::Less,
                found: "not on PATH".into(),
                remedy: Some(format!("only needed for {what_for}")),
            }
        }
    }
}
