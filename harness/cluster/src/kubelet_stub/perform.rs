//! Sends the writes that the core asks for.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};

use super::{
    action::Write,
    node,
    world::{Change, Key, News},
};

/// What an object is after a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// This version of it, or of the object that the write was to.
    Now(News),
    /// It is not there.
    Gone,
}

/// Sends one write about `key`. Where the answer does not carry the object, it is read again, so that the next decision
/// is made from what the write left.
pub(super) async fn write(client: &Client, key: &Key, write: Write) -> kube::Result<Answer> {
    let (namespace, name) = key.name();
    let pods = || Api::<Pod>::namespaced(client.clone(), namespace);
    let claims = || Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
    let volumes = || Api::<PersistentVolume>::all(client.clone());
    let params = PatchParams::default();
    match write {
        Write::Bind { uid } => {
            let binding = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"namespace": namespace, "name": name, "uid": uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node::NAME},
            });
            pods().create_subresource::<_, Value>("binding", name, &PostParams::default(), &binding).await?;
            read(client, key).await
        }
        Write::PodStatus { patch, .. } => {
            pods().patch_status(name, &params, &Patch::Strategic(patch)).await.map(of_pod)
        }
        Write::DeletePod { uid } => {
            pods().delete(name, &DeleteParams { grace_period_seconds: Some(0), ..only(uid) }).await?;
            read(client, key).await
        }
        Write::SelectNode { claim, patch } => claims().patch(&claim, &params, &Patch::Merge(patch)).await.map(of_claim),
        Write::CreateVolume(volume) => volumes().create(&PostParams::default(), &volume).await.map(of_volume),
        Write::PatchVolume { name, patch } => {
            volumes().patch(&name, &params, &Patch::Merge(patch)).await.map(of_volume)
        }
        Write::ClaimStatus { patch } => claims().patch_status(name, &params, &Patch::Merge(patch)).await.map(of_claim),
        Write::DeleteVolume { uid } => {
            volumes().delete(name, &only(uid)).await?;
            read(client, key).await
        }
    }
}

/// Reads the object of `key`.
pub(super) async fn read(client: &Client, key: &Key) -> kube::Result<Answer> {
    let (namespace, name) = key.name();
    let answer = match key {
        Key::Pod(_) => Api::namespaced(client.clone(), namespace).get_opt(name).await?.map(of_pod),
        Key::Claim(_) => Api::namespaced(client.clone(), namespace).get_opt(name).await?.map(of_claim),
        Key::Volume(_) => Api::all(client.clone()).get_opt(name).await?.map(of_volume),
    };
    Ok(answer.unwrap_or(Answer::Gone))
}

fn only(uid: String) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
        ..DeleteParams::default()
    }
}

fn of_pod(pod: Pod) -> Answer {
    Answer::Now(News::Pod(Change::Applied(Box::new(pod))))
}

fn of_claim(claim: PersistentVolumeClaim) -> Answer {
    Answer::Now(News::Claim(Change::Applied(Box::new(claim))))
}

fn of_volume(volume: PersistentVolume) -> Answer {
    Answer::Now(News::Volume(Change::Applied(Box::new(volume))))
}
