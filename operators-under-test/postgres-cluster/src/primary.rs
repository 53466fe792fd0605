//! Who is the primary? Two primaries are two histories of one database, so between two of them there is always a moment
//! with none: demote first, look again, then promote. And only who has every acknowledged row may be the next: see
//! `confirmations`.

use crate::crd::PostgresCluster;
use crate::observed::{Instance, Role};

/// A change of one instance's role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// Whose.
    pub instance: Instance,
    /// To what.
    pub role: Role,
}

/// The next change of roles; `None` when they are right, or when nobody is fit to take over.
pub fn next_role_change(cluster: &PostgresCluster, instances: &[Instance]) -> Option<RoleChange> {
    let demote = |instance: &Instance| Some(RoleChange { instance: instance.clone(), role: Role::Replica });

    // Rule 1: an instance without a role is a replica. The Services select by the label.
    if let Some(instance) = instances.iter().find(|i| i.role.is_none() && !i.terminating) {
        return demote(instance);
    }
    let primaries: Vec<_> = instances.iter().filter(|i| i.role == Some(Role::Primary)).collect();
    let Some(holder) = holder(cluster, &primaries) else {
        // Rule 4: nobody is primary, so the best candidate may be.
        let best = candidates(cluster, instances).min_by_key(|i| (!i.up_to_date, i.ordinal))?;
        return Some(RoleChange { instance: best.clone(), role: Role::Primary });
    };
    // Rule 2: more than one is one too many, whoever made it so.
    if let Some(extra) = primaries.iter().find(|i| i.name != holder.name) {
        return demote(extra);
    }
    // Rule 3: an unfit primary steps down, but only for somebody: without a successor it is the best we have.
    let successor = candidates(cluster, instances).any(|i| i.name != holder.name);
    let steps_down = !is_fit(cluster, holder) || is_last_outdated(cluster, holder, instances);
    if successor && steps_down { demote(holder) } else { None }
}

/// The one of several primaries that stays: the one the status names, if it is fit, else the first fit one.
fn holder<'a>(cluster: &PostgresCluster, primaries: &[&'a Instance]) -> Option<&'a Instance> {
    let known = cluster.status.as_ref().and_then(|status| status.primary.as_deref());
    primaries.iter().min_by_key(|i| (!is_fit(cluster, i), Some(i.name.as_str()) != known, i.ordinal)).copied()
}

fn candidates<'a>(cluster: &PostgresCluster, instances: &'a [Instance]) -> impl Iterator<Item = &'a Instance> {
    instances.iter().filter(|instance| is_fit(cluster, instance) && instance.complete)
}

/// Not `ready`: while there is no primary nobody can confirm that a replica is complete, but its volume says it.
fn is_fit(cluster: &PostgresCluster, instance: &Instance) -> bool {
    instance.answers && instance.is_wanted(cluster)
}

/// In a rolling update the primary hands over when all others have the new version.
fn is_last_outdated(cluster: &PostgresCluster, holder: &Instance, instances: &[Instance]) -> bool {
    let mut others = instances.iter().filter(|i| i.is_wanted(cluster) && i.name != holder.name).peekable();
    !holder.up_to_date && others.peek().is_some() && others.all(|i| i.up_to_date && i.ready)
}
