//! Objects: how they are named, and the few fields of them that every part needs.

use crate::{Revision, Uid};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::{fmt, str::FromStr};

/// A resource without its version, written as kubectl does: `pods`, `statefulsets.apps`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural, lower case.
    pub resource: String,
}

impl ResourceKey {
    /// From its parts.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

impl FromStr for ResourceKey {
    type Err = std::convert::Infallible;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(s.split_once('.').map_or_else(|| Self::new("", s), |(resource, group)| Self::new(group, resource)))
    }
}

impl Serialize for ResourceKey {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceKey {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(String::deserialize(d)?.parse().unwrap_or_else(|never| match never {}))
    }
}

/// One object by name, in findings and messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version, `apps/v1`.
    pub api_version: String,
    /// Kind, `StatefulSet`.
    pub kind: String,
    /// Namespace; none for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// The uid, where one version of it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
}

impl ObjectRef {
    /// The names that an object carries in itself; `None` if it lacks kind or name.
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self {
            api_version: object["apiVersion"].as_str()?.into(),
            kind: object["kind"].as_str()?.into(),
            namespace: object["metadata"]["namespace"].as_str().map(Into::into),
            name: object["metadata"]["name"].as_str()?.into(),
            uid: object.uid(),
        })
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        f.write_str(" ")?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version of the owner.
    #[serde(default)]
    pub api_version: String,
    /// Kind of the owner.
    #[serde(default)]
    pub kind: String,
    /// Name of the owner.
    #[serde(default)]
    pub name: String,
    /// Uid of the owner: what the garbage collector goes by.
    pub uid: Uid,
    /// Whether the owner manages the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// The metadata that judging needs, read from an object as JSON.
pub trait Meta {
    /// `metadata.uid`.
    fn uid(&self) -> Option<Uid>;
    /// `metadata.name`.
    fn name(&self) -> Option<&str>;
    /// `metadata.namespace`.
    fn namespace(&self) -> Option<&str>;
    /// `metadata.resourceVersion` as a number.
    fn revision(&self) -> Option<Revision>;
    /// `metadata.generation`.
    fn generation(&self) -> Option<i64>;
    /// Whether `metadata.deletionTimestamp` is set.
    fn is_terminating(&self) -> bool;
    /// `metadata.finalizers`.
    fn finalizers(&self) -> Vec<&str>;
    /// `metadata.ownerReferences`; entries without a uid are left out, the API server refuses them.
    fn owners(&self) -> Vec<OwnerReference>;
    /// `metadata.labels[key]`.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Meta for Value {
    fn uid(&self) -> Option<Uid> {
        self["metadata"]["uid"].as_str().map(|u| Uid(u.into()))
    }

    fn name(&self) -> Option<&str> {
        self["metadata"]["name"].as_str()
    }

    fn namespace(&self) -> Option<&str> {
        self["metadata"]["namespace"].as_str()
    }

    fn revision(&self) -> Option<Revision> {
        self["metadata"]["resourceVersion"].as_str()?.parse().ok().map(Revision)
    }

    fn generation(&self) -> Option<i64> {
        self["metadata"]["generation"].as_i64()
    }

    fn is_terminating(&self) -> bool {
        self["metadata"]["deletionTimestamp"].is_string()
    }

    fn finalizers(&self) -> Vec<&str> {
        self["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn owners(&self) -> Vec<OwnerReference> {
        let all = self["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        all.filter_map(|o| OwnerReference::deserialize(o).ok()).collect()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self["metadata"]["labels"][key].as_str()
    }
}
