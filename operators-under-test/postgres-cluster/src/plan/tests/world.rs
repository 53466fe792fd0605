//! A world in memory: what an API server does to a step, and a kubelet that makes pods ready when all else is done.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::children::{self, COMPLETE_ANNOTATION, CONFIRMED_BY_ANNOTATION, Kind};
use crate::crd::{PostgresCluster, PostgresClusterSpec, PostgresClusterStatus, Storage, VolumeRetention};
use crate::observed::Observed;
use crate::plan::{Step, next_step};

pub(super) struct World {
    pub(super) cluster: PostgresCluster,
    pub(super) now: Timestamp,
    objects: BTreeMap<(Kind, String), Value>,
    revision: u64,
}

impl World {
    pub(super) fn new(replicas: i32) -> Self {
        let spec = PostgresClusterSpec {
            replicas,
            version: "17".to_owned(),
            storage: Storage { size: "1Gi".to_owned() },
            backup: None,
            restore_from: None,
            paused: false,
            persistent_volume_claim_retention: VolumeRetention::default(),
            max_replacements_per_hour: 12,
        };
        let mut cluster = PostgresCluster::new("pg", spec);
        cluster.metadata = ObjectMeta {
            namespace: Some("ns".to_owned()),
            uid: Some("first".to_owned()),
            generation: Some(1),
            ..cluster.metadata
        };
        let now = "2026-01-01T00:00:00Z".parse().expect("a constant");
        Self { cluster, now, objects: BTreeMap::new(), revision: 0 }
    }

    pub(super) fn at_rest(replicas: i32) -> Self {
        let mut world = Self::new(replicas);
        world.settle();
        world
    }

    /// Takes step after step, with the kubelet at work whenever there is none, until nothing moves.
    pub(super) fn settle(&mut self) -> Vec<String> {
        let mut taken = Vec::new();
        loop {
            if let Some(step) = next_step(&self.cluster, &self.observed()) {
                taken.push(step.to_string());
                let before = self.primaries().len();
                self.perform(step);
                assert!(self.primaries().len() <= before.max(1), "a second primary by {taken:#?}");
                self.assert_complete_ones_confirm(&taken);
                assert!(taken.len() < 200, "no end: {taken:#?}");
            } else if !self.make_pods_ready() {
                return taken;
            }
        }
    }

    /// What a LIST would show: items without apiVersion and kind.
    pub(super) fn observed(&self) -> Observed {
        let mut observed = Observed::at(self.now, "postgres:{version}".into());
        for ((kind, _), object) in &self.objects {
            let mut object = object.clone();
            let fields = object.as_object_mut().expect("objects are objects");
            fields.remove("apiVersion");
            fields.remove("kind");
            observed.see(*kind, Arc::new(serde_json::from_value(object).expect("an object")));
        }
        observed
    }

    pub(super) fn primaries(&self) -> Vec<&str> {
        let pods = self.objects.iter().filter(|((kind, _), _)| *kind == Kind::Pod);
        pods.filter(|(_, pod)| pod["metadata"]["labels"]["role"] == "primary")
            .map(|((_, name), _)| name.as_str())
            .collect()
    }

    /// A row that the primary acknowledges is wherever somebody may be promoted.
    pub(super) fn assert_complete_ones_confirm(&self, taken: &[String]) {
        for primary in self.primaries() {
            let annotation = &self.get(Kind::Pod, primary)["metadata"]["annotations"][CONFIRMED_BY_ANNOTATION];
            // Without the annotation it acknowledges nothing.
            let Some(confirming) = annotation.as_str() else { continue };
            for volume in self.objects.values().filter(|o| o["metadata"]["annotations"][COMPLETE_ANNOTATION] == "true")
            {
                let volume = volume["metadata"]["name"].as_str().unwrap_or_default();
                let pod = volume.trim_end_matches("-data");
                let confirms = pod == primary || confirming.split(',').any(|name| name == pod);
                assert!(confirms, "{pod} is complete, {primary} waits for {confirming}, by {taken:#?}");
            }
        }
    }

    pub(super) fn set_complete(&mut self, volume: &str, complete: bool) {
        self.edit(Kind::PersistentVolumeClaim, volume, |volume| {
            volume["metadata"]["annotations"][COMPLETE_ANNOTATION] = json!(complete.to_string());
        });
    }

    pub(super) fn status(&self) -> PostgresClusterStatus {
        self.cluster.status.clone().unwrap_or_default()
    }

    pub(super) fn reason(&self, condition: &str) -> String {
        let status = self.status();
        status.conditions.iter().find(|c| c.type_ == condition).map(|c| c.reason.clone()).unwrap_or_default()
    }

    pub(super) fn has(&self, kind: Kind, name: &str) -> bool {
        self.objects.contains_key(&(kind, name.to_owned()))
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> &Value {
        &self.objects[&(kind, name.to_owned())]
    }

    pub(super) fn uid(&self, kind: Kind, name: &str) -> Value {
        self.get(kind, name)["metadata"]["uid"].clone()
    }

    pub(super) fn insert(&mut self, mut object: Value) {
        self.revision += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.revision));
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let kind = Kind::ALL.into_iter().find(|kind| object["kind"] == kind.api_resource().kind.as_str());
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.objects.insert((kind.expect("a kind of child"), name), object);
    }

    pub(super) fn edit(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        self.revision += 1;
        if let Some(object) = self.objects.get_mut(&(kind, name.to_owned())) {
            change(object);
            object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        }
    }

    pub(super) fn remove(&mut self, kind: Kind, name: &str) {
        self.objects.remove(&(kind, name.to_owned()));
    }

    pub(super) fn set_ready(&mut self, pod: &str, ready: bool) {
        let status = if ready { "True" } else { "False" };
        let status = json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": status}],
            "containerStatuses": [{"name": "postgres", "ready": ready}],
        });
        self.edit(Kind::Pod, pod, |pod| pod["status"] = status);
    }

    pub(super) fn new_generation(&mut self) {
        self.cluster.metadata.generation = self.cluster.metadata.generation.map(|generation| generation + 1);
    }

    /// The cluster is deleted and made again; the garbage collector has not come yet.
    pub(super) fn recreate_cluster(&mut self, uid: &str) {
        self.cluster.metadata.uid = Some(uid.to_owned());
        self.cluster.metadata.generation = Some(1);
        self.cluster.status = None;
    }

    /// Removes what has an owner that is not there.
    pub(super) fn collect_garbage(&mut self) {
        let uid = json!(self.cluster.uid());
        self.objects.retain(|_, object| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_none_or(|owners| owners.is_empty() || owners.iter().any(|owner| owner["uid"] == uid))
        });
    }

    pub(super) fn disturb_at_random(&mut self, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        self.cluster.spec.max_replacements_per_hour = 1000;
        for _ in 0..rng.random_range(1..6) {
            let pod = format!("pg-{}", rng.random_range(0..3));
            match rng.random_range(0..7) {
                0 => self.remove(Kind::Pod, &pod),
                1 => self.set_ready(&pod, false),
                2 => self.edit(Kind::Pod, &pod, |pod| pod["status"] = json!({"phase": "Failed"})),
                3 => self.edit(Kind::Pod, &pod, |pod| pod["metadata"]["labels"]["role"] = json!("unheard-of")),
                4 => self.remove(Kind::Service, "pg"),
                5 => {
                    self.cluster.spec.replicas = rng.random_range(1..5);
                    self.new_generation();
                }
                _ => {
                    self.cluster.spec.version = "18".to_owned();
                    self.new_generation();
                }
            }
            // Between two disturbances the operator gets somewhere, or nowhere.
            for _ in 0..rng.random_range(0..8) {
                let Some(step) = next_step(&self.cluster, &self.observed()) else { break };
                let name = step.to_string();
                self.perform(step);
                self.assert_complete_ones_confirm(&[name]);
            }
        }
    }

    /// The kubelet: `false` when there was nothing to do.
    fn make_pods_ready(&mut self) -> bool {
        let is_ready = |pod: &Value| pod["status"]["conditions"][0]["status"] == "True";
        let pods = self.objects.iter().filter(|((kind, _), pod)| *kind == Kind::Pod && !is_ready(pod));
        let waiting: Vec<String> =
            pods.filter(|(_, pod)| pod["status"]["phase"] != "Failed").map(|((_, name), _)| name.clone()).collect();
        for pod in &waiting {
            self.set_ready(pod, true);
        }
        !waiting.is_empty()
    }

    /// The API server.
    pub(super) fn perform(&mut self, step: Step) {
        match step {
            Step::UpdateStatus(status) | Step::RecordReplacement { status, .. } => self.cluster.status = Some(*status),
            Step::CreateCredentials => self.insert(children::credentials(&self.cluster, "password").create),
            Step::Create(child) => self.insert(child.create),
            Step::Apply { child, .. } => self.edit(child.key.kind, &child.key.name, |live| merge(live, &child.keep)),
            Step::Disown { key, .. } => {
                self.edit(key.kind, &key.name, |live| live["metadata"]["ownerReferences"] = json!([]));
            }
            Step::SetRole { instance, role, confirmed_by } => self.edit(Kind::Pod, &instance.name, |pod| {
                assert_eq!(pod["metadata"]["resourceVersion"], json!(instance.resource_version), "a conflict");
                pod["metadata"]["labels"]["role"] = json!(role.as_str());
                let annotations = pod["metadata"]["annotations"].as_object_mut().expect("pods have annotations");
                annotations.remove(CONFIRMED_BY_ANNOTATION);
                annotations.extend(confirmed_by.map(|names| (CONFIRMED_BY_ANNOTATION.to_owned(), json!(names))));
            }),
            Step::SetConfirmedBy { instance, confirmed_by } => self.edit(Kind::Pod, &instance.name, |pod| {
                assert_eq!(pod["metadata"]["resourceVersion"], json!(instance.resource_version), "a conflict");
                pod["metadata"]["annotations"][CONFIRMED_BY_ANNOTATION] = json!(confirmed_by);
            }),
            Step::Delete { key, uid, .. } => {
                assert_eq!(self.uid(key.kind, &key.name), json!(uid), "somebody else's");
                self.remove(key.kind, &key.name);
            }
        }
    }
}

/// Server-side apply, as far as the children need it.
fn merge(live: &mut Value, fields: &Value) {
    match (live, fields) {
        (Value::Object(live), Value::Object(fields)) => {
            for (key, field) in fields {
                if key == "selector" {
                    live.insert(key.clone(), field.clone());
                } else {
                    merge(live.entry(key.clone()).or_insert(Value::Null), field);
                }
            }
        }
        (Value::Array(live), Value::Array(fields)) if fields.iter().all(|f| f.get("name").is_some()) => {
            for field in fields {
                match live.iter_mut().find(|item| item["name"] == field["name"]) {
                    Some(item) => merge(item, field),
                    None => live.push(field.clone()),
                }
            }
        }
        (live, fields) => *live = fields.clone(),
    }
}
