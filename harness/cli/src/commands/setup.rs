//! `spiritlevel setup`.

use crate::{
    Error, Exit,
    stop::{Cause, Stop},
    voice::{aside, say},
};
use spiritlevel_cluster::assets::{ETCD_VERSION, KUBERNETES_VERSION, Sources, obtain};

/// Gets the control plane's programs.
pub(super) async fn setup(stop: &Stop) -> Result<Exit, Error> {
    let sources = Sources::from_env();
    let progress = |text: &str| aside(&format!(" … {text}\n"));
    let binaries = tokio::select! {
        binaries = obtain(&sources, &progress) => binaries.map_err(Error::Cluster)?,
        () = stop.token.cancelled() => return Ok(stop.cause().map_or(Exit::Interrupted, Cause::exit)),
    };
    let dir = binaries.etcd.parent().map(|d| d.display().to_string()).unwrap_or_default();
    say(&format!(
        "etcd {ETCD_VERSION}, kube-apiserver and kube-controller-manager {KUBERNETES_VERSION} are in {dir}\n"
    ));
    Ok(Exit::Pass)
}
