//! Which kinds the API server serves: what the witness watches and what collection is proven for.

use std::collections::BTreeSet;

use kube::{
    Client,
    core::{ApiResource, GroupVersionKind},
};
use serde::{Deserialize, Serialize};

use crate::Error;

/// One served resource, at the version the API server prefers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// Preferred version, such as `v1`.
    pub version: String,
    /// Such as `StatefulSet`.
    pub kind: String,
    /// As in the URL, such as `statefulsets`.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Such as `list`, `watch`, `delete`.
    pub verbs: Vec<String>,
}

// === impl Kind ===

impl Kind {
    /// As in a manifest: `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// For dynamic clients.
    pub fn api_resource(&self) -> ApiResource {
        let gvk = GroupVersionKind::gvk(&self.group, &self.version, &self.kind);
        ApiResource::from_gvk_with_plural(&gvk, &self.plural)
    }

    /// Whether the resource takes this verb.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// Whether these are the objects of another group under a second name: `events.k8s.io` stores what core `events`
    /// stores, and whoever watches both sees each event twice.
    pub fn is_second_name(&self) -> bool {
        self.group == "events.k8s.io" && self.plural == "events"
    }
}

/// Every kind, built-in or from a CRD: one entry for each (group, resource), without subresources, sorted.
pub async fn kinds(client: &Client) -> Result<Vec<Kind>, Error> {
    let failed = |source| Error::kube("ask which kinds the API server has", source);
    let (core, named) =
        futures::try_join!(client.list_core_api_versions_aggregated(), client.list_api_groups_aggregated())
            .map_err(failed)?;

    let mut kinds = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for group in core.items.into_iter().chain(named.items) {
        let group_name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        // In descending order of preference, so the first sight of a resource is its preferred version.
        for version in group.versions {
            let version_name = version.version.unwrap_or_default();
            for resource in version.resources {
                let kind = resource.response_kind.and_then(|response| response.kind);
                let (Some(plural), Some(kind)) = (resource.resource, kind) else { continue };
                if seen.insert((group_name.clone(), plural.clone())) {
                    kinds.insert(Kind {
                        group: group_name.clone(),
                        version: version_name.clone(),
                        kind,
                        plural,
                        namespaced: resource.scope.as_deref() == Some("Namespaced"),
                        verbs: resource.verbs,
                    });
                }
            }
        }
    }
    Ok(kinds.into_iter().collect())
}
