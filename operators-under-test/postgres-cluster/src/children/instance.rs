//! An instance: a pod, and the volume that outlives it.

use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    BOOTSTRAP_ANNOTATION, COMPLETE_ANNOTATION, CONFIRMED_BY_ANNOTATION, Child, Kind, ROLE_LABEL, USED_BY_ANNOTATION,
    backup_volume_name, labels, object,
};
use crate::crd::{PostgresCluster, Retention};
use crate::quantity::bytes;

/// The name of PostgreSQL's container in a pod. It is ready when PostgreSQL does what the role says.
pub const INSTANCE_CONTAINER: &str = "postgres";
/// The name of the container whose only work is its probe. It is ready when the primary says that it acknowledges no row
/// without this instance: a second bit that the pod can tell us, without access to the API.
const CONFIRMED_CONTAINER: &str = "confirmed";
/// The user `postgres` in Debian's images.
const POSTGRES_USER: i64 = 999;
/// The mount of an instance's volume; the data are a folder in it, so that they can be exchanged by a rename.
const VOLUME: &str = "/var/lib/postgresql/data";

/// What an instance with an empty volume does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// It makes the database: there has never been one.
    New,
    /// It copies the primary's data, or waits for somebody who has them.
    Join,
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
/// spelling it has. `complete` says whether every acknowledged row is on it.
pub fn volume(cluster: &PostgresCluster, ordinal: i32, live_size: Option<&str>, complete: bool) -> Child {
    let key = Kind::PersistentVolumeClaim.named(volume_name(&cluster.name_any(), ordinal));
    let owned = cluster.spec.persistent_volume_claim_retention.when_deleted == Retention::Delete;
    let wanted = cluster.spec.storage.size.as_str();
    let size = live_size.filter(|live| bytes(live) >= bytes(wanted)).unwrap_or(wanted);
    let storage = json!({"requests": {"storage": size}});
    let annotations = json!({USED_BY_ANNOTATION: cluster.uid(), COMPLETE_ANNOTATION: complete.to_string()});

    let mut create =
        object(cluster, &key, owned, json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}}));
    create["metadata"]["annotations"] = annotations.clone();
    // Only `resources` may change in a claim's spec.
    let mut keep = object(cluster, &key, owned, json!({"spec": {"resources": storage}}));
    keep["metadata"]["annotations"] = annotations;
    Child { key, create, keep, owned }
}

/// The pod of one instance. It starts as a replica; the label `role` changes later, by a write of its own, so it is in
/// `create` and not in `keep`.
pub fn instance(cluster: &PostgresCluster, ordinal: i32, image: &str, bootstrap: Bootstrap) -> Child {
    let name = instance_name(&cluster.name_any(), ordinal);
    let key = Kind::Pod.named(&name);
    let annotations = json!({BOOTSTRAP_ANNOTATION: bootstrap.as_str()});
    let mut create = object(cluster, &key, true, json!({"spec": pod_spec(cluster, &name, image, bootstrap)}));
    let mut all_labels = labels(cluster);
    all_labels.insert(ROLE_LABEL.to_owned(), json!("replica"));
    create["metadata"]["labels"] = Value::Object(all_labels);
    create["metadata"]["annotations"] = annotations.clone();
    // Of a pod's spec nearly only the images can change.
    let containers = [INSTANCE_CONTAINER, CONFIRMED_CONTAINER].map(|name| json!({"name": name, "image": image}));
    let mut keep = object(cluster, &key, true, json!({"spec": {"containers": containers}}));
    keep["metadata"]["annotations"] = annotations;
    Child { key, create, keep, owned: true }
}

fn pod_spec(cluster: &PostgresCluster, name: &str, image: &str, bootstrap: Bootstrap) -> Value {
    let mut data_mounts = vec![
        json!({"name": "data", "mountPath": VOLUME}),
        json!({"name": "config", "mountPath": "/etc/postgres"}),
        json!({"name": "pod-info", "mountPath": "/etc/pod-info"}),
    ];
    let other_mounts = data_mounts[1..].to_vec();
    let mut volumes = vec![
        json!({"name": "data", "persistentVolumeClaim": {"claimName": format!("{name}-data")}}),
        config_volume(cluster),
        // The kubelet writes a changed label there, mostly within a second or two: that is how an instance hears of its role.
        json!({"name": "pod-info", "downwardAPI": {"items": [
            pod_field("role", "labels", ROLE_LABEL),
            pod_field("confirmed-by", "annotations", CONFIRMED_BY_ANNOTATION),
            pod_field("bootstrap", "annotations", BOOTSTRAP_ANNOTATION),
        ]}}),
    ];
    if let (Bootstrap::New, Some(dump)) = (bootstrap, &cluster.spec.restore_from) {
        data_mounts.push(json!({"name": "backup", "mountPath": "/backup", "readOnly": true}));
        volumes.push(json!({"name": "backup", "persistentVolumeClaim": {
            "claimName": backup_volume_name(&dump.cluster), "readOnly": true}}));
    }
    json!({
        "hostname": name,
        "subdomain": cluster.name_any(),
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 30,
        "securityContext": as_postgres(),
        "containers": [
            {
                "name": INSTANCE_CONTAINER,
                "image": image,
                "command": script("run"),
                "ports": [{"name": "postgres", "containerPort": 5432}],
                "env": environment(cluster, name),
                "readinessProbe": probe("is-level", 2),
                "volumeMounts": data_mounts,
            },
            {
                "name": CONFIRMED_CONTAINER,
                "image": image,
                "command": script("watch"),
                "env": environment(cluster, name),
                "readinessProbe": probe("is-confirmed", 1),
                "volumeMounts": other_mounts,
            },
        ],
        "volumes": volumes,
    })
}

fn pod_field(path: &str, map: &str, key: &str) -> Value {
    json!({"path": path, "fieldRef": {"fieldPath": format!("metadata.{map}['{key}']")}})
}

/// A part of `instance.sh`.
pub(super) fn script(verb: &str) -> Value {
    json!(["bash", "/etc/postgres/instance.sh", verb])
}

/// What `instance.sh` must know. The primary is found by the address of its Service, which the kubelet puts in: that
/// needs no cluster DNS. The Services are made before the pods.
pub(super) fn environment(cluster: &PostgresCluster, pod: &str) -> Value {
    let name = cluster.name_any();
    let variable = format!("{name}-primary").to_uppercase().replace('-', "_");
    let password = json!({"name": format!("{name}-credentials"), "key": "password"});
    json!([
        {"name": "POD_NAME", "value": pod},
        {"name": "PGDATA", "value": format!("{VOLUME}/pgdata")},
        {"name": "PRIMARY", "value": format!("$({variable}_SERVICE_HOST)")},
        {"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": password}},
    ])
}

/// postgresql.conf, pg_hba.conf and `instance.sh`.
pub(super) fn config_volume(cluster: &PostgresCluster) -> Value {
    json!({"name": "config", "configMap": {"name": format!("{}-config", cluster.name_any())}})
}

/// Nothing runs as root. Drivers that can, give it the volumes; those of kind and k3s let everybody write.
pub(super) fn as_postgres() -> Value {
    json!({"runAsUser": POSTGRES_USER, "runAsGroup": POSTGRES_USER, "fsGroup": POSTGRES_USER})
}

/// No liveness probe: whoever hangs is not ready and loses its role, and a restart would only lengthen a recovery.
fn probe(verb: &str, failures: i32) -> Value {
    json!({
        "exec": {"command": script(verb)},
        "periodSeconds": 2,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

// === impl Bootstrap ===

impl Bootstrap {
    /// The value of the annotation.
    fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Join => "join",
        }
    }
}
