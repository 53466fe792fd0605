//! The scheduled dump, and the volume that it goes to.

use kube::ResourceExt;
use serde_json::json;

use super::instance::{as_postgres, config_volume, environment, script};
use super::{Child, Kind, object};
use crate::crd::{Backup, PostgresCluster, Retention};
use crate::quantity::bytes;

const VOLUME: &str = "/backup";

/// The name of the volume with a cluster's dump.
pub fn backup_volume_name(cluster: &str) -> String {
    format!("{cluster}-backup")
}

/// The volume. As large as an instance's: a dump has no indexes and no garbage. It outlives the cluster where the data
/// do, and stays when there are no more dumps.
pub fn backup_volume(cluster: &PostgresCluster, live_size: Option<&str>) -> Child {
    let key = Kind::PersistentVolumeClaim.named(backup_volume_name(&cluster.name_any()));
    let owned = cluster.spec.persistent_volume_claim_retention.when_deleted == Retention::Delete;
    let wanted = cluster.spec.storage.size.as_str();
    let size = live_size.filter(|live| bytes(live) >= bytes(wanted)).unwrap_or(wanted);
    let storage = json!({"requests": {"storage": size}});
    let create =
        object(cluster, &key, owned, json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}}));
    let keep = object(cluster, &key, owned, json!({"spec": {"resources": storage}}));
    Child { key, create, keep, owned }
}

/// The CronJob that dumps all databases through the primary Service. A dump replaces the one before it when it is
/// complete.
pub fn backup(cluster: &PostgresCluster, backup: &Backup, image: &str) -> Child {
    let name = cluster.name_any();
    let key = Kind::CronJob.named(format!("{name}-backup"));
    let container = json!({
        "name": "dump",
        "image": image,
        "command": script("dump"),
        "env": environment(cluster, &key.name),
        "volumeMounts": [
            {"name": "backup", "mountPath": VOLUME},
            {"name": "config", "mountPath": "/etc/postgres"},
        ],
    });
    let pod = json!({
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": false,
        "securityContext": as_postgres(),
        "containers": [container],
        "volumes": [
            {"name": "backup", "persistentVolumeClaim": {"claimName": backup_volume_name(&name)}},
            config_volume(cluster),
        ],
    });
    let spec = json!({
        "schedule": backup.schedule,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": {"template": {"spec": pod}}},
    });
    Child::kept_whole(cluster, key, json!({"spec": spec}))
}
