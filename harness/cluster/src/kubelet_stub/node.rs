//! The one Node that every pod is bound to, and the default StorageClass.

use std::net::Ipv4Addr;

use k8s_openapi::api::{core::v1::Node, storage::v1::StorageClass};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

/// The node's name.
pub const NAME: &str = "spiritlevel-node";
/// The default StorageClass.
pub const STORAGE_CLASS: &str = "standard";
/// The provisioner of [`STORAGE_CLASS`]; classes of other provisioners are served as well.
pub const PROVISIONER: &str = "spiritlevel.dev/stub";

/// The node's own address, never a pod's.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

/// Creates what is not there yet.
pub(super) async fn ensure(client: &Client) -> kube::Result<()> {
    let version = client.apiserver_version().await?.git_version;
    let nodes: Api<Node> = Api::all(client.clone());
    let node = match nodes.get_opt(NAME).await? {
        Some(node) => node,
        None => nodes.create(&PostParams::default(), &node(&version)).await?,
    };
    // Admission gives every new node a `not-ready` taint, which the node lifecycle controller would take away: without
    // it, nobody but us, and DaemonSets would wait for ever.
    if node.spec.and_then(|spec| spec.taints).is_some_and(|taints| !taints.is_empty()) {
        let patch = Patch::Merge(json!({"spec": {"taints": null}}));
        nodes.patch(NAME, &PatchParams::default(), &patch).await?;
    }
    let classes: Api<StorageClass> = Api::all(client.clone());
    if classes.get_opt(STORAGE_CLASS).await?.is_none() {
        classes.create(&PostParams::default(), &storage_class()).await?;
    }
    Ok(())
}

fn node(kubelet_version: &str) -> Node {
    let capacity = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "10000"});
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason});
    let node = json!({
        "metadata": {
            "name": NAME,
            "labels": {
                "kubernetes.io/hostname": NAME,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {"podCIDR": "10.1.0.0/16", "podCIDRs": ["10.1.0.0/16"]},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": ADDRESS.to_string()},
                {"type": "Hostname", "address": NAME},
            ],
            "allocatable": capacity,
            "capacity": capacity,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "spiritlevel://1",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": kubelet_version,
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "spiritlevel kubelet stub",
                "systemUUID": "",
            },
        },
    });
    serde_json::from_value(node).expect("the literal has the form of a Node")
}

fn storage_class() -> StorageClass {
    let class = json!({
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": true,
    });
    serde_json::from_value(class).expect("the literal has the form of a StorageClass")
}
