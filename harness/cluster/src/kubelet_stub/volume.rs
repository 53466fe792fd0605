//! Volume provisioner and resizer as pure functions: the next action about one claim or one volume.
//!
//! The real persistentvolume-binder does the rest: it asks for a volume by an annotation, binds it, releases it. As a
//! CSI driver's sidecars do (external-provisioner, external-resizer), we answer with objects.

use k8s_openapi::{
    api::{
        core::v1::{
            CSIPersistentVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
        },
        storage::v1::StorageClass,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
    jiff::Timestamp,
};
use serde_json::{Value, json};

use super::{
    action::{Action, Write},
    pod::Standing,
    quantity,
};

/// Set by the binder on a claim that no existing volume fits.
const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// Set by the scheduler on a claim whose class waits for the first consumer.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Set by the provisioner on its volumes; the binder leaves the reclaiming of such volumes to it.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The only name of a provisioner that means that nobody provisions.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// A CSI driver's name may not have a slash, the provisioner's may.
const DRIVER: &str = "stub.spiritlevel.dev";

/// What the scheduler has to know of a claim. Every class with a provisioner is served, not only the default one: there
/// is nobody else on a control plane without nodes.
pub(super) fn standing(
    claim: Option<&PersistentVolumeClaim>,
    class: Option<&StorageClass>,
    volume: Option<&PersistentVolume>,
) -> Standing {
    let Some(claim) = claim else { return Standing::Missing };
    if claim.metadata.deletion_timestamp.is_some() {
        return Standing::Deleting;
    }
    match phase(claim) {
        "Bound" => Standing::Bound,
        "Lost" => Standing::Unbound,
        // It has been given its volume by name: the binder binds the two once both are there.
        _ if volume_name(claim).is_some() => {
            if volume.is_some() {
                Standing::Binding
            } else {
                Standing::Unbound
            }
        }
        _ => match class.filter(|class| class.provisioner != NO_PROVISIONER) {
            None => Standing::Unbound,
            Some(class) if waits_for_consumer(class) && annotation(claim, SELECTED_NODE).is_none() => {
                Standing::NeedsNode
            }
            Some(_) => Standing::Binding,
        },
    }
}

/// The next action about `claim`, of `class`, whose volume is `volume`.
pub(super) fn next_claim(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    volume: Option<&PersistentVolume>,
    now: Timestamp,
) -> Action {
    match (standing(Some(claim), class, volume), class, volume) {
        (Standing::Bound, _, Some(volume)) => expand(claim, volume, now),
        (Standing::Binding, Some(class), None)
            if annotation(claim, STORAGE_PROVISIONER) == Some(&class.provisioner) =>
        {
            Action::Write(Write::CreateVolume(Box::new(provision(claim, class))))
        }
        (Standing::Binding, ..) => Action::Await("waits for the persistentvolume-binder".to_owned()),
        _ => Action::Rest,
    }
}

/// The next action about `volume`, whose claim is `claim` if it still exists.
pub(super) fn next_volume(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Action {
    let spec = volume.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let provisioned = volume.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(PROVISIONED_BY));
    let owner = spec.and_then(|spec| spec.claim_ref.as_ref()).and_then(|reference| reference.uid.as_deref());
    let (true, Some("Delete"), Some(owner)) = (provisioned, policy, owner) else {
        return Action::Rest;
    };
    let status = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let claimed = claim.and_then(|claim| claim.metadata.uid.as_deref()) == Some(owner);
    match (volume.metadata.deletion_timestamp.is_some(), status, claimed) {
        (true, ..) => Action::Await("waits for its protection to be lifted".to_owned()),
        (false, Some("Released"), false) => {
            Action::Write(Write::DeleteVolume { uid: volume.metadata.uid.clone().unwrap_or_default() })
        }
        (false, Some("Failed"), _) | (false, _, true) => Action::Rest,
        (false, _, false) => Action::Await("waits to be released".to_owned()),
    }
}

/// The name of the class that provisions for `claim`. A claim without one has none on purpose or is given the default
/// by the API server.
pub(super) fn class_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.storage_class_name.as_deref().filter(|name| !name.is_empty())
}

/// The name of the volume that is or will be the claim's.
pub(super) fn volume_of(claim: &PersistentVolumeClaim) -> String {
    volume_name(claim).map_or_else(|| own_volume_name(claim), str::to_owned)
}

// === provisioning ===

fn provision(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let name = own_volume_name(claim);
    let request = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some([(PROVISIONED_BY.to_owned(), class.provisioner.clone())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: request.get_key_value("storage").map(|(key, size)| [(key.clone(), size.clone())].into()),
            claim_ref: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("PersistentVolumeClaim".to_owned()),
                namespace: claim.metadata.namespace.clone(),
                name: claim.metadata.name.clone(),
                uid: claim.metadata.uid.clone(),
                resource_version: claim.metadata.resource_version.clone(),
                ..ObjectReference::default()
            }),
            csi: Some(CSIPersistentVolumeSource {
                driver: DRIVER.to_owned(),
                volume_handle: name,
                ..CSIPersistentVolumeSource::default()
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: Some(class.reclaim_policy.clone().unwrap_or_else(|| "Delete".to_owned())),
            storage_class_name: class.metadata.name.clone(),
            volume_attributes_class_name: spec.volume_attributes_class_name,
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        ..PersistentVolume::default()
    }
}

// === expansion ===

/// The claim says that it is being resized, the volume grows, the claim says that it has grown: three writes, each read
/// off what the one before it left.
fn expand(claim: &PersistentVolumeClaim, volume: &PersistentVolume, now: Timestamp) -> Action {
    let requested = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let granted = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
    let (Some(wanted), Some(has)) = (quantity::storage(requested), quantity::storage(granted)) else {
        return Action::Rest;
    };
    let Some(size) = requested.and_then(|requests| requests.get("storage")).filter(|_| wanted > has) else {
        return Action::Rest;
    };
    let capacity = quantity::storage(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref())).unwrap_or_default();
    if capacity >= wanted {
        return Action::Write(Write::ClaimStatus { patch: expanded(claim, size) });
    }
    if quantity::storage(claim.status.as_ref().and_then(|status| status.allocated_resources.as_ref())) != Some(wanted)
        || !is_resizing(claim)
    {
        return Action::Write(Write::ClaimStatus { patch: expanding(claim, size, now) });
    }
    let patch = json!({
        "metadata": {"resourceVersion": volume.metadata.resource_version},
        "spec": {"capacity": {"storage": size}},
    });
    Action::Write(Write::PatchVolume { name: volume.metadata.name.clone().unwrap_or_default(), patch })
}

fn expanding(claim: &PersistentVolumeClaim, size: &Quantity, now: Timestamp) -> Value {
    let mut conditions = other_conditions(claim);
    conditions.push(json!({"type": "Resizing", "status": "True", "lastTransitionTime": format!("{now:.0}")}));
    json!({
        "metadata": {"resourceVersion": claim.metadata.resource_version},
        "status": {
            "allocatedResources": {"storage": size},
            "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"},
            "conditions": conditions,
        },
    })
}

fn expanded(claim: &PersistentVolumeClaim, size: &Quantity) -> Value {
    json!({
        "metadata": {"resourceVersion": claim.metadata.resource_version},
        "status": {
            "capacity": {"storage": size},
            "allocatedResources": {"storage": size},
            "allocatedResourceStatuses": {"storage": null},
            "conditions": other_conditions(claim),
        },
    })
}

fn is_resizing(claim: &PersistentVolumeClaim) -> bool {
    claim
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Resizing")
}

/// The conditions of a claim that do not speak of its size.
fn other_conditions(claim: &PersistentVolumeClaim) -> Vec<Value> {
    claim
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .filter(|condition| !matches!(condition.type_.as_str(), "Resizing" | "FileSystemResizePending"))
        .map(|condition| serde_json::to_value(condition).expect("a condition has string keys only"))
        .collect()
}

// === reading ===

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

fn volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

/// The same at every attempt, so that a claim gets one volume however often its creation is tried.
fn own_volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

fn annotation<'a>(claim: &'a PersistentVolumeClaim, key: &str) -> Option<&'a String> {
    claim.metadata.annotations.as_ref()?.get(key)
}

fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

#[cfg(test)]
mod tests;
