//! Headers on their way through: what belongs to one connection stays there, and answers are asked for as JSON.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
};
use spiritlevel_model::RequestInfo;

/// Subresources whose answer is not an object but bytes of a container or of another server.
const RAW: [&str; 5] = ["log", "proxy", "exec", "attach", "portforward"];

/// Removes what is about one connection only (RFC 9110, 7.6.1).
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"] {
        headers.remove(name);
    }
}

/// The protocol that a client wants to change to.
pub(crate) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = headers.get_all(CONNECTION).iter().filter_map(|v| v.to_str().ok());
    let asks = asks.flat_map(|v| v.split(',')).any(|t| t.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| asks).cloned()
}

/// Whether the answer is made of Kubernetes objects, or is discovery: then it can be asked for as JSON. Everything else
/// (`/openapi/v2`, which client-go reads as protobuf only, logs, proxied servers) is left as it is.
pub(crate) fn speaks_objects(info: &RequestInfo) -> bool {
    if info.resource.is_some() {
        return !is_raw(info);
    }
    let parts: Vec<&str> = info.path.split('/').filter(|p| !p.is_empty()).collect();
    matches!(parts.as_slice(), ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _])
}

/// Whether the subresource is a stream of bytes.
pub(crate) fn is_raw(info: &RequestInfo) -> bool {
    info.subresource.as_deref().and_then(|s| s.split('/').next()).is_some_and(|s| RAW.contains(&s))
}

/// Replaces each acceptable media type by JSON and keeps the parameters that say which representation is meant (`as`,
/// `g`, `v` of tables and aggregated discovery, `q`).
pub(crate) fn ask_for_json(headers: &mut HeaderMap) {
    headers.remove(ACCEPT_ENCODING);
    let asked: Vec<String> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).map(String::from).collect();
    if asked.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&as_json(&asked.join(","))) {
        headers.insert(ACCEPT, value);
    }
}

fn as_json(accept: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for range in accept.split(',').map(str::trim).filter(|r| !r.is_empty()) {
        let kept = range.split(';').skip(1).map(str::trim).filter(|p| {
            let key = p.split('=').next().unwrap_or_default();
            matches!(key, "as" | "g" | "v" | "q")
        });
        let json = std::iter::once("application/json").chain(kept).collect::<Vec<_>>().join(";");
        if !out.contains(&json) {
            out.push(json);
        }
    }
    out.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_become_json_and_keep_what_they_represent() {
        for (accept, expected) in [
            ("application/vnd.kubernetes.protobuf,application/json", "application/json"),
            ("application/vnd.kubernetes.protobuf;stream=watch", "application/json"),
            ("*/*", "application/json"),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            ),
            (
                "application/vnd.kubernetes.protobuf; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1, */*;q=0.8",
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.8",
            ),
        ] {
            assert_eq!(as_json(accept), expected, "{accept}");
        }
    }

    #[test]
    fn objects_and_discovery_are_json_the_rest_is_not_touched() {
        for (url, expected) in [
            ("/api/v1/pods", true),
            ("/apis/apps/v1/namespaces/a/deployments/d/scale", true),
            ("/api", true),
            ("/apis", true),
            ("/api/v1", true),
            ("/apis/apps", true),
            ("/apis/apps/v1", true),
            ("/openapi/v2", false),
            ("/openapi/v3", false),
            ("/version", false),
            ("/healthz", false),
            ("/api/v1/namespaces/a/pods/p/log?follow=true", false),
            ("/api/v1/namespaces/a/services/s/proxy/metrics", false),
        ] {
            assert_eq!(speaks_objects(&RequestInfo::classify("GET", url)), expected, "{url}");
        }
    }

    #[test]
    fn headers_of_one_connection_stay_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("authorization", "Bearer t"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["authorization"]);
    }
}
