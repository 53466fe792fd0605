//! The part of the plan that keeps acknowledged rows from being lost.
//!
//! Two facts, each on the object it speaks of. The annotation `confirmed-by` on the primary's pod: the primary waits for
//! these instances before it acknowledges a row. The annotation `complete` on a volume: every acknowledged row is on it,
//! so its instance may become the primary. One rule holds between them at any moment, whoever dies:
//!
//! > Who is complete is among those that confirm.
//!
//! So an instance that is gone is first written down as incomplete, and then no longer waited for; one that comes is
//! first waited for, and is complete when it is ready, which means that the primary itself has said so.

use kube::ResourceExt;

use super::{Planner, Step};
use crate::children::{ALONE, instance_name};
use crate::observed::{Instance, Role};
use crate::status::Problem;

impl Planner<'_> {
    /// Whose confirmation the primary must wait for: all complete ones, and all that follow it already. The latter cost
    /// nothing, and become complete by it.
    pub(super) fn confirmations(&mut self) -> Option<Step> {
        let instances = self.observed.instances(self.cluster);
        let Some(primary) = instances.iter().find(|i| i.role == Some(Role::Primary)) else { return self.nobody_left() };
        let follow = instances.iter().filter(|i| i.answers && i.is_wanted(self.cluster)).map(|i| i.ordinal);
        let confirming = self.observed.complete_volumes(self.cluster).into_iter().chain(follow);
        let confirmed_by = self.names(confirming, primary);
        if primary.terminating || primary.confirmed_by.as_ref() == Some(&confirmed_by) {
            return None;
        }
        Some(Step::SetConfirmedBy { instance: Box::new(primary.clone()), confirmed_by })
    }

    /// Who confirms a new primary's very first row: all that are complete now, its predecessor included.
    pub(super) fn confirmed_from_the_first(&self, primary: &Instance) -> String {
        self.names(self.observed.complete_volumes(self.cluster).into_iter(), primary)
    }

    /// What the volume of that ordinal should say. It changes only while a primary does its work: when there is none,
    /// nothing is acknowledged, and what was complete stays it. Whoever answers is waited for already, since
    /// `confirmations` comes before this, so whoever is ready has every row.
    pub(super) fn is_complete(&self, ordinal: i32) -> bool {
        let instances = self.observed.instances(self.cluster);
        let told = self.observed.complete_volumes(self.cluster).contains(&ordinal);
        let Some(primary) = instances.iter().find(|i| i.role == Some(Role::Primary) && i.answers) else { return told };
        let Some(instance) = instances.iter().find(|i| i.ordinal == ordinal) else { return false };
        let stays = instance.answers && instance.is_wanted(self.cluster);
        instance.name == primary.name || (stays && (told || instance.ready))
    }

    /// Nobody is the primary, and nobody may be: said only where it will not pass by itself.
    fn nobody_left(&mut self) -> Option<Step> {
        let complete = self.observed.complete_volumes(self.cluster);
        if self.observed.is_initialized(self.cluster) && !complete.iter().any(|o| *o < self.cluster.spec.replicas) {
            let message = match complete.first() {
                Some(ordinal) => format!("only instance {ordinal} has all data; raise spec.replicas above {ordinal}"),
                None => "no volume has all data; a person must choose one or restore a dump".to_owned(),
            };
            self.situation.problems.push(Problem { reason: "DataLost", message });
        }
        None
    }

    fn names(&self, ordinals: impl Iterator<Item = i32>, primary: &Instance) -> String {
        let others: std::collections::BTreeSet<i32> = ordinals.filter(|ordinal| *ordinal != primary.ordinal).collect();
        let names: Vec<_> =
            others.into_iter().map(|ordinal| instance_name(&self.cluster.name_any(), ordinal)).collect();
        if names.is_empty() { ALONE.to_owned() } else { names.join(",") }
    }
}
