//! Resources as URLs have them: plural, lower case, with their group. Anything else matches nothing.

use super::{
    project::{Found, Project},
    scene::{Scene, awaited, join},
};
use crate::{
    fault::{Action, OneOrMany, Until},
    invariants::{Invariants, Toggle},
    load::{Loaded, parse_manifests},
    problem::{Path, Problem, nearest},
    suite::Suite,
};

/// Kinds that operators deal with: kind, resource, group.
const BUILT_IN: [(&str, &str, &str); 40] = [
    ("Binding", "bindings", ""),
    ("ConfigMap", "configmaps", ""),
    ("Endpoints", "endpoints", ""),
    ("Event", "events", ""),
    ("LimitRange", "limitranges", ""),
    ("Namespace", "namespaces", ""),
    ("Node", "nodes", ""),
    ("PersistentVolume", "persistentvolumes", ""),
    ("PersistentVolumeClaim", "persistentvolumeclaims", ""),
    ("Pod", "pods", ""),
    ("PodTemplate", "podtemplates", ""),
    ("ReplicationController", "replicationcontrollers", ""),
    ("ResourceQuota", "resourcequotas", ""),
    ("Secret", "secrets", ""),
    ("Service", "services", ""),
    ("ServiceAccount", "serviceaccounts", ""),
    ("ControllerRevision", "controllerrevisions", "apps"),
    ("DaemonSet", "daemonsets", "apps"),
    ("Deployment", "deployments", "apps"),
    ("ReplicaSet", "replicasets", "apps"),
    ("StatefulSet", "statefulsets", "apps"),
    ("CronJob", "cronjobs", "batch"),
    ("Job", "jobs", "batch"),
    ("HorizontalPodAutoscaler", "horizontalpodautoscalers", "autoscaling"),
    ("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    ("Lease", "leases", "coordination.k8s.io"),
    ("EndpointSlice", "endpointslices", "discovery.k8s.io"),
    ("Ingress", "ingresses", "networking.k8s.io"),
    ("IngressClass", "ingressclasses", "networking.k8s.io"),
    ("NetworkPolicy", "networkpolicies", "networking.k8s.io"),
    ("Role", "roles", "rbac.authorization.k8s.io"),
    ("RoleBinding", "rolebindings", "rbac.authorization.k8s.io"),
    ("ClusterRole", "clusterroles", "rbac.authorization.k8s.io"),
    ("ClusterRoleBinding", "clusterrolebindings", "rbac.authorization.k8s.io"),
    ("StorageClass", "storageclasses", "storage.k8s.io"),
    ("VolumeAttachment", "volumeattachments", "storage.k8s.io"),
    ("PriorityClass", "priorityclasses", "scheduling.k8s.io"),
    ("CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "admissionregistration.k8s.io"),
];

/// A kind and the resource that holds it.
struct Known {
    kind: String,
    resource: String,
    group: String,
}

pub(super) fn check(scene: &Scene<'_>) -> Vec<Problem> {
    let mut named: Vec<(Path, String)> = Vec::new();
    for (path, matches) in scene.matches() {
        let at = path.key("resource");
        let many = scene.scenario.tree.at(&at).is_some_and(|n| n.to_value().is_array());
        for (i, name) in matches.resource.iter().flat_map(OneOrMany::as_slice).enumerate() {
            named.push((if many { at.index(i) } else { at.clone() }, name.clone()));
        }
    }
    for (path, fault) in scene.faults() {
        for (at, until) in awaited(&path, fault) {
            if let Until::Event { resource, .. } = until {
                named.push((at.key("event").key("resource"), resource.clone()));
            }
        }
        if let Action::StaleView { kinds, .. } = &fault.action {
            let at = path.key("do").key(fault.action.name()).key("kinds");
            named.extend(kinds.iter().enumerate().map(|(i, kind)| (at.index(i), kind.clone())));
        }
    }
    named.extend(retained(&Path::parse("spec.invariants"), &scene.spec.invariants));
    problems(scene.scenario, named, &known(scene.project, scene.suite))
}

/// The resources that a suite's defaults name.
pub(super) fn in_defaults(project: &Project<'_>, suite: &Suite) -> Vec<Problem> {
    let named = retained(&Path::parse("spec.defaults.invariants"), &suite.spec.defaults.invariants);
    problems(project.suite, named, &known(project, suite))
}

fn retained(at: &Path, invariants: &Invariants) -> Vec<(Path, String)> {
    let Some(Toggle::Settings(orphans)) = &invariants.no_orphans else { return Vec::new() };
    let at = at.key("noOrphans").key("retain");
    let retain = orphans.retain.iter().enumerate();
    retain.map(|(i, r)| (at.index(i).key("resource"), r.resource.clone())).collect()
}

fn problems<T>(file: &Loaded<T>, named: Vec<(Path, String)>, known: &[Known]) -> Vec<Problem> {
    let problem = |(path, name): (Path, String)| {
        let (message, help) = wrong(&name, known)?;
        let problem = file.at_value(&path, message);
        Some(match help {
            Some(help) => problem.with_help(help),
            None => problem,
        })
    };
    named.into_iter().filter_map(problem).collect()
}

/// What is wrong with a resource's name, if it cannot be one.
fn wrong(name: &str, known: &[Known]) -> Option<(String, Option<String>)> {
    let is = |k: &Known| name == full(k);
    if name.contains(['*', '?', '[', '{']) || crate::bindings::mentions_any(name) || known.iter().any(is) {
        return None;
    }
    let (first, group) = name.split_once('.').unwrap_or((name, ""));
    let lower = first.to_lowercase();
    let by_kind = |k: &&Known| k.kind.to_lowercase() == lower && (group.is_empty() || k.group == group);
    if let Some(kind) = known.iter().find(by_kind) {
        return Some((format!("`{name}` is a kind, not a resource"), Some(format!("write `{}`", full(kind)))));
    }
    if let Some(other) = known.iter().find(|k| k.resource == lower) {
        let message = match group {
            "" if other.group.is_empty() => format!("resources are written in lower case, `{name}` is not"),
            "" => format!("`{name}` has a group"),
            _ if other.group.is_empty() => format!("`{first}` is in the core group, which is not written"),
            _ => format!("`{first}` is in another group"),
        };
        return Some((message, Some(format!("write `{}`", full(other)))));
    }
    if first.chars().any(|c| c.is_ascii_uppercase()) {
        return Some((
            format!("`{name}` looks like a kind"),
            Some("write the plural in lower case, `plural.group`".into()),
        ));
    }
    // Other groups may have anything.
    if group.is_empty() {
        let names: Vec<String> = known.iter().map(full).collect();
        let near = nearest(name, names.iter().map(String::as_str)).map(|n| format!("did you mean `{n}`?"));
        let help = near.unwrap_or_else(|| "outside the core group a resource is written `plural.group`".into());
        return Some((format!("the core group has no resource `{name}`"), Some(help)));
    }
    None
}

fn full(known: &Known) -> String {
    if known.group.is_empty() { known.resource.clone() } else { format!("{}.{}", known.resource, known.group) }
}

/// What every API server has, and what the suite's CRDs add.
fn known(project: &Project<'_>, suite: &Suite) -> Vec<Known> {
    let mut all: Vec<Known> = BUILT_IN
        .iter()
        .map(|(kind, resource, group)| Known {
            kind: (*kind).into(),
            resource: (*resource).into(),
            group: (*group).into(),
        })
        .collect();
    for file in &suite.spec.crds {
        let path = join(&project.suite_dir, file);
        let Found::File(text) = (project.look)(&path) else { continue };
        for object in parse_manifests(&path, &text).unwrap_or_default() {
            let names = &object["spec"]["names"];
            if let (Some(kind), Some(resource), Some(group)) =
                (names["kind"].as_str(), names["plural"].as_str(), object["spec"]["group"].as_str())
            {
                all.push(Known { kind: kind.into(), resource: resource.into(), group: group.into() });
            }
        }
    }
    all
}
