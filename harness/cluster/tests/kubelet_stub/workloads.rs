//! What the workload controllers make of the stub.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use spiritlevel_cluster::kubelet_stub::{Completion, KubeletRules, PodMatch};

use crate::{
    ground::{Corner, Outcome, quick},
    objects::{job, stateful_set_of, template},
};

pub(crate) async fn stateful_set(corner: &Corner<'_>) -> Outcome {
    let sets = corner.api::<StatefulSet>();
    let began = Instant::now();
    corner.create(stateful_set_of(3)).await?;
    corner
        .wait("db", |set: Option<&StatefulSet>| {
            set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.ready_replicas == Some(3))
        })
        .await?;
    eprintln!("StatefulSet with 3 replicas, one claim each, Ready after {:.2?}", began.elapsed());
    corner.idle().await?;

    let pods = corner.api::<Pod>().list(&ListParams::default()).await?;
    let addresses: BTreeSet<_> = pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
    assert_eq!(addresses.len(), 3, "{addresses:?}");
    assert_eq!(corner.volumes().await?.len(), 3);

    corner.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await?;
    corner.gone::<Pod>("db-1").await?;
    corner.gone::<Pod>("db-2").await?;
    assert_eq!(corner.volumes().await?.len(), 3, "claims outlive a scale-down");

    sets.delete("db", &DeleteParams::background()).await?;
    corner.gone::<Pod>("db-0").await?;
    corner.api::<PersistentVolumeClaim>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    for index in 0..3 {
        corner.gone::<PersistentVolumeClaim>(&format!("data-db-{index}")).await?;
    }
    corner.reclaimed().await?;
    corner.idle().await?;
    Ok(())
}

pub(crate) async fn jobs(corner: &Corner<'_>) -> Outcome {
    let fails = PodMatch {
        labels: [("fails".to_owned(), "yes".to_owned())].into(),
        completes: Some(Completion { complete_after: Duration::from_millis(50), exit_code: 3 }),
        ..PodMatch::default()
    };
    corner.rules(KubeletRules {
        jobs: Completion { complete_after: Duration::from_millis(50), exit_code: 0 },
        matches: vec![fails],
        ..quick()
    });
    corner.create(job("good", "no", "Never")).await?;
    corner.create(job("bad", "yes", "Never")).await?;
    corner.create(job("again", "yes", "OnFailure")).await?;
    let condition = |kind: &'static str| {
        move |job: Option<&Job>| {
            let conditions = job.and_then(|job| job.status.as_ref()?.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == kind && one.status == "True"))
        }
    };
    corner.wait("good", condition("Complete")).await?;
    corner.wait("bad", condition("Failed")).await?;
    corner.wait("again", condition("Failed")).await?;
    corner.idle().await
}

pub(crate) async fn deployment(corner: &Corner<'_>) -> Outcome {
    corner.rules(quick());
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")},
    }))?;
    corner.create(deployment).await?;
    let rolled_out = |generation: i64| {
        move |deployment: Option<&Deployment>| {
            deployment.and_then(|deployment| deployment.status.as_ref()).is_some_and(|status| {
                status.observed_generation == Some(generation)
                    && status.updated_replicas == Some(2)
                    && status.replicas == Some(2)
                    && status.available_replicas == Some(2)
            })
        }
    };
    corner.wait("web", rolled_out(1)).await?;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example/web:2"}]}}}});
    corner.patch::<Deployment>("web", image).await?;
    corner.wait("web", rolled_out(2)).await?;
    corner.idle().await?;
    for pod in corner.api::<Pod>().list(&ListParams::default()).await? {
        if pod.metadata.deletion_timestamp.is_none() {
            assert_eq!(
                pod.status.and_then(|status| status.container_statuses).unwrap_or_default()[0].image,
                "example/web:2"
            );
        }
    }
    Ok(())
}

pub(crate) async fn daemon_set(corner: &Corner<'_>) -> Outcome {
    corner.rules(quick());
    let set: DaemonSet = serde_json::from_value(json!({
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent")},
    }))?;
    corner.create(set).await?;
    corner
        .wait("agent", |set: Option<&DaemonSet>| {
            set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.number_ready == 1)
        })
        .await
}
