//! The kinds of built-in resources, which some answers name instead of the resource.

use spiritlevel_model::ResourceKey;

/// Resource and kind, where the one is not made from the other by a capital letter and an `s`.
const KINDS: [(&str, &str); 34] = [
    ("apiservices", "APIService"),
    ("certificatesigningrequests", "CertificateSigningRequest"),
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("clusterroles", "ClusterRole"),
    ("configmaps", "ConfigMap"),
    ("controllerrevisions", "ControllerRevision"),
    ("cronjobs", "CronJob"),
    ("csidrivers", "CSIDriver"),
    ("csinodes", "CSINode"),
    ("customresourcedefinitions", "CustomResourceDefinition"),
    ("daemonsets", "DaemonSet"),
    ("endpoints", "Endpoints"),
    ("endpointslices", "EndpointSlice"),
    ("horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ("ingressclasses", "IngressClass"),
    ("ingresses", "Ingress"),
    ("limitranges", "LimitRange"),
    ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    ("networkpolicies", "NetworkPolicy"),
    ("persistentvolumeclaims", "PersistentVolumeClaim"),
    ("persistentvolumes", "PersistentVolume"),
    ("poddisruptionbudgets", "PodDisruptionBudget"),
    ("podtemplates", "PodTemplate"),
    ("priorityclasses", "PriorityClass"),
    ("replicasets", "ReplicaSet"),
    ("replicationcontrollers", "ReplicationController"),
    ("resourcequotas", "ResourceQuota"),
    ("rolebindings", "RoleBinding"),
    ("serviceaccounts", "ServiceAccount"),
    ("statefulsets", "StatefulSet"),
    ("storageclasses", "StorageClass"),
    ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    ("volumeattachments", "VolumeAttachment"),
    ("runtimeclasses", "RuntimeClass"),
];

/// The kind of a resource; of a custom one a guess, since its name alone does not tell.
pub(super) fn kind_of(resource: &ResourceKey) -> String {
    let plural = resource.resource.as_str();
    if let Some((_, kind)) = KINDS.iter().find(|(of, _)| *of == plural) {
        return (*kind).to_owned();
    }
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    let mut letters = singular.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
