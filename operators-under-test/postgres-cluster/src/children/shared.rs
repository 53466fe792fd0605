//! The children that a cluster has once.

use kube::ResourceExt;
use serde_json::{Value, json};

use super::{CLUSTER_LABEL, Child, Kind, MANAGED_BY_LABEL, MANAGER, ROLE_LABEL, object};
use crate::crd::{PostgresCluster, Retention};

/// The Secret with the password.
///
/// The password is made by the caller, once; `keep` does not contain it, so nothing ever writes it again, and
/// `immutable` makes the API server refuse others who try. Where volumes are retained it is retained with them.
pub fn credentials(cluster: &PostgresCluster, password: &str) -> Child {
    let key = Kind::Secret.named(format!("{}-credentials", cluster.name_any()));
    let owned = cluster.spec.persistent_volume_claim_retention.when_deleted == Retention::Delete;
    let secret = json!({
        "type": "Opaque",
        "immutable": true,
        "stringData": {"username": "postgres", "password": password},
    });
    Child { create: object(cluster, &key, owned, secret), keep: object(cluster, &key, owned, json!({})), key, owned }
}

/// The ConfigMap with what an instance runs: the script that makes its PostgreSQL follow its role, and the settings.
pub fn config(cluster: &PostgresCluster) -> Child {
    let key = Kind::ConfigMap.named(format!("{}-config", cluster.name_any()));
    let data = json!({
        "instance.sh": include_str!("instance.sh"),
        "postgresql.conf": include_str!("postgresql.conf"),
        "pg_hba.conf": include_str!("pg_hba.conf"),
    });
    Child::kept_whole(cluster, key, json!({"data": data}))
}

/// The headless Service that gives each instance its DNS name, ready or not: a replica must find a primary that is
/// still starting.
pub fn headless_service(cluster: &PostgresCluster) -> Child {
    let key = Kind::Service.named(cluster.name_any());
    let spec = json!({
        "clusterIP": "None",
        "publishNotReadyAddresses": true,
        "selector": {CLUSTER_LABEL: cluster.name_any(), MANAGED_BY_LABEL: MANAGER},
        "ports": [postgres_port()],
    });
    Child::kept_whole(cluster, key, json!({"spec": spec}))
}

/// The Service that leads to the primary. A fail-over moves a label, never this object.
pub fn primary_service(cluster: &PostgresCluster) -> Child {
    let key = Kind::Service.named(format!("{}-primary", cluster.name_any()));
    let spec = json!({
        "selector": {CLUSTER_LABEL: cluster.name_any(), MANAGED_BY_LABEL: MANAGER, ROLE_LABEL: "primary"},
        "ports": [postgres_port()],
    });
    Child::kept_whole(cluster, key, json!({"spec": spec}))
}

/// At most one instance is taken away on purpose at a time.
pub fn disruption_budget(cluster: &PostgresCluster) -> Child {
    let key = Kind::PodDisruptionBudget.named(cluster.name_any());
    let selector = json!({"matchLabels": {CLUSTER_LABEL: cluster.name_any(), MANAGED_BY_LABEL: MANAGER}});
    Child::kept_whole(cluster, key, json!({"spec": {"maxUnavailable": 1, "selector": selector}}))
}

fn postgres_port() -> Value {
    json!({"name": "postgres", "port": 5432, "targetPort": "postgres"})
}
