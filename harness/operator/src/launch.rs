//! How the operator is started, and what its environment looks like.

use crate::{Bind, Error, Event, Isolation, Line, Network, Sandbox, wire::Order};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, sync::Arc};
use tokio::sync::mpsc::UnboundedSender;

/// How the operator finds its API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// As in a pod: `KUBERNETES_SERVICE_HOST` and `_PORT`, and the files of the service account. `KUBECONFIG` is unset,
    /// since it wins in controller-runtime.
    InCluster,
    /// This file, named by `KUBECONFIG`. With namespaces, the in-cluster way is open beside it.
    Kubeconfig(PathBuf),
}

/// One start of the operator.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments. A relative path is resolved from `dir`, a bare name on PATH.
    pub command: Vec<String>,
    /// Set on top of the harness's own environment, with the last word.
    pub env: BTreeMap<String, String>,
    /// The working directory, which must exist.
    pub dir: PathBuf,
    /// The operator's private home, made if missing: `~/.kube/config` of the user must not be found. Its temporary files go
    /// into `tmp` in it, so that replicas do not share them.
    pub home: PathBuf,
    /// The file to which output is appended, each line with its time and stream.
    pub log: PathBuf,
    /// How it finds its API server.
    pub access: Access,
}

/// Takes secrets out of a line.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;
/// Hears a line.
pub type OnLine = Arc<dyn Fn(&Line) + Send + Sync>;

/// Who hears of a process. Calls come from the harness's tasks and must not block.
#[derive(Clone, Default)]
pub struct Observer {
    /// Hears of the start and the end.
    pub events: Option<UnboundedSender<Event>>,
    /// Takes secrets out of a line before anything else sees or stores it.
    pub redact: Option<Redact>,
    /// Hears each (redacted) line of output.
    pub line: Option<OnLine>,
}

// === impl Observer ===

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, redact, line } = self;
        let fields = [("events", events.is_some()), ("redact", redact.is_some()), ("line", line.is_some())];
        f.debug_map().entries(fields).finish()
    }
}

impl Observer {
    pub(crate) fn tell(&self, event: Event) {
        if let Some(events) = &self.events {
            // A harness that has stopped listening needs no event.
            let _ = events.send(event);
        }
    }
}

// === impl Launch ===

impl Launch {
    /// What `__launch` is to do in this sandbox. Makes the home.
    pub(crate) fn order(&self, sandbox: &Sandbox) -> Result<Order, Error> {
        let spec = sandbox.spec();
        if let (Isolation::Host { why }, Access::InCluster) = (&spec.isolation, &self.access) {
            return Err(Error::InClusterNeedsNamespaces { why: why.clone() });
        }
        let dir = existing(&self.dir)?;
        let temporary = self.home.join("tmp");
        fs::create_dir_all(&temporary).map_err(|source| Error::File { action: "make", path: temporary, source })?;
        let home = existing(&self.home)?;
        Ok(Order {
            namespaces: spec.isolation == Isolation::Full,
            command: self.command.clone(),
            env: self.environment(sandbox, &home)?,
            dir,
            service_account: spec.service_account.clone(),
            hosts: spec.hosts.clone(),
        })
    }

    fn environment(&self, sandbox: &Sandbox, home: &Path) -> Result<Vec<(String, Option<String>)>, Error> {
        let mut env = BTreeMap::new();
        let mut set = |name: &str, value: Option<String>| drop(env.insert(name.to_owned(), value));
        set("HOME", Some(text(home)));
        set("TMPDIR", Some(text(&home.join("tmp"))));
        let in_cluster = sandbox.spec().isolation == Isolation::Full;
        let address = sandbox.address();
        set("KUBERNETES_SERVICE_HOST", in_cluster.then(|| address.ip().to_string()));
        set("KUBERNETES_SERVICE_PORT", in_cluster.then(|| address.port().to_string()));
        let kubeconfig = match &self.access {
            Access::InCluster => None,
            Access::Kubeconfig(file) => {
                let file = std::path::absolute(file);
                Some(text(&file.map_err(|source| Error::Prepare { step: "find the current folder", source })?))
            }
        };
        set("KUBECONFIG", kubeconfig);
        if sandbox.network() == Network::Isolated {
            // A web proxy cannot be reached from here, and Go clients would send calls to pod addresses to it.
            for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
                set(name, None);
            }
        }
        for (name, value) in &self.env {
            set(name, Some(value.clone()));
        }
        Ok(env.into_iter().collect())
    }
}

fn existing(dir: &Path) -> Result<PathBuf, Error> {
    let absolute = std::path::absolute(dir).ok().filter(|dir| dir.is_dir());
    absolute.ok_or_else(|| Error::Directory { dir: dir.to_owned() })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
