//! What a fault changes in a request on its way to the API server, and in the answer on its way back.

use crate::body::{self, Body};
use bytes::Bytes;
use http::{
    Method, Request, StatusCode, Uri,
    header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH},
    request::Parts,
};
use serde_json::Value;
use spiritlevel_model::{
    RequestInfo,
    fault::{Action, Firing},
};

/// Parameters that a fault sets or takes away.
pub(crate) fn request(parts: &mut Parts, firing: &Firing) {
    if matches!(firing.action, Action::DiscoveryFailure { .. }) {
        // Or the answer would be that nothing has changed.
        parts.headers.remove(IF_NONE_MATCH);
    }
    for (key, value) in &firing.rewrite {
        if let Some(uri) = with_parameter(&parts.uri, key, value.as_deref()) {
            parts.uri = uri;
        }
    }
}

/// Whether such a fault changes a successful answer.
pub(crate) fn is_edited(action: &Action) -> bool {
    matches!(action, Action::EmptyList {} | Action::DiscoveryFailure { .. })
}

/// The answer as a fault leaves it, and what that did; `None` where it changes nothing.
pub(crate) fn answer(
    action: &Action,
    info: &RequestInfo,
    parts: &mut http::response::Parts,
    bytes: &[u8],
) -> Option<(Bytes, String)> {
    let (edited, what) = match action {
        Action::EmptyList {} => (emptied(bytes)?, format!("{info} was answered empty")),
        Action::DiscoveryFailure { group } => {
            parts.headers.remove(ETAG);
            match info.path.trim_end_matches('/') {
                "/apis" => (without_group(bytes, group)?, format!("{group} was missing from {}", info.path)),
                // As the API server answers for a path that nobody serves.
                path => {
                    parts.status = StatusCode::NOT_FOUND;
                    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                    (Bytes::from_static(b"404 page not found\n"), format!("{path} was not found"))
                }
            }
        }
        _ => return None,
    };
    parts.headers.remove(CONTENT_LENGTH);
    Some((edited, what))
}

/// A list, or a Table, with nothing in it: as if nothing were left out of it either.
fn emptied(bytes: &[u8]) -> Option<Bytes> {
    let mut list: Value = serde_json::from_slice(bytes).ok()?;
    let key = if list["kind"] == "Table" { "rows" } else { "items" };
    list[key] = Value::Array(Vec::new());
    if let Some(meta) = list["metadata"].as_object_mut() {
        meta.remove("continue");
        meta.remove("remainingItemCount");
    }
    serde_json::to_vec(&list).ok().map(Into::into)
}

/// The groups without this one: `APIGroupList`, or `APIGroupDiscoveryList` of aggregated discovery. Nothing to do where it
/// is not among them.
fn without_group(bytes: &[u8], group: &str) -> Option<Bytes> {
    let mut list: Value = serde_json::from_slice(bytes).ok()?;
    let (key, name) = if list["kind"] == "APIGroupList" { ("groups", "/name") } else { ("items", "/metadata/name") };
    let all = list[key].as_array_mut()?;
    let before = all.len();
    all.retain(|g| g.pointer(name).and_then(Value::as_str) != Some(group));
    (all.len() < before).then(|| serde_json::to_vec(&list).ok().map(Into::into))?
}

/// The same request, of which the API server stores nothing.
pub(crate) fn dry_run(parts: &Parts, body: Bytes) -> Option<Request<Body>> {
    let mut parts = parts.clone();
    parts.uri = with_parameter(&parts.uri, "dryRun", Some("All"))?;
    Some(Request::from_parts(parts, body::whole(body)))
}

/// A look at the object that a request is about.
pub(crate) fn lookup(parts: &Parts) -> Option<Request<Body>> {
    let mut parts = parts.clone();
    parts.method = Method::GET;
    parts.uri = parts.uri.path().parse().ok()?;
    parts.headers.remove(CONTENT_TYPE);
    parts.headers.remove(CONTENT_LENGTH);
    Some(Request::from_parts(parts, body::whole(Bytes::new())))
}

/// A URL's parameters in their order, one of them replaced, added or left out. Values are plain numbers and words.
fn with_parameter(uri: &Uri, key: &str, value: Option<&str>) -> Option<Uri> {
    let others = uri.query().unwrap_or_default().split('&');
    let others = others.filter(|p| !p.is_empty() && p.split('=').next() != Some(key)).map(String::from);
    let query: Vec<String> = others.chain(value.map(|v| format!("{key}={v}"))).collect();
    let path = uri.path();
    let text = if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(text.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_parameter_changes_and_the_others_stay() {
        let uri: Uri = "/api/v1/pods?watch=true&resourceVersion=9&labelSelector=a%3Db".parse().unwrap();
        for (key, value, expected) in [
            ("resourceVersion", Some("5"), "/api/v1/pods?watch=true&labelSelector=a%3Db&resourceVersion=5"),
            ("resourceVersion", None, "/api/v1/pods?watch=true&labelSelector=a%3Db"),
            ("dryRun", Some("All"), "/api/v1/pods?watch=true&resourceVersion=9&labelSelector=a%3Db&dryRun=All"),
        ] {
            assert_eq!(with_parameter(&uri, key, value).unwrap(), expected);
        }
        assert_eq!(with_parameter(&"/apis".parse().unwrap(), "a", None).unwrap(), "/apis");
    }

    #[test]
    fn an_emptied_list_hides_nothing() {
        let list = json!({"kind": "PodList", "metadata": {"resourceVersion": "7", "continue": "c", "remainingItemCount": 3},
            "items": [{"metadata": {"name": "a"}}]});
        let edited: Value = serde_json::from_slice(&emptied(list.to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!(edited, json!({"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": []}));
        let table = json!({"kind": "Table", "metadata": {"resourceVersion": "7"}, "rows": [{"cells": []}]});
        let edited: Value = serde_json::from_slice(&emptied(table.to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!(edited["rows"], json!([]));
        assert!(emptied(b"k8s\0").is_none());
    }

    #[test]
    fn a_group_is_missing_from_both_forms_of_discovery() {
        let legacy = json!({"kind": "APIGroupList", "groups": [{"name": "apps"}, {"name": "db.example.com"}]});
        let aggregated = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "db.example.com"}}, {"metadata": {"name": "apps"}}]});
        for (list, left) in [
            (&legacy, json!({"kind": "APIGroupList", "groups": [{"name": "apps"}]})),
            (&aggregated, json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "apps"}}]})),
        ] {
            let bytes = list.to_string();
            let edited = without_group(bytes.as_bytes(), "db.example.com").unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&edited).unwrap(), left);
            assert!(without_group(bytes.as_bytes(), "batch").is_none());
        }
    }
}
