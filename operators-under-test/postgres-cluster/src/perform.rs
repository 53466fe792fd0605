//! Takes one step: one write, and no second one.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::children::{self, CONFIRMED_BY_ANNOTATION, Child, ChildKey, Kind, MANAGER, ROLE_LABEL};
use crate::crd::{PostgresCluster, PostgresClusterStatus};
use crate::error::Error;
use crate::observed::Instance;
use crate::plan::Step;

/// What became of a step.
#[derive(Debug)]
pub enum Outcome {
    /// A child was written.
    Wrote(ChildKey, Box<DynamicObject>),
    /// The status was written.
    Told(Box<PostgresCluster>),
    /// An object was deleted, or begins to be.
    Deleted(ChildKey, String),
    /// Nothing was written: an object has the name already, and this is it. A lost reply looks like this, and so does
    /// somebody else's object; only a look at it tells.
    NameTaken(Kind, Arc<DynamicObject>),
    /// Nothing was written: the API server refuses such a child (quota, admission, validation).
    Refused(ChildKey, String),
}

/// Takes the step.
pub async fn perform(client: &Client, cluster: &PostgresCluster, step: &Step) -> Result<Outcome, Error> {
    let namespace = cluster.namespace().unwrap_or_default();
    let api =
        |kind: Kind| -> Api<DynamicObject> { Api::namespaced_with(client.clone(), &namespace, &kind.api_resource()) };
    match step {
        Step::UpdateStatus(status) | Step::RecordReplacement { status, .. } => {
            tell(&Api::namespaced(client.clone(), &namespace), cluster, status).await
        }
        Step::CreateCredentials => {
            create(&api(Kind::Secret), &children::credentials(cluster, &crate::password::generate())).await
        }
        Step::Create(child) => create(&api(child.key.kind), child).await,
        Step::Apply { child, uid, resource_version } => apply(&api(child.key.kind), child, uid, resource_version).await,
        Step::Disown { key, others, resource_version } => {
            let patch = json!({"metadata": {"resourceVersion": resource_version, "ownerReferences": others}});
            let patched = merge(&api(key.kind), key, patch).await?;
            Ok(Outcome::Wrote(key.clone(), Box::new(patched)))
        }
        Step::SetRole { instance, role, confirmed_by } => {
            let labels = json!({ROLE_LABEL: role.as_str()});
            let annotations = json!({CONFIRMED_BY_ANNOTATION: confirmed_by});
            mark(&api(Kind::Pod), instance, json!({"labels": labels, "annotations": annotations})).await
        }
        Step::SetConfirmedBy { instance, confirmed_by } => {
            let annotations = json!({CONFIRMED_BY_ANNOTATION: confirmed_by});
            mark(&api(Kind::Pod), instance, json!({"annotations": annotations})).await
        }
        Step::Delete { key, uid, resource_version } => delete(&api(key.kind), key, uid, resource_version).await,
    }
}

/// A PUT with the resourceVersion that the status was judged on: if the cluster changed meanwhile it is refused, and
/// judged anew.
async fn tell(
    api: &Api<PostgresCluster>,
    cluster: &PostgresCluster,
    status: &PostgresClusterStatus,
) -> Result<Outcome, Error> {
    let mut told = cluster.clone();
    told.status = Some(status.clone());
    let told = api
        .replace_status(&cluster.name_any(), &by_us(), &told)
        .await
        .map_err(Error::api(format!("update the status of {}", cluster.name_any())))?;
    Ok(Outcome::Told(Box::new(told)))
}

/// A POST, never an apply: of an object that is not in the cache we do not know that it does not exist, and an apply
/// would overwrite it.
async fn create(api: &Api<DynamicObject>, child: &Child) -> Result<Outcome, Error> {
    match api.create(&by_us(), &child.to_create()).await {
        Ok(created) => Ok(Outcome::Wrote(child.key.clone(), Box::new(created))),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let holder = api.get_opt(&child.key.name).await.map_err(Error::api(format!("read {}", child.key)))?;
            let holder = holder.ok_or_else(|| Error::NameInUse(child.key.clone()))?;
            Ok(Outcome::NameTaken(child.key.kind, Arc::new(holder)))
        }
        Err(error) => refused(&child.key, error),
    }
}

/// A forced server-side apply of the fields that are ours. The uid in it keeps it from *creating* the object should it
/// be gone by now. One without effect means that the comparison is wrong for some field; as an error it is slowed down
/// and seen, as a success it would be repeated a hundred times a second.
async fn apply(api: &Api<DynamicObject>, child: &Child, uid: &str, seen: &str) -> Result<Outcome, Error> {
    let mut fields = child.keep.clone();
    fields["metadata"]["uid"] = json!(uid);
    let params = PatchParams::apply(MANAGER).force();
    match api.patch(&child.key.name, &params, &Patch::Apply(fields)).await {
        Ok(applied) if applied.resource_version().as_deref() == Some(seen) => Err(Error::NoEffect(child.key.clone())),
        Ok(applied) => Ok(Outcome::Wrote(child.key.clone(), Box::new(applied))),
        Err(error) => refused(&child.key, error),
    }
}

/// Changes labels and annotations of exactly the pod that was looked at.
async fn mark(
    api: &Api<DynamicObject>,
    instance: &Instance,
    mut metadata: serde_json::Value,
) -> Result<Outcome, Error> {
    let key = Kind::Pod.named(&instance.name);
    metadata["uid"] = json!(instance.uid);
    metadata["resourceVersion"] = json!(instance.resource_version);
    let patched = merge(api, &key, json!({"metadata": metadata})).await?;
    Ok(Outcome::Wrote(key, Box::new(patched)))
}

async fn merge(api: &Api<DynamicObject>, key: &ChildKey, patch: serde_json::Value) -> Result<DynamicObject, Error> {
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&key.name, &params, &Patch::Merge(patch)).await.map_err(Error::api(format!("patch {key}")))
}

/// Exactly the object that was looked at: not its successor of the same name, and not if it changed since.
async fn delete(api: &Api<DynamicObject>, key: &ChildKey, uid: &str, resource_version: &str) -> Result<Outcome, Error> {
    let params = DeleteParams::background().preconditions(Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: Some(resource_version.to_owned()),
    });
    match api.delete(&key.name, &params).await {
        Ok(_) => {}
        // Gone already: that is what was wanted.
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(Error::api(format!("delete {key}"))(error)),
    }
    Ok(Outcome::Deleted(key.clone(), uid.to_owned()))
}

/// 403 and 422 speak of the object, so the user must hear of it; everything else speaks of the moment.
fn refused(key: &ChildKey, error: kube::Error) -> Result<Outcome, Error> {
    match error {
        kube::Error::Api(status) if matches!(status.code, 403 | 422) => {
            Ok(Outcome::Refused(key.clone(), status.message.clone()))
        }
        error => Err(Error::api(format!("write {key}"))(error)),
    }
}

fn by_us() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}
