//! What may differ between two local control planes.

use std::time::Duration;

use crate::assets::Sources;

/// Settings of a local control plane; the default suits nearly everyone.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Where the binaries come from.
    pub sources: Sources,
    /// Which built-in controllers run.
    pub controllers: Controllers,
    /// Appended to kube-apiserver's command line, such as `--etcd-compaction-interval=1m`.
    pub api_server_args: Vec<String>,
    /// How long each of etcd, the API server and the controllers may take to become ready.
    pub start_timeout: Duration,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            sources: Sources::from_env(),
            controllers: Controllers::default(),
            api_server_args: Vec::new(),
            start_timeout: Duration::from_secs(120),
        }
    }
}

/// Which built-in controllers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Controllers {
    /// Garbage collection, namespaces, service accounts, aggregated roles, quotas: enough where no pods are made.
    Objects,
    /// Those, and the ones that turn Deployments, StatefulSets, Jobs and volumes into further objects.
    #[default]
    Workloads,
}

const OBJECTS: [&str; 8] = [
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "validatingadmissionpolicy-status-controller",
];

/// Left out, because the kubelet stub is no kubelet: node lifecycle, taint eviction, node IPAM, attach/detach,
/// autoscaling.
const WORKLOADS: [&str; 16] = [
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "ephemeral-volume-controller",
    "job-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    // Admission puts a finalizer on every claim; without this controller none could be deleted.
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
];

impl Controllers {
    /// Names as in `--controllers`, of those that this kube-controller-manager knows: an unknown one is a start error.
    pub(crate) fn names(self, help: &str) -> Vec<&'static str> {
        let workloads: &[&str] = if self == Self::Workloads { &WORKLOADS } else { &[] };
        let known: Vec<&str> = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
        OBJECTS.iter().chain(workloads).copied().filter(|name| known.contains(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_controllers_that_the_program_knows_are_asked_for() {
        let help = "All controllers: garbage-collector-controller, statefulset-controller,\n node-ipam-controller (default [*])";
        assert_eq!(Controllers::Objects.names(help), ["garbage-collector-controller"]);
        assert_eq!(Controllers::Workloads.names(help), ["garbage-collector-controller", "statefulset-controller"]);
    }
}
