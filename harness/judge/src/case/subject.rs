//! The subjects of a run: objects of the operator's kind that a user made.

use super::Case;
use spiritlevel_model::{ObjectRef, Uid};

/// A subject.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Its uid.
    pub(crate) uid: Uid,
    /// How it is named.
    pub(crate) object: ObjectRef,
    /// Whether the probe made it.
    pub(crate) second: bool,
}

/// Objects of the subject's kind in the run's namespace, or anywhere when the scenario made them; not those that the
/// operator or a controller made.
pub(super) fn find(case: &Case<'_>) -> Vec<Subject> {
    let Some(resource) = case.subject_resource() else { return Vec::new() };
    let of_kind = case.objects.values().filter(|l| l.resource == resource);
    let mut found: Vec<(usize, Subject)> = of_kind
        .filter_map(|life| {
            let author = case.author(life.first()).map(|w| &w.actor);
            let here = life.object.namespace.as_deref() == Some(case.plan.namespace.as_str());
            let is_subject = match author {
                Some(actor) => actor.is_ours(),
                // The witness came later, or the outcome of the request is not known.
                None => here && life.owners.is_empty(),
            };
            let second = author.is_some_and(|a| a.0 == "harness/probe");
            let subject = Subject { uid: life.uid.clone(), object: life.object.clone(), second };
            is_subject.then_some((life.first(), subject))
        })
        .collect();
    found.sort_by_key(|(first, _)| *first);
    found.into_iter().map(|(_, subject)| subject).collect()
}
