use super::*;
use serde_json::json;

fn kinds() -> Vec<KindInfo> {
    let kind = |group: &str, kind: &str, resource: &str, namespaced| KindInfo {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        resource: resource.into(),
        namespaced,
    };
    vec![
        kind("", "ConfigMap", "configmaps", true),
        kind("", "PersistentVolume", "persistentvolumes", false),
        kind("x.io", "Owner", "owners", true),
    ]
}

fn version(kind: VersionType, resource: &str, name: &str, uid: &str, extra: &Value) -> Version {
    let mut metadata = json!({"name": name, "namespace": "a", "uid": uid, "resourceVersion": "1"});
    for (k, v) in extra.as_object().into_iter().flatten() {
        metadata[k] = v.clone();
    }
    let (api, kind_name) = match resource {
        "configmaps" => ("v1", "ConfigMap"),
        "persistentvolumes" => ("v1", "PersistentVolume"),
        _ => ("x.io/v1", "Owner"),
    };
    Version {
        resource: resource.parse().unwrap(),
        kind,
        revision: Revision(1),
        object: json!({"apiVersion": api, "kind": kind_name, "metadata": metadata}),
    }
}

fn owned_by(api: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"ownerReferences": [{"apiVersion": api, "kind": kind, "name": name, "uid": uid}]})
}

#[test]
fn the_collector_is_predicted_from_the_owner_graph() {
    let added = VersionType::Added;
    for (what, dependent, expected) in [
        ("owner is there", owned_by("x.io/v1", "Owner", "o", "u1"), 0),
        ("uid of another", owned_by("x.io/v1", "Owner", "o", "u9"), 1),
        ("right uid, wrong name", owned_by("x.io/v1", "Owner", "p", "u1"), 1),
        ("right uid, wrong kind that is served", owned_by("v1", "ConfigMap", "o", "u1"), 1),
        ("kind that nobody serves", owned_by("y.io/v1", "Nothing", "o", "u1"), 0),
        ("another version of the group", owned_by("x.io/v2", "Owner", "o", "u1"), 0),
        ("no owner", json!({}), 0),
    ] {
        let mut world = World::new(kinds());
        world.apply(&version(added, "owners.x.io", "o", "u1", &json!({})));
        world.apply(&version(added, "configmaps", "c", "u2", &dependent));
        assert_eq!(world.predicted_collections().len(), expected, "{what}");
    }
    let mut world = World::new(kinds());
    let mut pv = version(added, "persistentvolumes", "pv", "u3", &owned_by("x.io/v1", "Owner", "o", "u1"));
    pv.object["metadata"].as_object_mut().unwrap().remove("namespace");
    world.apply(&pv);
    assert!(
        world.predicted_collections().is_empty(),
        "a cluster-scoped dependent of a namespaced owner stays for ever"
    );
}

#[test]
fn a_deleted_owner_dooms_its_dependents_and_a_late_version_does_not_bring_it_back() {
    let mut world = World::new(kinds());
    world.apply(&version(VersionType::Added, "owners.x.io", "o", "u1", &json!({})));
    world.apply(&version(VersionType::Added, "configmaps", "c", "u2", &owned_by("x.io/v1", "Owner", "o", "u1")));
    world.apply(&version(VersionType::Deleted, "owners.x.io", "o", "u1", &json!({})));
    world.apply(&version(VersionType::Modified, "owners.x.io", "o", "u1", &json!({})));
    assert!(world.is_gone(&Uid("u1".into())));
    assert_eq!(world.predicted_collections().len(), 1);
    world.apply(&version(VersionType::Deleted, "configmaps", "c", "u2", &json!({})));
    assert_eq!((world.predicted_collections().len(), world.live().count()), (0, 0));
}

#[test]
fn a_foreground_deletion_dooms_dependents_while_the_owner_waits() {
    let mut world = World::new(kinds());
    let waiting = json!({"finalizers": ["foregroundDeletion"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
    world.apply(&version(VersionType::Added, "owners.x.io", "o", "u1", &waiting));
    world.apply(&version(VersionType::Added, "configmaps", "c", "u2", &owned_by("x.io/v1", "Owner", "o", "u1")));
    assert_eq!(world.predicted_collections().len(), 1);
}
