//! Proofs of garbage collection, and that they can fail.

use std::time::Duration;

use libtest_mimic::Trial;
use spiritlevel_cluster::{Cluster, Error, Identity, LocalOptions, crds};

use crate::{
    crds::{bubble, shelf, unguessable},
    start, start_with_controllers,
    support::{Outcome, ensure, trial},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("collection/is_proven_with_controllers", proven),
        trial("collection/is_not_proven_without_controllers", not_proven),
        trial("collection/is_proven_for_custom_kinds_after_a_restart_of_the_controllers", custom_kinds),
    ]
}

async fn proven() -> Outcome {
    let cluster = start_with_controllers().await?;
    let proof = cluster.prove_collection(&[]).await?;
    ensure(proof.proven.len() == 1 && proof.proven[0].kind == "ConfigMap" && proof.unproven.is_empty(), &proof)?;
    let times = cluster.times();
    ensure(times.collection == proof.took && times.total() > times.etcd + times.collection, times)?;
    cluster.prove_namespace_deletion(&proof).await?;
    cluster.stop().await?;
    Ok(())
}

async fn not_proven() -> Outcome {
    let mut options = LocalOptions::default();
    let cluster = start(options.clone()).await?;
    let error = cluster.restart_controllers().await.err();
    ensure(matches!(error, Some(Error::NoControllers)), error)?;
    cluster.stop().await?;

    options.start_timeout = Duration::from_secs(20);
    options.controllers = spiritlevel_cluster::local::Controllers::Objects;
    let cluster = start(options).await?;
    let error = cluster.prove_collection(&[]).await.err().ok_or("it was proven by nobody")?;
    ensure(matches!(&error, Error::NotCollected { kind, .. } if kind == "ConfigMap"), error)?;
    cluster.stop().await?;
    Ok(())
}

async fn custom_kinds() -> Outcome {
    let cluster = start_with_controllers().await?;
    let client = cluster.client(Identity::Harness)?;
    let installed = crds::install(&client, vec![bubble(), shelf(), unguessable()]).await?;
    cluster.restart_controllers().await?;
    let kinds: Vec<_> = installed.into_iter().map(|crd| crd.kind).collect();
    let proof = cluster.prove_collection(&kinds).await?;
    let proven: Vec<&str> = proof.proven.iter().map(|kind| kind.kind.as_str()).collect();
    ensure(proven == ["ConfigMap", "Bubble", "Shelf"], &proof)?;
    ensure(proof.unproven.len() == 1 && proof.unproven[0].reason.contains("spec.code"), &proof)?;
    // Without the restart the collector would have needed up to 30 s to look for new kinds.
    ensure(proof.took < Duration::from_secs(10), proof.took)?;
    cluster.stop().await?;
    Ok(())
}
