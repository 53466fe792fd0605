//! A local control plane to play with: starts it with all controllers and no proxy, writes a kubeconfig, waits for
//! Ctrl-C.
//!
//! ```text
//! cargo run -p spiritlevel-cluster --example up [KUBECONFIG-TO-WRITE]
//! ```

use std::{error::Error, path::PathBuf, process::ExitCode};

use spiritlevel_cluster::{Cluster, Identity, LocalCluster, LocalOptions, discovery, kubeconfig};

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept() {
        return code;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any working machine");
    match runtime.block_on(up()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed to {error}");
            let mut cause = error.source();
            while let Some(source) = cause {
                eprintln!("  because: {source}");
                cause = source.source();
            }
            ExitCode::from(3)
        }
    }
}

async fn up() -> Result<(), Box<dyn Error>> {
    let cluster = LocalCluster::start(LocalOptions::default(), &|text: &str| eprintln!("{text}")).await?;
    let endpoint = cluster.endpoint().clone();
    cluster.start_controllers(&endpoint).await?;
    let proof = cluster.prove_collection(&[]).await?;
    let times = cluster.times();
    eprintln!(
        "etcd {:.2?}, API server {:.2?}, controllers {:.2?}, garbage collection proven {:.2?}; {:.2?} in all; {} kinds",
        times.etcd,
        times.api_server,
        times.controllers,
        times.collection,
        times.total(),
        discovery::kinds(&cluster.client(Identity::Admin)?).await?.len()
    );
    let namespace_gone = cluster.prove_namespace_deletion(&proof).await?;
    eprintln!("namespace deletion proven after {namespace_gone:.2?}; logs in {}", cluster.directory().path().display());

    let content = kubeconfig::render(&endpoint, cluster.token(Identity::Admin), "default");
    let path = match std::env::args_os().nth(1) {
        Some(path) => {
            std::fs::write(&path, content)?;
            PathBuf::from(path)
        }
        None => cluster.directory().write("admin.kubeconfig", &content)?,
    };
    println!("export KUBECONFIG={}", path.display());
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        exit = ended(&cluster) => eprintln!("{exit}"),
    }
    cluster.stop().await?;
    Ok(())
}

async fn ended(cluster: &LocalCluster) -> spiritlevel_cluster::Exit {
    loop {
        if let Some(exit) = cluster.alive() {
            return exit;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}
