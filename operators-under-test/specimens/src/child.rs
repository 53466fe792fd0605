//! Children: how they are named and tied to their Sample, and how they are kept as declared.

use std::{collections::BTreeMap, fmt::Debug};

use k8s_openapi::{
    ByteString, NamespaceResourceScope,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    error::{Error, Result},
    operator::Operator,
    sample::Sample,
};

/// The label that ties a child to its Sample, with or without an ownerReference.
const SAMPLE: &str = "specimens.example.com/sample";

/// Selects everything that specimens make.
pub(crate) const SELECTOR: &str = SAMPLE;

/// Selects the children of one Sample.
pub(crate) fn selector(sample: &Sample) -> String {
    format!("{SAMPLE}={}", sample.name_any())
}

/// Whether the garbage collector is told of a child.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// The child has an ownerReference to its Sample, as its controller.
    Sample,
    /// The child has none: whoever made it has to delete it.
    Nobody,
}

/// A kind that can be a child; a shorthand for what the client needs to know of it.
pub(crate) trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// Name, label and owner of a child.
pub(crate) fn metadata(sample: &Sample, suffix: &str, owner: Owner) -> ObjectMeta {
    ObjectMeta {
        name: Some(sample.child(suffix)),
        labels: Some(BTreeMap::from([(SAMPLE.to_owned(), sample.name_any())])),
        owner_references: match owner {
            Owner::Sample => sample.controller_owner_ref(&()).map(|reference| vec![reference]),
            Owner::Nobody => None,
        },
        ..ObjectMeta::default()
    }
}

/// A ConfigMap with the Sample's text.
pub(crate) fn config_map(sample: &Sample, suffix: &str, owner: Owner) -> ConfigMap {
    ConfigMap {
        metadata: metadata(sample, suffix, owner),
        data: Some(BTreeMap::from([("text".to_owned(), sample.spec.text.clone())])),
        ..ConfigMap::default()
    }
}

/// A Secret with the Sample's text.
pub(crate) fn secret(sample: &Sample, suffix: &str, owner: Owner) -> Secret {
    Secret {
        metadata: metadata(sample, suffix, owner),
        data: Some(BTreeMap::from([("text".to_owned(), ByteString(sample.spec.text.clone().into_bytes()))])),
        ..Secret::default()
    }
}

/// The name of the Sample that an object belongs to.
pub(crate) fn sample_of(child: &impl Resource) -> Option<String> {
    child.meta().labels.as_ref()?.get(SAMPLE).cloned()
}

/// Reads a child by name.
pub(crate) async fn read<K: Kind>(operator: &Operator, name: &str) -> Result<Option<K>> {
    operator.api::<K>().get_opt(name).await.map_err(Error::request(format!("read {}", called::<K>(name))))
}

/// Makes a child; fails with 409 `AlreadyExists` if there is one.
pub(crate) async fn create<K: Kind>(operator: &Operator, child: &K) -> Result<()> {
    let tried = format!("create {}", called::<K>(&child.name_any()));
    operator.api::<K>().create(&PostParams::default(), child).await.map_err(Error::request(tried))?;
    Ok(())
}

/// Makes a child if it is missing, and brings it back to what is declared if it differs; writes nothing otherwise.
pub(crate) async fn keep<K: Kind>(operator: &Operator, declared: &K) -> Result<()> {
    let name = declared.name_any();
    let Some(live) = read::<K>(operator, &name).await? else {
        return create(operator, declared).await;
    };
    if sample_of(&live) != sample_of(declared) {
        return Err(Error::Foreign { kind: K::kind(&()).into_owned(), name });
    }
    if covers(&serde_json::to_value(&live)?, &serde_json::to_value(declared)?) {
        return Ok(());
    }
    change(operator, &live, serde_json::to_value(declared)?).await
}

/// As [`keep`], by server-side apply that gives way to other managers of a field: 409 says that there is one.
pub(crate) async fn apply<K: Kind>(operator: &Operator, declared: &K) -> Result<()> {
    let name = declared.name_any();
    let mut fields = serde_json::to_value(declared)?;
    let live = read::<K>(operator, &name).await?;
    if let Some(live) = &live {
        if sample_of(live) != sample_of(declared) {
            return Err(Error::Foreign { kind: K::kind(&()).into_owned(), name });
        }
        if covers(&serde_json::to_value(live)?, &fields) {
            return Ok(());
        }
    }
    fields["apiVersion"] = json!(K::api_version(&()));
    fields["kind"] = json!(K::kind(&()));
    let tried = format!("apply {}", called::<K>(&name));
    let api = operator.api::<K>();
    api.patch(&name, &PatchParams::apply("specimens"), &Patch::Apply(fields)).await.map_err(Error::request(tried))?;
    Ok(())
}

/// Merges fields into a child, on the condition that it is still the version that was read.
pub(crate) async fn change<K: Kind>(operator: &Operator, live: &K, mut fields: Value) -> Result<()> {
    fields["metadata"]["resourceVersion"] = json!(live.resource_version());
    let name = live.name_any();
    let tried = format!("change {}", called::<K>(&name));
    let patch = Patch::Merge(fields);
    operator.api::<K>().patch(&name, &PatchParams::default(), &patch).await.map_err(Error::request(tried))?;
    Ok(())
}

/// Deletes a child; fails with 404 if there is none.
pub(crate) async fn delete<K: Kind>(operator: &Operator, name: &str) -> Result<()> {
    let tried = format!("delete {}", called::<K>(name));
    operator.api::<K>().delete(name, &DeleteParams::default()).await.map_err(Error::request(tried))?;
    Ok(())
}

/// Makes 404 a success: what was to be deleted is gone.
pub(crate) fn gone_is_done(deleted: Result<()>) -> Result<()> {
    match deleted {
        Err(error) if error.status() == Some(404) => Ok(()),
        other => other,
    }
}

/// Whether every declared field has the declared value; what the API server added does not count.
pub(crate) fn covers(live: &Value, declared: &Value) -> bool {
    match (live, declared) {
        (Value::Object(live), Value::Object(declared)) => {
            declared.iter().all(|(field, value)| live.get(field).is_some_and(|live| covers(live, value)))
        }
        (Value::Array(live), Value::Array(declared)) => {
            live.len() == declared.len() && live.iter().zip(declared).all(|(live, declared)| covers(live, declared))
        }
        (live, declared) => live == declared,
    }
}

fn called<K: Kind>(name: &str) -> String {
    format!("{} {name}", K::kind(&()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_the_server_are_no_difference() {
        let declared = json!({"spec": {"ports": [{"port": 80}]}});
        let defaulted =
            json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}]}, "status": {}});
        assert!(covers(&defaulted, &declared));
    }

    #[test]
    fn a_changed_a_missing_and_a_surplus_value_are_differences() {
        let declared = json!({"data": {"text": "a"}, "list": [1]});
        assert!(!covers(&json!({"data": {"text": "b"}, "list": [1]}), &declared));
        assert!(!covers(&json!({"data": {}, "list": [1]}), &declared));
        assert!(!covers(&json!({"data": {"text": "a"}, "list": [1, 2]}), &declared));
    }
}
