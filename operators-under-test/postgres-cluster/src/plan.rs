//! The heart: `next_step(desired, observed)`.
//!
//! It looks at everything, from the beginning, and names the *one* thing to do next. It remembers nothing between two
//! calls, so it does not matter which events were missed, how often it is called, or after which of its steps the
//! process died: the next look finds the same world and names the same step.

mod confirmations;
mod instances;
#[cfg(test)]
mod tests;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use kube::{Resource, ResourceExt};
use serde_json::{Value, to_value};

use crate::children::{self, COMPLETE_ANNOTATION, Child, ChildKey, Kind};
use crate::crd::{PostgresCluster, PostgresClusterStatus};
use crate::drift::is_level;
use crate::observed::{Instance, Observed, Role};
use crate::ownership::Ownership;
use crate::primary::{RoleChange, next_role_change};
use crate::status::{Problem, Situation, must_come_first, status};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Say how things are. Carries the resourceVersion of the cluster it was judged on, and fails if that moved.
    UpdateStatus(Box<PostgresClusterStatus>),
    /// As `UpdateStatus`, and writes down that an instance is about to be replaced.
    RecordReplacement {
        /// The instance.
        pod: String,
        /// The status with the record in it.
        status: Box<PostgresClusterStatus>,
    },
    /// Create the Secret; the password is made by who takes the step.
    CreateCredentials,
    /// Create a child that is not there. Fails if the name is taken: creation never overwrites.
    Create(Box<Child>),
    /// Bring a child back in line, by server-side apply.
    Apply {
        /// As it should be.
        child: Box<Child>,
        /// That very object: an apply creates what is not there, and half a child is worse than none.
        uid: String,
        /// The look it was decided on. An apply that does not move it was needless.
        resource_version: String,
    },
    /// Take our ownerReference off a child that is to outlive the cluster.
    Disown {
        /// Which.
        key: ChildKey,
        /// The references of others, which stay.
        others: Vec<OwnerReference>,
        /// The look it was decided on.
        resource_version: String,
    },
    /// Change an instance's role, if the pod has not changed since we looked.
    SetRole {
        /// The pod.
        instance: Box<Instance>,
        /// The new role.
        role: Role,
        /// For a primary: who must confirm a row from its first one on.
        confirmed_by: Option<String>,
    },
    /// Change who must confirm the primary's rows, if the pod has not changed since we looked.
    SetConfirmedBy {
        /// The primary.
        instance: Box<Instance>,
        /// The new value of the annotation.
        confirmed_by: String,
    },
    /// Delete exactly this object, if it has not changed since we looked.
    Delete {
        /// Which.
        key: ChildKey,
        /// That very object, not its successor of the same name.
        uid: String,
        /// The look it was decided on.
        resource_version: String,
    },
}

/// The next thing to do, or `None` when what is there is what should be there.
pub fn next_step(desired: &PostgresCluster, observed: &Observed) -> Option<Step> {
    // The children go by their ownerReferences; whatever we made now would only have to be collected again.
    if desired.meta().deletion_timestamp.is_some() {
        return None;
    }
    let mut planner = Planner { cluster: desired, observed, situation: Situation::default() };
    let work = planner.next_work();
    planner.situation.busy = work.is_some();

    let truth = status(desired, observed, &planner.situation);
    let told = desired.status.as_ref();
    if must_come_first(told, &truth) {
        return Some(Step::UpdateStatus(Box::new(truth)));
    }
    let work = if desired.spec.paused { None } else { work };
    work.or_else(|| (told != Some(&truth)).then(|| Step::UpdateStatus(Box::new(truth))))
}

/// Looks at one cluster.
struct Planner<'a> {
    cluster: &'a PostgresCluster,
    observed: &'a Observed,
    situation: Situation,
}

// === impl Step ===

impl Step {
    /// Steps that cannot be undone, or that are only safe once: before them the world is looked at again, past every
    /// cache. Creating and applying need no such care, a name or a conflict stops them.
    pub fn needs_fresh_look(&self) -> bool {
        match self {
            Self::Delete { .. } | Self::RecordReplacement { .. } | Self::SetConfirmedBy { .. } => true,
            Self::SetRole { role, .. } => *role == Role::Primary,
            // A volume says whether every acknowledged row is on it.
            Self::Apply { child, .. } => child.key.kind == Kind::PersistentVolumeClaim,
            Self::UpdateStatus(_) | Self::CreateCredentials | Self::Create(_) | Self::Disown { .. } => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpdateStatus(status) => {
                write!(f, "report {:?}, {} of {} ready", status.phase, status.ready_replicas, status.replicas)
            }
            Self::RecordReplacement { pod, .. } => write!(f, "record the replacement of Pod {pod}"),
            Self::CreateCredentials => f.write_str("create the credentials"),
            Self::Create(child) => write!(f, "create {}", child.key),
            Self::Apply { child, .. } => match child.keep["metadata"]["annotations"][COMPLETE_ANNOTATION].as_str() {
                Some(complete) => write!(f, "level {}, complete: {complete}", child.key),
                None => write!(f, "level {}", child.key),
            },
            Self::Disown { key, .. } => write!(f, "let {key} outlive the cluster"),
            Self::SetRole { instance, role, confirmed_by: None } => {
                write!(f, "make Pod {} a {}", instance.name, role.as_str())
            }
            Self::SetRole { instance, role, confirmed_by: Some(names) } => {
                write!(f, "make Pod {} a {}, confirmed by {names}", instance.name, role.as_str())
            }
            Self::SetConfirmedBy { instance, confirmed_by } => {
                write!(f, "let Pod {} be confirmed by {confirmed_by}", instance.name)
            }
            Self::Delete { key, .. } => write!(f, "delete {key}"),
        }
    }
}

// === impl Planner ===

impl Planner<'_> {
    /// The order: what instances need to start; who leads, and who confirms; the instances; what is too much; what is
    /// outdated; the rest.
    fn next_work(&mut self) -> Option<Step> {
        self.credentials()
            .or_else(|| self.keep(children::config(self.cluster)))
            .or_else(|| self.keep(children::headless_service(self.cluster)))
            .or_else(|| self.keep(children::primary_service(self.cluster)))
            .or_else(|| self.roles())
            .or_else(|| self.confirmations())
            .or_else(|| self.instances())
            .or_else(|| self.surplus())
            .or_else(|| self.rollout())
            .or_else(|| self.disruption_budget())
            .or_else(|| self.backup())
    }

    /// The password is made once, before there is any data. If it is gone later, a new one would not open the database
    /// and only hide the loss: a person must bring the old one back.
    fn credentials(&mut self) -> Option<Step> {
        let wanted = children::credentials(self.cluster, "");
        if self.observed.get(&wanted.key).is_some() {
            return self.keep(wanted);
        }
        let has_data = self
            .observed
            .of_kind(Kind::PersistentVolumeClaim)
            .any(|volume| matches!(Ownership::of(volume, self.cluster), Ownership::Ours | Ownership::Orphan));
        if has_data {
            let message = format!("{} is missing while volumes exist; restore it", wanted.key);
            self.situation.problems.push(Problem { reason: "CredentialsLost", message });
            return None;
        }
        // `keep` would create it too, without a password.
        self.keep(wanted).map(|_| Step::CreateCredentials)
    }

    fn roles(&mut self) -> Option<Step> {
        let RoleChange { instance, role } = next_role_change(self.cluster, &self.observed.instances(self.cluster))?;
        let confirmed_by = (role == Role::Primary).then(|| self.confirmed_from_the_first(&instance));
        Some(Step::SetRole { instance: Box::new(instance), role, confirmed_by })
    }

    /// A budget for a single instance would only block node drains.
    fn disruption_budget(&mut self) -> Option<Step> {
        let budget = children::disruption_budget(self.cluster);
        if self.cluster.spec.replicas > 1 { self.keep(budget) } else { self.remove(&budget.key) }
    }

    fn backup(&mut self) -> Option<Step> {
        match &self.cluster.spec.backup {
            Some(backup) => self
                .backup_volume()
                .or_else(|| self.keep(children::backup(self.cluster, backup, &self.observed.image(self.cluster)))),
            None => self.remove(&Kind::CronJob.named(format!("{}-backup", self.cluster.name_any()))),
        }
    }

    /// The volume stays when there are no more dumps: what is on it may be all there is.
    fn backup_volume(&mut self) -> Option<Step> {
        let key = Kind::PersistentVolumeClaim.named(children::backup_volume_name(&self.cluster.name_any()));
        let live_size = self.live_size(&key).map(str::to_owned);
        self.keep(children::backup_volume(self.cluster, live_size.as_deref()))
    }

    /// Creates a child that is missing, levels one that is not level, and keeps its hands off what is not ours.
    fn keep(&mut self, child: Child) -> Option<Step> {
        if let Some(message) = self.observed.refusal(&child.key) {
            let message = format!("{} is refused: {message}", child.key);
            self.situation.problems.push(Problem { reason: "Refused", message });
            return None;
        }
        let Some(live) = self.observed.get(&child.key) else { return Some(Step::Create(Box::new(child))) };
        let ownership = self.may_change(&child.key, live)?;
        if !child.owned && ownership == Ownership::Ours {
            return Some(self.disown(child.key, live));
        }
        if is_level(&child.keep, &json_of(live, &child.key)) {
            return None;
        }
        let (uid, resource_version) = (live.uid().unwrap_or_default(), live.resource_version().unwrap_or_default());
        Some(Step::Apply { child: Box::new(child), uid, resource_version })
    }

    /// Deletes a child that is no longer wanted.
    fn remove(&mut self, key: &ChildKey) -> Option<Step> {
        let live = self.observed.get(key)?;
        match Ownership::of(live, self.cluster) {
            Ownership::Ours if live.metadata.deletion_timestamp.is_none() => Some(delete(key.clone(), live)),
            _ => None,
        }
    }

    /// Lets a child outlive the cluster.
    fn disown(&self, key: ChildKey, live: &DynamicObject) -> Step {
        let mut others = live.owner_references().to_vec();
        others.retain(|owner| Some(&owner.uid) != self.cluster.uid().as_ref());
        Step::Disown { key, others, resource_version: live.resource_version().unwrap_or_default() }
    }

    /// Whose object it is, if it may be changed at all. Otherwise the reason is noted.
    fn may_change(&mut self, key: &ChildKey, live: &DynamicObject) -> Option<Ownership> {
        match Ownership::of(live, self.cluster) {
            Ownership::Foreign => {
                let message = format!("{key} exists and is not ours; rename or remove it");
                self.situation.problems.push(Problem { reason: "NameTaken", message });
                None
            }
            Ownership::Former => {
                self.situation.waiting.push(format!("the former {key} to be collected"));
                None
            }
            _ if live.metadata.deletion_timestamp.is_some() => {
                self.situation.waiting.push(format!("{key} to be deleted"));
                None
            }
            ownership => Some(ownership),
        }
    }
}

/// The object as JSON, whichever way it was read: items of a LIST come without apiVersion and kind, events of a watch
/// with them.
fn json_of(object: &DynamicObject, key: &ChildKey) -> Value {
    let resource = key.kind.api_resource();
    let mut json = to_value(object).expect("an object read from JSON can be written as JSON");
    json["apiVersion"] = resource.api_version.into();
    json["kind"] = resource.kind.into();
    json
}

/// The deletion of exactly the object that was seen.
fn delete(key: ChildKey, live: &DynamicObject) -> Step {
    let uid = live.uid().unwrap_or_default();
    Step::Delete { key, uid, resource_version: live.resource_version().unwrap_or_default() }
}
