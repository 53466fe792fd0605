//! `legalOwners`: every ownerReference that the operator writes resolves.
//!
//! Judged on the version that brings the reference, before the collector acts, against all objects ever seen: kinds are
//! witnessed separately, so that an owner may be seen after its dependent. An owner that is already deleted when the
//! reference is written is a warning only: the operator cannot know, and the collector takes the object away.

use crate::{
    case::{Case, Life},
    draft::Draft,
    wording,
};
use spiritlevel_model::{
    Meta, ObjectRef, OwnerReference,
    attribution::Seen,
    finding::{Finding, FindingClass},
    history::{KindInfo, VersionType},
};
use std::collections::BTreeSet;

/// One finding for each object and reference.
pub(crate) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reported = BTreeSet::new();
    for (index, seen) in case.versions().iter().enumerate() {
        if matches!(seen.version.kind, VersionType::Deleted | VersionType::Found) || !case.is_operators(index) {
            continue;
        }
        let before = seen.before.map(|i| case.version(i).version.object.owners()).unwrap_or_default();
        for owner in seen.version.object.owners().into_iter().filter(|o| !before.contains(o)) {
            let Some(fault) = check(case, seen, &owner) else { continue };
            if reported.insert((seen.version.object.uid(), owner.uid.clone(), owner.name.clone(), owner.kind.clone())) {
                findings.extend(finding(case, index, &owner, fault));
            }
        }
    }
    findings
}

/// What is wrong with a reference, and what the garbage collector makes of it.
struct Illegal {
    what: String,
    consequence: &'static str,
    class: FindingClass,
}

const AT_ONCE: &str = "the garbage collector deletes the object at once";
const NEVER: &str = "the garbage collector never deletes the object";

fn check(case: &Case<'_>, seen: &Seen, owner: &OwnerReference) -> Option<Illegal> {
    let illegal = |what: String, consequence| Some(Illegal { what, consequence, class: FindingClass::Violation });
    if case.kinds().is_empty() {
        return None;
    }
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = case.kinds().iter().find(|k| k.group == group && k.kind == owner.kind);
    let Some(kind) = kind else {
        return illegal(format!("no kind {} of {} is served", owner.kind, owner.api_version), NEVER);
    };
    let namespace = seen.version.object.namespace();
    if kind.namespaced && namespace.is_none() {
        return illegal(format!("a {} lies in a namespace, the object does not", owner.kind), NEVER);
    }
    let Some(life) = case.objects.get(&owner.uid) else {
        return illegal(format!("no object has the uid {}", owner.uid), AT_ONCE);
    };
    mismatch(life, owner, kind, namespace).map_or_else(|| dead(case, life, seen), |what| illegal(what, AT_ONCE))
}

/// What differs between the owner and what the reference says of it.
fn mismatch(life: &Life, owner: &OwnerReference, kind: &KindInfo, namespace: Option<&str>) -> Option<String> {
    let uid = wording::uid(&owner.uid);
    if life.resource != kind.key() {
        return Some(format!("the uid {uid} is that of {}, not of a {}", life.object, owner.kind));
    }
    if life.object.name != owner.name {
        return Some(format!("the uid {uid} is that of {}, not of {}", life.object, owner.name));
    }
    let elsewhere = kind.namespaced && life.object.namespace.as_deref() != namespace;
    elsewhere.then(|| format!("the owner lies in namespace {}", life.object.namespace.as_deref().unwrap_or("-")))
}

/// An owner that was gone before the reference was written.
fn dead(case: &Case<'_>, life: &Life, seen: &Seen) -> Option<Illegal> {
    let gone = case.version(life.deleted?);
    let what = format!("the owner was deleted at {}, before", wording::at(gone.at_ms));
    let before = gone.moment() < seen.moment();
    before.then_some(Illegal { what, consequence: AT_ONCE, class: FindingClass::Warning })
}

fn finding(case: &Case<'_>, index: usize, owner: &OwnerReference, illegal: Illegal) -> Option<Finding> {
    let seen = case.version(index);
    let object = ObjectRef::of(&seen.version.object)?;
    let write = case.author(index)?;
    let message = format!("{object} has an ownerReference to {} {} that does not resolve", owner.kind, owner.name);
    let cause = format!("{}: {}", illegal.what, illegal.consequence);
    let life = case.objects.get(&seen.version.object.uid()?)?;
    let deleted = life.deleted.map(|i| {
        let by = case.author(i).map_or_else(|| "by somebody".to_owned(), |w| format!("by {}", w.actor));
        format!("{by} at {}", wording::at(case.version(i).at_ms))
    });
    let reference =
        format!("apiVersion {}, kind {}, name {}, uid {}", owner.api_version, owner.kind, owner.name, owner.uid);
    let draft = Draft::new("legalOwners", message, cause, (seen.seq, seen.at_ms)).object(&object).class(illegal.class);
    let draft = draft
        .request(Some(write.id))
        .detail("written", format!("by {}", wording::by(&write.actor, seen.at_ms, write.id)));
    Some(draft.detail("reference", reference).maybe("deleted", deleted).finish(case))
}

#[cfg(test)]
mod tests;
