//! `noOrphans`: after a subject is gone nothing stays that belonged to it.
//!
//! Judged at the end of the settling after the teardown. What belongs to a subject: see [`crate::case::Tie`]. What the
//! operator made without any tie is judged by growth: when the probe's second subject left one more, it is a leak.

use crate::{
    case::{Case, Life, Subject, Tie, TieBy},
    draft::Draft,
    wording,
};
use globset::GlobBuilder;
use serde_json::Value;
use spiritlevel_model::{
    Meta, ResourceKey,
    attribution::Write,
    cel::Cel,
    finding::{Finding, FindingClass},
    history::Phase,
    invariants::Retain,
    world::{Live, OwnerState, World, is_heartbeat},
};
use std::collections::BTreeMap;

/// One finding for each object that stayed.
pub(crate) fn judge(case: &Case<'_>, retain: &[Retain]) -> Vec<Finding> {
    let Some(end) = case.phases.end_of(Phase::SettleTeardown) else { return Vec::new() };
    let world = case.world_before(end.0);
    let mut findings = broken_rules(case, retain, end);
    let mut untied = Vec::new();
    for live in world.live() {
        let Some(life) = live.object.uid().and_then(|u| case.objects.get(&u)) else { continue };
        if life.found
            || is_heartbeat(&live.resource, &live.object)
            || is_kubernetes_own(live)
            || !may_be_orphan(case, life)
        {
            continue;
        }
        match case.tie(&life.uid) {
            Some(tie) => {
                let Some(subject) = case.subject(&tie.subject) else { continue };
                let gone = world.is_gone(&subject.uid);
                if gone && !retained(case, retain, live, subject) && !hangs_on_another(&world, live) {
                    findings.push(finding(case, &world, live, life, tie, subject, end));
                }
            }
            None => untied.push(life),
        }
    }
    findings.extend(growth(case, &untied, end));
    findings
}

/// Objects that Kubernetes makes in every namespace.
fn is_kubernetes_own(live: &Live) -> bool {
    match (live.resource.group.as_str(), live.resource.resource.as_str()) {
        ("", "serviceaccounts") => live.object.name() == Some("default"),
        ("", "configmaps") => live.object.name() == Some("kube-root-ca.crt"),
        ("", "namespaces" | "nodes") => true,
        _ => false,
    }
}

/// Whether the object goes as soon as another one that stayed goes: that one is the orphan.
fn hangs_on_another(world: &World, live: &Live) -> bool {
    let owned = live.object.owners().iter().any(|o| world.owner_state(&live.object, o) == OwnerState::Present);
    let service = ResourceKey::new("", "services");
    let endpoints = live.resource == ResourceKey::new("", "endpoints");
    owned || endpoints && world.at(&service, live.object.namespace(), live.object.name().unwrap_or_default()).is_some()
}

/// Whether the object came after the first subject, and from the operator or something that works for it; what the
/// scenario or the harness made counts only when it is owned.
fn may_be_orphan(case: &Case<'_>, life: &Life) -> bool {
    // By revision: the witness sees different kinds in no particular order.
    let first_subject = case.subjects.iter().filter_map(|s| case.objects.get(&s.uid)).map(|l| l.born).min();
    let ours = case.author(life.first()).is_some_and(|w| w.actor.is_ours());
    let is_subject = case.subject(&life.uid).is_some();
    let later = first_subject.is_some_and(|first| life.born > first);
    later && !is_subject && (!ours || !life.owners.is_empty())
}

fn retained(case: &Case<'_>, retain: &[Retain], live: &Live, subject: &Subject) -> bool {
    retain.iter().any(|rule| {
        let labels = rule.labels.iter().all(|(k, v)| live.object.label(k) == Some(v.as_str()));
        let name = rule.name.as_ref().is_none_or(|glob| matches(glob, live.object.name().unwrap_or_default()));
        let when = rule.when.as_ref().is_none_or(|cel| holds(case, cel, subject) == Ok(true));
        resource_matches(&rule.resource, &live.resource) && name && labels && when
    })
}

/// `persistentvolumeclaims`, `statefulsets.apps`, `*.example.com`.
fn resource_matches(glob: &str, resource: &ResourceKey) -> bool {
    matches(glob, &resource.to_string())
}

fn matches(glob: &str, text: &str) -> bool {
    GlobBuilder::new(glob).build().is_ok_and(|g| g.compile_matcher().is_match(text))
}

/// The rule's `when` over the subject's last version.
fn holds(case: &Case<'_>, cel: &str, subject: &Subject) -> Result<bool, String> {
    let last = case.objects.get(&subject.uid).map(|l| &case.version(l.last()).version.object);
    Cel::compile(cel).and_then(|c| c.test(&[("subject", last.unwrap_or(&Value::Null))])).map_err(|e| e.to_string())
}

/// A rule whose `when` has no answer retains nothing, and says so.
fn broken_rules(case: &Case<'_>, retain: &[Retain], end: (u64, f64)) -> Vec<Finding> {
    let error = |rule: &Retain| {
        let cel = rule.when.as_ref()?;
        let error = case.subjects.iter().find_map(|s| holds(case, cel, s).err())?;
        let message = format!("retain {}: {error}", rule.resource);
        let draft = Draft::new("noOrphans", message, "the rule cannot be applied".into(), end);
        Some(draft.class(FindingClass::Warning).finish(case))
    };
    retain.iter().filter_map(error).collect()
}

fn finding(
    case: &Case<'_>,
    world: &World,
    live: &Live,
    life: &Life,
    tie: &Tie,
    subject: &Subject,
    end: (u64, f64),
) -> Finding {
    let gone = case.objects.get(&subject.uid).and_then(|l| l.deleted).map(|i| case.version(i));
    let author = case.author(life.first());
    let born = case.version(life.first());
    let after = gone.filter(|g| g.moment() < life.born);
    let by = author.map_or_else(|| "by somebody whose request was not seen".to_owned(), |w| format!("by {}", w.actor));
    let message = format!("{} (uid {}) outlived its owner", life.object, wording::uid(&life.uid));
    let refused = refused(case, life);
    let cause = match &refused {
        Some(refused) if live.object.owners().is_empty() && !live.object.is_terminating() => {
            format!("it has no ownerReferences, and {refused}")
        }
        _ => why(case, world, live, life, after.map(|g| g.at_ms), &by),
    };
    let below = below(case, world, life);
    let down = deleted_while_down(case, subject);
    let request = author.map_or_else(String::new, |w| format!(", request {}", w.id));
    let references = if born.version.object.owners().is_empty() { ", without ownerReferences" } else { "" };
    let created = format!("{by} at {}{request}{references}", wording::at(born.at_ms));
    let owner = gone.map(|g| {
        let idle =
            collector_idle(case, end.0).map(|at| format!("; the garbage collector was idle from {}", wording::at(at)));
        let uid = wording::uid(&subject.uid);
        format!("{} (uid {uid}) deleted at {}{}", subject.object, wording::at(g.at_ms), idle.unwrap_or_default())
    });
    Draft::new("noOrphans", message, cause, end)
        .object(&life.object)
        .about(&subject.uid)
        .request(author.map(|w| w.id))
        .detail("created", created)
        .maybe("owner", owner)
        .maybe("tie", (tie.by > TieBy::Uid).then(|| format!("it carries the name of {}", subject.object)))
        .maybe("refused", refused)
        .maybe("below", (below > 0).then(|| format!("what hangs on it stays as well: {below} more")))
        .step(down)
        .finish(case)
}

/// How many live objects it owns, over other owners too.
fn below(case: &Case<'_>, world: &World, top: &Life) -> usize {
    let mut owners = std::collections::BTreeSet::from([&top.uid]);
    loop {
        let owned = |l: &&Life| !owners.contains(&l.uid) && l.owners.iter().any(|o| owners.contains(&o.uid));
        let more: Vec<_> =
            case.objects.values().filter(|l| world.by_uid(&l.uid).is_some()).filter(owned).map(|l| &l.uid).collect();
        if more.is_empty() {
            return owners.len() - 1;
        }
        owners.extend(more);
    }
}

/// Why nobody deleted it.
fn why(case: &Case<'_>, world: &World, live: &Live, life: &Life, after_ms: Option<f64>, by: &str) -> String {
    let finalizers = live.object.finalizers();
    if live.object.is_terminating() && !finalizers.is_empty() {
        return format!("it is terminating, and the finalizer {} is still there", finalizers.join(", "));
    }
    let late = after_ms.map(|at| format!("it was created {by} after its owner was deleted at {}", wording::at(at)));
    let owners = live.object.owners();
    let Some(owner) = owners.first() else {
        let lost = life.owners.first().map(|o| format!("its ownerReference to {} {} was taken away", o.kind, o.name));
        let none = || "it has no ownerReferences, and nobody deleted it".to_owned();
        return late.map(|l| format!("{l}, without ownerReferences")).or(lost).unwrap_or_else(none);
    };
    let names = format!("its owner {} {} (uid {})", owner.kind, owner.name, wording::uid(&owner.uid));
    let state = match world.owner_state(&live.object, owner) {
        OwnerState::Present => format!("{names} is still there"),
        OwnerState::WaitsForDependents => format!("{names} waits for its dependents"),
        OwnerState::UnknownKind => format!("{names} has a kind that is not served: it is never collected"),
        OwnerState::Unreachable => {
            format!("{names} lies in a namespace and the object does not: it is never collected")
        }
        OwnerState::Absent => match case.objects.get(&owner.uid) {
            Some(_) => format!("{names} is gone, and it was not collected yet"),
            None => format!("{names} never was"),
        },
    };
    late.map_or(state.clone(), |late| format!("{late}; {state}"))
}

/// Deletions of the object that failed, where nobody succeeded.
fn refused(case: &Case<'_>, life: &Life) -> Option<String> {
    let attempts = case.exchanges.values().filter(|x| {
        let info = &x.request.info;
        let same = info.resource.as_ref() == Some(&life.resource) && info.name.as_ref() == Some(&life.object.name);
        same && info.verb == spiritlevel_model::Verb::Delete && info.namespace == life.object.namespace
    });
    let failed: Vec<_> = attempts.filter_map(|x| Some((x, x.failure()?))).collect();
    let (last, failure) = failed.last()?;
    let n = wording::times(failed.len());
    let actor = &last.request.actor;
    Some(format!(
        "{} by {actor} failed {n} ({}) at {}, request {}",
        last.request.info,
        failure.text(),
        wording::at(last.at_ms),
        last.request.id
    ))
}

/// The last deletion by the garbage collector before `seq`.
fn collector_idle(case: &Case<'_>, seq: u64) -> Option<f64> {
    let deletions = case.versions().iter().enumerate().filter(|(i, v)| v.seq < seq && case.is_collectors(*i));
    deletions.map(|(_, v)| v.at_ms).next_back()
}

/// The step that deleted the subject while no operator ran.
pub(crate) fn deleted_while_down(case: &Case<'_>, subject: &Subject) -> Option<String> {
    let life = case.objects.get(&subject.uid)?;
    let index = life.terminating.or(life.deleted)?;
    let seen = case.version(index);
    let ours = |w: &Write| w.actor.is_ours();
    if case.processes.alive_at(seen.seq) || !case.author(index).is_none_or(ours) {
        return None;
    }
    let delete = case.steps.iter().rev().find(|s| s.operation == "delete" && s.seq < seen.seq);
    delete.map(|s| s.called.clone())
}

/// What the operator made without a tie, by role: when the first subjects and the second one left some, it grows.
fn growth(case: &Case<'_>, untied: &[&Life], end: (u64, f64)) -> Vec<Finding> {
    let Some((probe, _)) = case.phases.begin(Phase::Probe) else { return Vec::new() };
    if !case.subjects.iter().any(|s| s.second) {
        return Vec::new();
    }
    let mut roles: BTreeMap<(ResourceKey, Option<String>, String), Vec<&Life>> = BTreeMap::new();
    for life in untied.iter().filter(|l| case.is_operators(l.first())) {
        let role = (life.resource.clone(), life.object.namespace.clone(), stem(&life.object.name));
        roles.entry(role).or_default().push(life);
    }
    let leak = |lives: Vec<&Life>| {
        let (later, earlier): (Vec<&Life>, Vec<&Life>) =
            lives.into_iter().partition(|l| case.version(l.first()).seq > probe);
        let (first, more) = (earlier.first()?, later.first()?);
        let message = format!(
            "{} (uid {}) stayed, and so did one more for the second subject: {}",
            first.object,
            wording::uid(&first.uid),
            more.object.name,
        );
        let cause =
            "the operator makes one for each subject and never deletes it; nothing ties it to its subject".into();
        let request = case.author(first.first()).map(|w| w.id);
        let born = case.version(first.first());
        let created = case.author(first.first()).map(|w| wording::by(&w.actor, born.at_ms, w.id));
        let draft = Draft::new("noOrphans", message, cause, end).object(&first.object).request(request);
        Some(draft.maybe("created", created.map(|c| format!("by {c}"))).finish(case))
    };
    roles.into_values().filter_map(leak).collect()
}

/// A name without the parts that look generated or numbered.
fn stem(name: &str) -> String {
    let plain = |part: &&str| !part.chars().any(|c| c.is_ascii_digit()) && part.len() < 20;
    name.split(['-', '.']).filter(plain).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests;
