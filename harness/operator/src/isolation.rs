//! Whether this machine lets the operator have namespaces of its own.

use crate::{Access, Bind, Error, Exit, Launch, Observer, Sandbox, SandboxSpec, shim};
use std::collections::BTreeMap;
use std::error::Error as _;

/// What a sandbox may consist of on this machine. [`probe`] finds out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Namespaces work.
    Full,
    /// They do not: the operator lives in the host's network under a port of its own, with a kubeconfig, and calls to pod
    /// addresses can leave the machine.
    Host {
        /// The reason, for people, with a remedy.
        why: String,
    },
}

/// The network that an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Network {
    /// Its own, with nothing but `lo`.
    #[default]
    Isolated,
    /// The host's, for an operator that needs the outside. Mounts, processes and host name are still its own.
    Host,
}

/// Tries a whole sandbox in throw-away processes: a listener, a connection, a service account, a process. A half-made one
/// cannot be left again, and one system call says little (AppArmor lets `unshare` pass and refuses the rest).
///
/// Takes about 10 ms; ask once and pass the answer on.
pub async fn probe() -> Result<Isolation, Error> {
    match attempt().await {
        Ok(()) => Ok(Isolation::Full),
        Err(error @ (Error::Isolate { .. } | Error::Program { .. })) => Ok(Isolation::Host { why: chain(&error) }),
        Err(error) => Err(error),
    }
}

async fn attempt() -> Result<(), Error> {
    let scratch = tempfile::tempdir().map_err(|source| Error::Prepare { step: "make a folder", source })?;
    let sandbox = Sandbox::create(SandboxSpec {
        isolation: Isolation::Full,
        network: Network::Isolated,
        hostname: Some("probe".into()),
        service_account: Some(scratch.path().into()),
        hosts: None,
        port: 6443,
    })?;
    let refused = |step: &str| {
        let step = step.to_owned();
        move |source| Error::Isolate { step, why: "descriptors do not cross its border".into(), source }
    };
    let listener = sandbox.bind().map_err(refused("listen inside"))?;
    sandbox.dial(sandbox.address()).map_err(refused("connect inside"))?;
    drop(listener);
    let launch = Launch {
        command: vec![spiritlevel_supervise::executable()?.to_string_lossy().into_owned(), shim::TRIAL.into()],
        env: BTreeMap::new(),
        dir: scratch.path().into(),
        home: scratch.path().join("home"),
        log: scratch.path().join("log"),
        access: Access::InCluster,
    };
    let exit = sandbox.start(launch, Observer::default()).await?.wait().await;
    let why = "a program in a sandbox did not end well".to_owned();
    let source = std::io::Error::other(format!("it ended with {exit}"));
    if exit == Exit::Code(0) {
        Ok(())
    } else {
        Err(Error::Isolate { step: "run a program inside".into(), why, source })
    }
}

/// The error with its causes in one line.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}
