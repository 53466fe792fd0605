//! The scheduled dump.

use kube::ResourceExt;
use serde_json::json;

use super::{Child, Kind, image};
use crate::crd::{Backup, PostgresCluster};

/// The CronJob that dumps all databases through the primary Service.
pub fn backup(cluster: &PostgresCluster, backup: &Backup) -> Child {
    let name = cluster.name_any();
    let key = Kind::CronJob.named(format!("{name}-backup"));
    let container = json!({
        "name": "dump",
        "image": image(cluster),
        "command": ["pg_dumpall", "-h", format!("{name}-primary"), "-U", "postgres", "-f", "/backup/all.sql"],
        "env": [{"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": {
            "name": format!("{name}-credentials"), "key": "password"}}}],
        "volumeMounts": [{"name": "backup", "mountPath": "/backup"}],
    });
    let pod = json!({
        "restartPolicy": "OnFailure",
        "containers": [container],
        "volumes": [{"name": "backup", "emptyDir": {}}],
    });
    let spec = json!({
        "schedule": backup.schedule,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": {"template": {"spec": pod}}},
    });
    Child::kept_whole(cluster, key, json!({"spec": spec}))
}
