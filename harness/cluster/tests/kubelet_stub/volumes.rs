//! Claims, volumes, and pods that wait for them.

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::{
    ground::{Corner, Outcome, quick},
    objects::{bound, claim, condition, pod_with_claim},
};

pub(crate) async fn expansion(corner: &Corner<'_>) -> Outcome {
    corner.create(claim("data", None)).await?;
    corner.wait("data", bound).await?;
    corner
        .patch::<PersistentVolumeClaim>("data", json!({"spec": {"resources": {"requests": {"storage": "1536Mi"}}}}))
        .await?;
    let grown = |claim: Option<&PersistentVolumeClaim>| {
        claim.and_then(|claim| claim.status.as_ref()).is_some_and(|status| {
            status.capacity.as_ref().is_some_and(|capacity| capacity["storage"].0 == "1536Mi")
                && status.conditions.as_ref().is_none_or(Vec::is_empty)
                && status.allocated_resource_statuses.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
        })
    };
    corner.wait("data", grown).await?;
    let volume = &corner.volumes().await?[0];
    let volume = Api::<PersistentVolume>::all(corner.client.clone()).get(volume).await?;
    assert_eq!(volume.spec.and_then(|spec| spec.capacity).unwrap_or_default()["storage"].0, "1536Mi");
    corner.idle().await
}

pub(crate) async fn first_consumer(corner: &Corner<'_>) -> Outcome {
    corner.rules(quick());
    let class = format!("late-{}", corner.namespace);
    let late: StorageClass = serde_json::from_value(json!({
        "metadata": {"name": class},
        "provisioner": "somebody.example.com/else",
        "volumeBindingMode": "WaitForFirstConsumer",
    }))?;
    let classes = Api::<StorageClass>::all(corner.client.clone());
    classes.create(&PostParams::default(), &late).await?;
    corner.create(claim("data", Some(&class))).await?;
    corner.create(pod_with_claim("user", "data")).await?;
    corner.ready("user").await?;
    corner.wait("data", bound).await?;
    corner.api::<Pod>().delete("user", &DeleteParams::default()).await?;
    corner.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await?;
    corner.gone::<PersistentVolumeClaim>("data").await?;
    corner.reclaimed().await?;
    corner.idle().await?;
    classes.delete(&class, &DeleteParams::default()).await?;
    Ok(())
}

pub(crate) async fn missing_claim(corner: &Corner<'_>) -> Outcome {
    corner.rules(quick());
    corner.create(pod_with_claim("user", "data")).await?;
    let refused = |pod: Option<&Pod>| {
        condition(pod, "PodScheduled").is_some_and(|(status, message)| {
            status == "False" && message.contains("persistentvolumeclaim \"data\" not found")
        })
    };
    corner.wait("user", refused).await?;
    corner.idle().await?;
    corner.create(claim("data", None)).await?;
    corner.ready("user").await
}
