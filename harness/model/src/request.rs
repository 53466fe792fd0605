//! What a request asks for, read from its method and URL as kube-apiserver reads it
//! (`k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`).

use crate::ResourceKey;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kubernetes' verbs, as in RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// POST.
    Create,
    /// GET of one object.
    Get,
    /// GET of a collection.
    List,
    /// GET of a collection that stays open.
    Watch,
    /// PUT.
    Update,
    /// PATCH, server-side apply included.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// Anything on a URL that names no resource (`/version`, discovery, `/openapi`), and HEAD or OPTIONS.
    Other,
}

impl Verb {
    /// Whether a request with this verb can change stored objects.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection)
    }

    /// As written in RBAC rules and scenario files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request's meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestInfo {
    /// What is done.
    pub verb: Verb,
    /// To which resource; none for URLs that name no resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceKey>,
    /// API version without the group, `v1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `status`, `binding`, `eviction`, `scale`, `exec`, `token`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// Namespace in the URL; for the resource `namespaces` the namespace's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name in the URL, or in the body of a create once it has been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The URL's path.
    pub path: String,
    /// The URL's query, decoded.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub query: IndexMap<String, String>,
}

impl RequestInfo {
    /// Reads method and `path?query`.
    pub fn classify(method: &str, path_and_query: &str) -> Self {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let query: IndexMap<String, String> = query
            .split('&')
            .filter(|p| !p.is_empty())
            .map(|p| p.split_once('=').unwrap_or((p, "")))
            .map(|(k, v)| (decode(k), decode(v)))
            .collect();
        let mut info = Self {
            verb: Verb::Other,
            resource: None,
            version: String::new(),
            subresource: None,
            namespace: None,
            name: None,
            path: path.into(),
            query,
        };
        let parts: Vec<String> = path.split('/').filter(|p| !p.is_empty()).map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return info,
        };
        // `/api/v1/watch/…` is the old form of watching, still served.
        let (old_watch, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let rest = match rest {
            // `namespaces/NAME`, `/status` and `/finalize` are the namespace itself; anything longer lies in it.
            ["namespaces", name, sub @ ..] if group.is_empty() && matches!(sub, [] | ["status" | "finalize"]) => {
                info.namespace = Some((*name).into());
                rest
            }
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
                info.namespace = Some((*namespace).into());
                rest
            }
            rest => rest,
        };
        let Some(resource) = rest.first() else { return info };
        info.version = version.into();
        info.resource = Some(ResourceKey::new(group, resource));
        info.name = rest.get(1).map(|n| (*n).into());
        info.subresource = rest.get(2).map(|_| rest[2..].join("/"));
        let watch = old_watch || matches!(info.query.get("watch").map(String::as_str), Some("true" | "1" | ""));
        info.verb = match (method, &info.name) {
            ("GET", None) if watch => Verb::Watch,
            // A watch on one name is a watch with a field selector.
            ("GET", Some(_)) if old_watch => Verb::Watch,
            ("GET", None) => Verb::List,
            ("GET", Some(_)) => Verb::Get,
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", Some(_)) => Verb::Delete,
            ("DELETE", None) => Verb::DeleteCollection,
            _ => Verb::Other,
        };
        info
    }

    /// `resource` or `resource/subresource`, as in RBAC; empty for URLs that name no resource.
    pub fn resource_path(&self) -> String {
        match (&self.resource, &self.subresource) {
            (None, _) => String::new(),
            (Some(r), None) => r.to_string(),
            (Some(r), Some(sub)) => format!("{r}/{sub}"),
        }
    }

    /// Whether the request only asks (reviews) or is a dry run: nothing is stored whatever it answers.
    pub fn stores_nothing(&self) -> bool {
        let review = self.resource.as_ref().is_some_and(|r| {
            matches!(r.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io")
                && r.resource.ends_with("reviews")
        });
        let asks =
            matches!(self.subresource.as_deref(), Some("token" | "exec" | "attach" | "portforward" | "log" | "proxy"));
        !self.verb.is_write() || review || asks || self.query.contains_key("dryRun")
    }
}

impl fmt::Display for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.resource.is_none() {
            return f.write_str(&self.path);
        }
        write!(f, "{} {}", self.verb, self.resource_path())?;
        match (&self.namespace, &self.name) {
            (Some(ns), Some(name)) => write!(f, " {ns}/{name}"),
            (None, Some(name)) => write!(f, " {name}"),
            (Some(ns), None) => write!(f, " in {ns}"),
            (None, None) => Ok(()),
        }
    }
}

/// Percent-decoding; `+` stands for a space only in queries, and Kubernetes clients write `%20` there.
fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let hex = |k: usize| bytes.get(i + k).and_then(|b| char::from(*b).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (bytes[i], hex(1), hex(2)) {
            out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            i += 3;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::RequestInfo;

    #[test]
    fn urls_are_read_as_the_api_server_reads_them() {
        for (method, url, expected) in [
            ("GET", "/api/v1/namespaces/a/pods/p", "get pods a/p"),
            ("GET", "/api/v1/namespaces/a/pods?watch=true&resourceVersion=7", "watch pods in a"),
            ("GET", "/api/v1/pods?watch=1", "watch pods"),
            ("GET", "/api/v1/watch/namespaces/a/pods", "watch pods in a"),
            ("GET", "/api/v1/pods", "list pods"),
            ("POST", "/apis/apps/v1/namespaces/a/statefulsets", "create statefulsets.apps in a"),
            ("PUT", "/apis/apps/v1/namespaces/a/statefulsets/s/status", "update statefulsets.apps/status a/s"),
            (
                "PATCH",
                "/apis/db.example.com/v1/namespaces/a/postgresclusters/x",
                "patch postgresclusters.db.example.com a/x",
            ),
            ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods in a"),
            ("DELETE", "/api/v1/namespaces/a/pods/p", "delete pods a/p"),
            ("POST", "/api/v1/namespaces/a/pods/p/binding", "create pods/binding a/p"),
            ("POST", "/api/v1/namespaces/a/pods/p/eviction", "create pods/eviction a/p"),
            ("GET", "/api/v1/namespaces/a", "get namespaces a/a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize a/a"),
            ("GET", "/api/v1/namespaces", "list namespaces"),
            ("POST", "/api/v1/namespaces", "create namespaces"),
            (
                "GET",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/x%3Ay",
                "get clusterroles.rbac.authorization.k8s.io x:y",
            ),
            ("GET", "/apis", "/apis"),
            ("GET", "/api/v1", "/api/v1"),
            ("GET", "/version", "/version"),
            ("POST", "/api/v1/namespaces/a/pods/p/exec?command=ls", "create pods/exec a/p"),
            ("GET", "/api/v1/namespaces/a/services/s/proxy/deep/path", "get services/proxy/deep/path a/s"),
        ] {
            assert_eq!(RequestInfo::classify(method, url).to_string(), expected, "{method} {url}");
        }
    }

    #[test]
    fn questions_and_dry_runs_store_nothing() {
        for (method, url, stores_nothing) in [
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true),
            ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", true),
            ("POST", "/api/v1/namespaces/a/serviceaccounts/s/token", true),
            ("PATCH", "/api/v1/namespaces/a/pods/p?dryRun=All", true),
            ("GET", "/api/v1/namespaces/a/pods/p", true),
            ("PATCH", "/api/v1/namespaces/a/pods/p", false),
            ("POST", "/api/v1/namespaces/a/pods/p/eviction", false),
        ] {
            assert_eq!(RequestInfo::classify(method, url).stores_nothing(), stores_nothing, "{url}");
        }
    }
}
