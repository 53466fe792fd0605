//! The API: `PostgresCluster` in `db.example.com/v1`.
//!
//! The schema in `crd.yaml` is generated from these types, so the API server refuses what the planner could not
//! handle: the planner never meets zero replicas, a size without a unit, or a volume that should shrink.

#![expect(unreachable_pub, reason = "KubeSchema copies each type into a function, where pub reaches nothing")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the user wants.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "db.example.com",
    version = "v1",
    kind = "PostgresCluster",
    plural = "postgresclusters",
    shortname = "pg",
    namespaced,
    status = "PostgresClusterStatus",
    // For `kubectl scale`, and for the disruption controller, which asks the owner how many pods there should be.
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    derive = "PartialEq",
    doc = "A PostgreSQL cluster: one primary, any number of replicas, a volume each.",
    printcolumn = r#"{"name":"Phase", "type":"string", "jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Ready", "type":"integer", "jsonPath":".status.readyReplicas"}"#,
    printcolumn = r#"{"name":"Desired", "type":"integer", "jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"Primary", "type":"string", "jsonPath":".status.primary"}"#,
    printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#,
    // Services take their names from the cluster's, and a CronJob's name has at most 52 characters.
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 40")
        .message("metadata.name must be a DNS label of at most 40 characters that starts with a letter")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(cel, validation = Rule::new("has(oldSelf.restoreFrom) || !has(self.restoreFrom)")
    .message("restoreFrom says how a cluster begins, it cannot be added later"))]
pub struct PostgresClusterSpec {
    /// How many PostgreSQL instances run, the primary included.
    #[schemars(range(min = 1, max = 99))]
    pub replicas: i32,

    /// The PostgreSQL version: a major one, or a major and a minor one. The major one may go up, never down: older
    /// programs cannot read newer data.
    #[schemars(regex(pattern = r"^[1-9][0-9](\.[0-9]{1,2})?$"))]
    #[x_kube(validation = Rule::new("int(self.split('.')[0]) >= int(oldSelf.split('.')[0])").message("the major version cannot go down"))]
    pub version: String,

    /// The volume of each instance.
    pub storage: Storage,

    /// Scheduled dumps; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,

    /// The first instance begins with another cluster's dump. It says how a cluster begins, so it can be taken away
    /// later, but neither added nor changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("restoreFrom says how the cluster began, it cannot change"))]
    pub restore_from: Option<RestoreFrom>,

    /// While true the operator reports, and changes nothing.
    #[serde(default)]
    pub paused: bool,

    /// What happens to the volumes when the cluster shrinks or goes away.
    #[serde(default)]
    pub persistent_volume_claim_retention: VolumeRetention,

    /// How many lost instances the operator replaces by itself within an hour. Beyond that it stops and says so:
    /// instances that keep dying need a person, not more instances.
    #[serde(default = "default_max_replacements")]
    #[schemars(range(min = 0))]
    pub max_replacements_per_hour: i32,
}

/// The volume of each instance.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(cel)]
pub struct Storage {
    /// Size with a binary unit, such as `1Gi`. It may grow, never shrink: no file system of a volume can.
    #[schemars(regex(pattern = r"^[1-9][0-9]{0,5}(Mi|Gi|Ti)$"))]
    #[x_kube(validation = Rule::new("quantity(self).compareTo(quantity(oldSelf)) >= 0").message("storage cannot shrink"))]
    pub size: String,
}

/// Scheduled dumps.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// When, in cron's five fields.
    #[schemars(regex(pattern = r"^\S+( \S+){4}$"))]
    pub schedule: String,
}

/// Where the first rows come from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFrom {
    /// The cluster whose dump is restored; its volume `<cluster>-backup` is read, and need not have a cluster any more.
    #[schemars(length(min = 1, max = 40))]
    pub cluster: String,
}

/// What happens to volumes, in the words of a StatefulSet's `persistentVolumeClaimRetentionPolicy`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRetention {
    /// When an instance is removed because `replicas` went down.
    #[serde(default)]
    pub when_scaled: Retention,
    /// When the cluster is deleted. `Retain` keeps the credentials too: data nobody can open is not kept.
    #[serde(default)]
    pub when_deleted: Retention,
}

/// Whether a volume outlives its use.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// It stays, and is used again when an instance of that name comes back.
    #[default]
    Retain,
    /// It goes, with its data.
    Delete,
}

/// What the operator last saw, and what it must remember. Nothing else remembers: the operator's memory is lost with
/// its process.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PostgresClusterStatus {
    /// Everything below speaks of this generation of the spec.
    #[serde(default)]
    pub observed_generation: i64,
    /// One word for people. Programs read the conditions.
    #[serde(default)]
    pub phase: Phase,
    /// Instances that exist.
    #[serde(default)]
    pub replicas: i32,
    /// Instances that are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// The pod that carries `role=primary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// Whether there has been a primary. From then on an empty volume is a loss, never a reason to make a new database.
    #[serde(default)]
    pub initialized: bool,
    /// Instances that have been ready once. A member that is missing is *replaced*, and counted; anybody else who is
    /// missing is simply not there yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub members: Vec<String>,
    /// The replacements of the last hour, oldest first; written down *before* each one, so that no crash forgets any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replacements: Vec<Replacement>,
    /// `Ready`, `Progressing`, `Degraded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// One word for people.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing runs yet.
    #[default]
    Pending,
    /// On the way to what the spec says.
    Provisioning,
    /// All that the spec says is there and ready.
    Running,
    /// Something that was there is missing, or something is in the way.
    Degraded,
}

/// One replacement of an instance.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// The pod's name.
    pub pod: String,
    /// The uid of the failed pod, where it still existed: a failed pod is counted once, however often it is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// When, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
}

/// A condition as in Kubernetes' `metav1.Condition`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which condition.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// One CamelCase word for programs.
    pub reason: String,
    /// One sentence for people.
    pub message: String,
    /// The generation of the spec that this was judged against.
    #[serde(default)]
    pub observed_generation: i64,
    /// When `status` last changed, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
}

// === impl PostgresClusterStatus ===

impl PostgresClusterStatus {
    /// Whether the condition exists and is `True`.
    pub fn is_true(&self, type_: &str) -> bool {
        self.conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
    }
}

fn default_max_replacements() -> i32 {
    12
}
