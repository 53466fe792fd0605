//! Kubeconfig files for programs that are not ours.

use serde_json::json;

use crate::Endpoint;

/// A kubeconfig with one context, which is the current one. Tokens, not client certificates: those do not pass a proxy.
pub fn render(endpoint: &Endpoint, token: &str, namespace: &str) -> String {
    let ca = base64_of(endpoint.ca_pem.as_bytes());
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "spiritlevel", "cluster": {"server": endpoint.url, "certificate-authority-data": ca}}],
        "users": [{"name": "spiritlevel", "user": {"token": token}}],
        "contexts": [{
            "name": "spiritlevel",
            "context": {"cluster": "spiritlevel", "user": "spiritlevel", "namespace": namespace},
        }],
        "current-context": "spiritlevel",
    });
    serde_yaml::to_string(&config).expect("plain strings always serialise")
}

fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_reads_back_what_was_written() {
        let endpoint = Endpoint { url: "https://127.0.0.1:6443".to_owned(), ca_pem: "pem".to_owned() };
        let read = kube::config::Kubeconfig::from_yaml(&render(&endpoint, "0123", "shop")).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("spiritlevel"));
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("cGVt"));
        assert_eq!(read.contexts[0].context.as_ref().unwrap().namespace.as_deref(), Some("shop"));
    }
}
