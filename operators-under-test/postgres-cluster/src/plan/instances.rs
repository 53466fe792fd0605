//! The part of the plan that is about instances: make them, replace them within the limit, remove what is too much,
//! and bring them to a new version one at a time.

use kube::{Resource, ResourceExt};

use super::{Planner, Step, delete};
use crate::children::{self, Bootstrap, Child, ChildKey, Kind, USED_BY_ANNOTATION, instance_name, volume_name};
use crate::crd::{PostgresClusterStatus, Replacement, Retention};
use crate::observed::{Instance, Role};
use crate::ownership::Ownership;
use crate::status::{Problem, Situation, status};

const AN_HOUR: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

impl Planner<'_> {
    /// Every wanted instance: first its volume, then its pod.
    pub(super) fn instances(&mut self) -> Option<Step> {
        (0..self.cluster.spec.replicas).find_map(|ordinal| self.volume(ordinal).or_else(|| self.instance(ordinal)))
    }

    fn volume(&mut self, ordinal: i32) -> Option<Step> {
        let key = Kind::PersistentVolumeClaim.named(volume_name(&self.cluster.name_any(), ordinal));
        let size = self.live_size(&key).map(str::to_owned);
        self.keep(children::volume(self.cluster, ordinal, size.as_deref(), self.is_complete(ordinal)))
    }

    pub(super) fn live_size(&self, volume: &ChildKey) -> Option<&str> {
        self.observed.get(volume)?.data["spec"]["resources"]["requests"]["storage"].as_str()
    }

    /// The pod of an instance. With an empty volume it makes a new database only if there has never been one.
    fn pod(&self, ordinal: i32, image: &str) -> Child {
        let is_initialized = self.observed.is_initialized(self.cluster);
        let bootstrap = if is_initialized { Bootstrap::Join } else { Bootstrap::New };
        children::instance(self.cluster, ordinal, image, bootstrap)
    }

    fn instance(&mut self, ordinal: i32) -> Option<Step> {
        let key = Kind::Pod.named(instance_name(&self.cluster.name_any(), ordinal));
        let Some(live) = self.observed.get(&key) else { return self.missing(ordinal) };
        self.may_change(&key, live)?;
        let instance = self.find(ordinal)?;
        if instance.finished {
            return self.finished(&instance);
        }
        if !instance.ready {
            self.situation.waiting.push(format!("{key} to become ready"));
        }
        // Labels and owner at once; the image in its turn, see `rollout`.
        let image = instance.image.unwrap_or_default();
        self.keep(self.pod(ordinal, &image))
    }

    /// A pod is not there. Was it ever? A member is a loss to be counted, the others are simply next.
    fn missing(&mut self, ordinal: i32) -> Option<Step> {
        let name = instance_name(&self.cluster.name_any(), ordinal);
        if self.told().members.contains(&name) {
            return self.record_replacement(&name, None);
        }
        let has_primary = self.observed.instances(self.cluster).iter().any(|i| i.role == Some(Role::Primary));
        let may_lead = self.observed.complete_volumes(self.cluster).contains(&ordinal);
        if ordinal > 0 && !has_primary && !may_lead {
            // A replica copies its data from the primary.
            self.situation.waiting.push(format!("a primary, before Pod {name}"));
            return None;
        }
        self.keep(self.pod(ordinal, &self.observed.image(self.cluster)))
    }

    /// A pod that ended does not start again: it is counted as a loss, then removed to make room for the next.
    fn finished(&mut self, instance: &Instance) -> Option<Step> {
        let counted = self.told().replacements.iter().any(|r| r.uid.as_ref() == Some(&instance.uid));
        if !counted {
            return self.record_replacement(&instance.name, Some(&instance.uid));
        }
        let key = Kind::Pod.named(&instance.name);
        self.observed.get(&key).map(|live| delete(key, live))
    }

    /// The record comes before the deed. After a crash in between a replacement is counted that does not happen twice;
    /// the other way round one would happen that nobody counted.
    fn record_replacement(&mut self, pod: &str, uid: Option<&String>) -> Option<Step> {
        let now = self.observed.now;
        let recent = |r: &Replacement| r.at.parse::<jiff::Timestamp>().is_ok_and(|at| now.duration_since(at) < AN_HOUR);
        let mut replacements: Vec<_> = self.told().replacements.iter().filter(|r| recent(r)).cloned().collect();
        let limit = self.cluster.spec.max_replacements_per_hour;
        if replacements.len() >= limit as usize {
            let message = format!("Pod {pod} is not replaced: {limit} replacements within an hour are the limit");
            self.situation.problems.push(Problem { reason: "ReplacementLimit", message });
            return None;
        }
        replacements.push(Replacement { pod: pod.to_owned(), uid: uid.cloned(), at: now.to_string() });
        let situation = Situation { busy: true, ..Situation::default() };
        let mut status = status(self.cluster, self.observed, &situation);
        status.replacements = replacements;
        status.members.retain(|member| member != pod);
        Some(Step::RecordReplacement { pod: pod.to_owned(), status: Box::new(status) })
    }

    /// Instances beyond `replicas`, the highest first and one at a time; then, if so wished, their volumes.
    pub(super) fn surplus(&mut self) -> Option<Step> {
        let surplus = self.observed.instances(self.cluster).into_iter().rfind(|i| !i.is_wanted(self.cluster));
        let Some(instance) = surplus else { return self.surplus_volume() };
        let key = Kind::Pod.named(&instance.name);
        if instance.terminating {
            self.situation.waiting.push(format!("{key} to be deleted"));
            return None;
        }
        if instance.role == Some(Role::Primary) {
            // `roles` moves the primary as soon as somebody can take over. Until then it stays.
            self.situation.waiting.push(format!("another primary, before {key} goes"));
            return None;
        }
        // The primary stops waiting for it before it goes.
        let volume = Kind::PersistentVolumeClaim.named(volume_name(&self.cluster.name_any(), instance.ordinal));
        let unwait = self.observed.get(&volume).and_then(|_| self.volume(instance.ordinal));
        unwait.or_else(|| self.observed.get(&key).map(|live| delete(key, live)))
    }

    fn surplus_volume(&mut self) -> Option<Step> {
        let name = self.cluster.name_any();
        let retention = &self.cluster.spec.persistent_volume_claim_retention;
        for volume in self.observed.of_kind(Kind::PersistentVolumeClaim) {
            let Some(ordinal) = children::volume_ordinal(&name, &volume.name_any()) else { continue };
            if ordinal < self.cluster.spec.replicas || volume.meta().deletion_timestamp.is_some() {
                continue;
            }
            let ownership = Ownership::of(volume, self.cluster);
            let used_by_us = volume.annotations().get(USED_BY_ANNOTATION) == self.cluster.uid().as_ref();
            let key = Kind::PersistentVolumeClaim.named(volume.name_any());
            let step = match (retention.when_scaled, retention.when_deleted, ownership) {
                // Only what this very cluster used. A volume kept from a former one was kept for a reason.
                (Retention::Delete, _, Ownership::Ours | Ownership::Orphan) if used_by_us => delete(key, volume),
                (_, Retention::Retain, Ownership::Ours) => self.disown(key, volume),
                _ => continue,
            };
            return Some(step);
        }
        None
    }

    /// A new version, one instance at a time, and only while all others are well; the primary last, when it has handed
    /// over (see `primary`). A single instance has nobody to hand over to.
    pub(super) fn rollout(&mut self) -> Option<Step> {
        let instances = self.observed.instances(self.cluster);
        let wanted = || instances.iter().filter(|i| i.is_wanted(self.cluster));
        let outdated = wanted().filter(|i| !i.up_to_date && !i.terminating && !i.finished);
        let next = outdated.max_by_key(|i| (i.role != Some(Role::Primary), i.ordinal))?;
        let others_ready = wanted().filter(|i| i.name != next.name && i.ready).count();
        if others_ready + 1 < self.cluster.spec.replicas as usize {
            self.situation.waiting.push(format!("all instances, before Pod {} is updated", next.name));
            return None;
        }
        self.keep(self.pod(next.ordinal, &self.observed.image(self.cluster)))
    }

    fn find(&self, ordinal: i32) -> Option<Instance> {
        self.observed.instances(self.cluster).into_iter().find(|i| i.ordinal == ordinal)
    }

    fn told(&self) -> PostgresClusterStatus {
        self.cluster.status.clone().unwrap_or_default()
    }
}
