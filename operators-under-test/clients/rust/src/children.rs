//! The ConfigMaps of a Sample: which they are, and how each is made, mended or deleted.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, PostParams, Preconditions},
};

use crate::{error::Error, sample::Sample};

/// The Sample that a child belongs to, and its number. A child is known by its name, so that no damage to its labels or
/// owners hides it.
pub(crate) fn parts(child: &str) -> Option<(&str, usize)> {
    let (sample, number) = child.rsplit_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !sample.is_empty()).then(|| number.parse().ok()).flatten().map(|number| (sample, number))
}

/// Makes or mends one child.
pub(crate) async fn keep(
    api: &Api<ConfigMap>,
    sample: &Sample,
    number: usize,
    found: Option<&ConfigMap>,
) -> Result<(), Error> {
    let wanted = BTreeMap::from([("text".to_owned(), sample.spec.text.clone())]);
    let owner = sample.controller_owner_ref(&()).ok_or(Error::Anonymous)?;
    let name = format!("{}-{number}", sample.name_any());
    let Some(found) = found else {
        let metadata =
            ObjectMeta { name: Some(name.clone()), owner_references: Some(vec![owner]), ..ObjectMeta::default() };
        let child = ConfigMap { metadata, data: Some(wanted), ..ConfigMap::default() };
        let made = api.create(&PostParams::default(), &child).await;
        return made.map(drop).map_err(Error::request(format!("create ConfigMap {name}")));
    };
    if found.data.as_ref() == Some(&wanted) && is_controlled_by(found, sample) {
        return Ok(());
    }
    let mut child = found.clone();
    let owners = child.metadata.owner_references.get_or_insert_default();
    owners.retain(|other| other.uid != owner.uid);
    if owners.iter().any(is_controller) {
        return Err(Error::Foreign(name));
    }
    owners.push(owner);
    child.data = Some(wanted);
    let mended = api.replace(&name, &PostParams::default(), &child).await;
    mended.map(drop).map_err(Error::request(format!("update ConfigMap {name}")))
}

/// Deletes one child; only the very version that was seen goes.
pub(crate) async fn delete(api: &Api<ConfigMap>, child: &ConfigMap) -> Result<(), Error> {
    let seen = Preconditions { uid: child.uid(), resource_version: child.resource_version() };
    let name = child.name_any();
    match api.delete(&name, &DeleteParams::default().preconditions(seen)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop).map_err(Error::request(format!("delete ConfigMap {name}"))),
    }
}

/// Whether a Sample is the controller of a child.
pub(crate) fn is_controlled_by(child: &ConfigMap, sample: &Sample) -> bool {
    child
        .owner_references()
        .iter()
        .any(|owner| is_controller(owner) && Some(&owner.uid) == sample.metadata.uid.as_ref())
}

fn is_controller(owner: &OwnerReference) -> bool {
    owner.controller == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_known_by_its_name() {
        assert_eq!(parts("sample-a-12"), Some(("sample-a", 12)));
        for other in ["kube-root-ca.crt", "sample-a", "sample-", "-1", "sample-+1"] {
            assert_eq!(parts(other), None, "{other}");
        }
    }
}
