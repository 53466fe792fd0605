//! CustomResourceDefinitions, shared by content: the same one is installed once and stays, another one of the same name
//! needs another control plane.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, PostParams},
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Error, Kind, discovery, process::Deadline};

/// Remembers the content that a CRD was installed with; the server's copy has defaults filled in.
const HASH_ANNOTATION: &str = "spiritlevel.dev/content-hash";
const TIMEOUT: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(20);

/// An installed CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrdId {
    /// `metadata.name`, such as `postgresclusters.db.example.com`.
    pub name: String,
    /// SHA-256 of what was asked for, in hexadecimal.
    pub hash: String,
    /// What it defines, at the version the API server prefers.
    pub kind: Kind,
}

/// Installs `crds` and waits until each is served and discoverable. Afterwards the controllers have to be restarted if
/// they were running: see [`crate::Cluster::restart_controllers`].
pub async fn install(client: &Client, crds: Vec<Value>) -> Result<Vec<CrdId>, Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut wanted = Vec::new();
    for crd in crds {
        let wanted_crd = Wanted::read(crd)?;
        wanted_crd.create(&api).await?;
        wanted.push(wanted_crd);
    }
    // All at once: the API server works on them side by side.
    futures::future::try_join_all(wanted.iter().map(|crd| crd.wait_established(&api))).await?;
    let kinds = wait_discovered(client, &wanted).await?;
    futures::future::try_join_all(kinds.iter().map(|kind| wait_served(client, kind))).await?;
    Ok(wanted.into_iter().zip(kinds).map(|(crd, kind)| CrdId { name: crd.name, hash: crd.hash, kind }).collect())
}

struct Wanted {
    name: String,
    hash: String,
    crd: CustomResourceDefinition,
}

// === impl Wanted ===

impl Wanted {
    fn read(mut value: Value) -> Result<Self, Error> {
        let not_a_crd = |reason: String| Error::NotACrd { reason };
        let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, version) = (field("kind"), field("apiVersion"));
        if kind != "CustomResourceDefinition" || version != "apiextensions.k8s.io/v1" {
            return Err(not_a_crd(format!("this is kind `{kind}`, apiVersion `{version}`")));
        }
        let name = value.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
        let name = name.ok_or_else(|| not_a_crd("it has no metadata.name".to_owned()))?;
        let hash = content_hash(value.get("spec").unwrap_or(&Value::Null));
        // Generators leave an incomplete status behind, which the API server ignores and typed structs refuse.
        if let Some(object) = value.as_object_mut() {
            object.remove("status");
        }
        let mut crd: CustomResourceDefinition = serde_json::from_value(value)
            .map_err(|error| Error::CrdInvalid { name: name.clone(), message: error.to_string() })?;
        crd.annotations_mut().insert(HASH_ANNOTATION.to_owned(), hash.clone());
        Ok(Self { name, hash, crd })
    }

    async fn create(&self, api: &Api<CustomResourceDefinition>) -> Result<(), Error> {
        match api.create(&PostParams::default(), &self.crd).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let installed = api.get(&self.name).await.map_err(|source| self.failed("read", source))?;
                let same = installed.annotations().get(HASH_ANNOTATION) == Some(&self.hash);
                if same { Ok(()) } else { Err(Error::CrdDiffers { name: self.name.clone() }) }
            }
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
                Err(Error::CrdInvalid { name: self.name.clone(), message: status.message.clone() })
            }
            Err(source) => Err(self.failed("install", source)),
        }
    }

    async fn wait_established(&self, api: &Api<CustomResourceDefinition>) -> Result<(), Error> {
        let deadline = Deadline::after(TIMEOUT);
        loop {
            let crd = api.get(&self.name).await.map_err(|source| self.failed("read", source))?;
            let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
            let condition = |kind: &str, status: &str| {
                conditions.iter().find(|condition| condition.type_ == kind && condition.status == status)
            };
            if condition("Established", "True").is_some() {
                return Ok(());
            }
            if let Some(refused) = condition("NamesAccepted", "False") {
                return Err(Error::CrdInvalid { name: self.name.clone(), message: message_of(refused) });
            }
            if deadline.is_over() {
                let seen: Vec<String> = conditions.iter().map(message_of).collect();
                return Err(timeout(&format!("the CRD {} to be Established", self.name), &seen.join("\n")));
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn failed(&self, action: &str, source: kube::Error) -> Error {
        Error::kube(format!("{action} the CRD {}", self.name), source)
    }
}

/// The garbage collector and the witness learn of kinds through discovery, which lags behind `Established`.
async fn wait_discovered(client: &Client, wanted: &[Wanted]) -> Result<Vec<Kind>, Error> {
    let deadline = Deadline::after(TIMEOUT);
    loop {
        let kinds = discovery::kinds(client).await?;
        let of = |crd: &Wanted| {
            let spec = &crd.crd.spec;
            kinds.iter().find(|kind| kind.group == spec.group && kind.plural == spec.names.plural).cloned()
        };
        let found: Option<Vec<Kind>> = wanted.iter().map(of).collect();
        if let Some(found) = found {
            return Ok(found);
        }
        if deadline.is_over() {
            let missing: Vec<&str> =
                wanted.iter().filter(|crd| of(crd).is_none()).map(|crd| crd.name.as_str()).collect();
            return Err(timeout(&format!("{} in the API server's discovery", missing.join(", ")), ""));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// `Established` is set a moment before the new path answers.
async fn wait_served(client: &Client, kind: &Kind) -> Result<(), Error> {
    let deadline = Deadline::after(TIMEOUT);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.api_resource());
    loop {
        match api.list(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok(()),
            Err(source) if deadline.is_over() => {
                return Err(Error::kube(format!("list {} after installing its CRD", kind.plural), source));
            }
            Err(_) => tokio::time::sleep(INTERVAL).await,
        }
    }
}

fn timeout(what: &str, log_tail: &str) -> Error {
    Error::Timeout { what: what.to_owned(), after: TIMEOUT, log_tail: log_tail.to_owned() }
}

fn message_of(condition: &CustomResourceDefinitionCondition) -> String {
    condition.message.clone().or_else(|| condition.reason.clone()).unwrap_or_else(|| condition.type_.clone())
}

/// Independent of key order and of YAML's layout.
fn content_hash(value: &Value) -> String {
    hex::encode(Sha256::digest(canonical(value).to_string()))
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, Value> = map.iter().map(|(key, value)| (key, canonical(value))).collect();
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_knows_content_and_not_key_order() {
        let one = json!({"a": 1, "b": {"c": [1, 2], "d": null}});
        let other_order = json!({"b": {"d": null, "c": [1, 2]}, "a": 1});
        assert_eq!(content_hash(&one), content_hash(&other_order));
        assert_ne!(content_hash(&one), content_hash(&json!({"a": 1, "b": {"c": [2, 1], "d": null}})));
    }

    #[test]
    fn something_else_is_not_taken_for_a_crd() {
        let error = Wanted::read(json!({"kind": "Deployment", "apiVersion": "apps/v1"})).err().unwrap();
        assert!(error.to_string().contains("this is kind `Deployment`, apiVersion `apps/v1`"), "{error}");
    }
}
