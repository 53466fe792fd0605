//! An instance: a pod, and the volume that outlives it.

use kube::ResourceExt;
use serde_json::{Value, json};

use super::{Child, Kind, ROLE_LABEL, USED_BY_ANNOTATION, labels, object};
use crate::crd::{PostgresCluster, Retention};
use crate::quantity::bytes;

/// The name of PostgreSQL's container in a pod.
pub const INSTANCE_CONTAINER: &str = "postgres";

/// The image for the cluster's version.
pub fn image(cluster: &PostgresCluster) -> String {
    format!("postgres:{}", cluster.spec.version)
}

/// The name of the pod with that ordinal.
pub fn instance_name(cluster: &str, ordinal: i32) -> String {
    format!("{cluster}-{ordinal}")
}

/// The name of the volume of the pod with that ordinal.
pub fn volume_name(cluster: &str, ordinal: i32) -> String {
    format!("{cluster}-{ordinal}-data")
}

/// The ordinal of a pod's name; `None` for other names, `pg-1-01` included.
pub fn ordinal(cluster: &str, name: &str) -> Option<i32> {
    let ordinal = name.strip_prefix(cluster)?.strip_prefix('-')?.parse().ok()?;
    (instance_name(cluster, ordinal) == name).then_some(ordinal)
}

/// The ordinal of a volume's name.
pub fn volume_ordinal(cluster: &str, name: &str) -> Option<i32> {
    ordinal(cluster, name.strip_suffix("-data")?)
}

/// The volume of one instance. `live_size` is what it has: a size that is already large enough stays as it is, in the
/// spelling it has.
pub fn volume(cluster: &PostgresCluster, ordinal: i32, live_size: Option<&str>) -> Child {
    let key = Kind::PersistentVolumeClaim.named(volume_name(&cluster.name_any(), ordinal));
    let owned = cluster.spec.persistent_volume_claim_retention.when_deleted == Retention::Delete;
    let wanted = cluster.spec.storage.size.as_str();
    let size = live_size.filter(|live| bytes(live) >= bytes(wanted)).unwrap_or(wanted);
    let storage = json!({"requests": {"storage": size}});
    let used_by = json!({USED_BY_ANNOTATION: cluster.uid()});

    let mut create =
        object(cluster, &key, owned, json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}}));
    create["metadata"]["annotations"] = used_by.clone();
    // Only `resources` may change in a claim's spec.
    let mut keep = object(cluster, &key, owned, json!({"spec": {"resources": storage}}));
    keep["metadata"]["annotations"] = used_by;
    Child { key, create, keep, owned }
}

/// The pod of one instance. It starts as a replica; the label `role` changes later, by a write of its own, so it is in
/// `create` and not in `keep`.
pub fn instance(cluster: &PostgresCluster, ordinal: i32, image: &str) -> Child {
    let name = instance_name(&cluster.name_any(), ordinal);
    let key = Kind::Pod.named(&name);
    let mut create = object(cluster, &key, true, json!({"spec": pod_spec(cluster, &name, image)}));
    let mut all_labels = labels(cluster);
    all_labels.insert(ROLE_LABEL.to_owned(), json!("replica"));
    create["metadata"]["labels"] = Value::Object(all_labels);
    // Of a pod's spec nearly only the image can change.
    let container = json!({"name": INSTANCE_CONTAINER, "image": image});
    let keep = object(cluster, &key, true, json!({"spec": {"containers": [container]}}));
    Child { key, create, keep, owned: true }
}

fn pod_spec(cluster: &PostgresCluster, name: &str, image: &str) -> Value {
    let cluster_name = cluster.name_any();
    json!({
        "hostname": name,
        "subdomain": cluster_name,
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 30,
        "containers": [{
            "name": INSTANCE_CONTAINER,
            "image": image,
            "args": ["-c", "config_file=/etc/postgres/postgresql.conf"],
            "ports": [{"name": "postgres", "containerPort": 5432}],
            "env": [
                {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"},
                {"name": "POSTGRES_PASSWORD", "valueFrom": {"secretKeyRef": {
                    "name": format!("{cluster_name}-credentials"), "key": "password"}}},
            ],
            "readinessProbe": {"exec": {"command": ["pg_isready", "-U", "postgres"]}, "periodSeconds": 2},
            "volumeMounts": [
                {"name": "data", "mountPath": "/var/lib/postgresql/data"},
                {"name": "config", "mountPath": "/etc/postgres"},
            ],
        }],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": format!("{name}-data")}},
            {"name": "config", "configMap": {"name": format!("{cluster_name}-config")}},
        ],
    })
}
