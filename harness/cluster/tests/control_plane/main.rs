//! The local provider on the real control plane. Missing binaries are built first: see `assets`.

#[path = "../support/mod.rs"]
mod support;

mod collection;
mod crds;
mod life;

use std::process::ExitCode;

use libtest_mimic::Failed;
use spiritlevel_cluster::{Cluster, LocalCluster, LocalOptions};

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept() {
        return code;
    }
    if let Some(file) = std::env::var_os(life::HOLD) {
        return life::hold(&file);
    }
    // More control planes at once only slow each other down.
    support::main(2, [life::trials(), collection::trials(), crds::trials()].into_iter().flatten().collect())
}

/// With a notice on stderr when the binaries have to be fetched first.
async fn start(options: LocalOptions) -> Result<LocalCluster, Failed> {
    let started = LocalCluster::start(options, &|text: &str| eprintln!("{text}")).await;
    Ok(started?)
}

async fn start_with_controllers() -> Result<LocalCluster, Failed> {
    let cluster = start(LocalOptions::default()).await?;
    cluster.start_controllers(cluster.endpoint()).await?;
    Ok(cluster)
}
