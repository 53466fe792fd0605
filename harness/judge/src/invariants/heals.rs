//! `heals`: a child that somebody else deletes or changes comes back.
//!
//! Children are what the operator made for a subject. A deletion counts when the subject lives on and was not changed
//! since (else the child may not be wanted any more); a change counts in fields that the operator manages.

use crate::{
    case::{Case, Life},
    diff::{self, Change, Segment},
    draft::Draft,
    wording,
};
use serde_json::Value;
use spiritlevel_model::{
    Actor, Meta, ObjectRef, Uid,
    finding::Finding,
    history::{Phase, VersionType},
    world::{World, is_heartbeat},
};
use std::collections::BTreeSet;

/// Judges the end of the settling; the probe's own drifts at the end of its settling.
pub(crate) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reported = BTreeSet::new();
    for index in 0..case.versions().len() {
        let Some(drift) = Drift::of(case, index) else { continue };
        let Some((world, end)) = judged_at(case, case.version(index).seq) else { continue };
        if !is_wanted(case, &world, drift.life, index) {
            continue;
        }
        let found = if drift.deletes { deleted(case, &drift, &world, end) } else { changed(case, &drift, &world, end) };
        if let Some(finding) = found
            && reported.insert((drift.life.object.clone(), drift.deletes))
        {
            findings.push(finding);
        }
    }
    findings
}

/// Somebody else's write on a child.
struct Drift<'c> {
    index: usize,
    life: &'c Life,
    actor: &'c Actor,
    deletes: bool,
}

impl<'c> Drift<'c> {
    fn of(case: &'c Case<'_>, index: usize) -> Option<Self> {
        let seen = case.version(index);
        let actor = &case.author(index)?.actor;
        let life = case.objects.get(&seen.version.object.uid()?)?;
        // Pods' statuses are the stub's to write, touches and conflicts are reverted by who makes them.
        let disturbs =
            actor.0 == "user" || ["drift", "kill-pod", "killPod"].iter().any(|p| actor == &Actor::harness(p));
        let child =
            case.is_operators(life.first()) && case.tie(&life.uid).is_some() && case.subject(&life.uid).is_none();
        if !disturbs || !child || is_heartbeat(&seen.version.resource, &seen.version.object) {
            return None;
        }
        let deletes = seen.version.kind == VersionType::Deleted || life.terminating == Some(index);
        (deletes || seen.version.kind == VersionType::Modified).then_some(Self { index, life, actor, deletes })
    }
}

/// The end of the settle phase that follows.
fn judged_at(case: &Case<'_>, seq: u64) -> Option<(World, (u64, f64))> {
    let ends = [Phase::Settle, Phase::SettleProbe].into_iter().filter_map(|p| case.phases.end_of(p));
    let end = ends.into_iter().find(|(end, _)| *end > seq)?;
    Some((case.world_before(end.0), end))
}

/// Whether the subject and every owner live on, and the subject's generation is that of the moment.
fn is_wanted(case: &Case<'_>, world: &World, life: &Life, index: usize) -> bool {
    let Some(tie) = case.tie(&life.uid) else { return false };
    let Some(subject) = world.by_uid(&tie.subject).filter(|l| !l.object.is_terminating()) else { return false };
    let owners = life.owners.iter().all(|o| world.by_uid(&o.uid).is_some_and(|l| !l.object.is_terminating()));
    let then = generation_before(case, &tie.subject, case.version(index).seq);
    owners && (then.is_none() || then == subject.object.generation())
}

fn generation_before(case: &Case<'_>, uid: &Uid, seq: u64) -> Option<i64> {
    let versions = &case.objects.get(uid)?.versions;
    let last = versions.iter().rev().find(|i| case.version(**i).seq < seq)?;
    case.version(*last).version.object.generation()
}

fn deleted(case: &Case<'_>, drift: &Drift<'_>, world: &World, end: (u64, f64)) -> Option<Finding> {
    let life = drift.life;
    let seen = case.version(drift.index);
    let lives = |o: &Value| !o.is_terminating();
    let back = if let Some(stem) = seen.version.object["metadata"]["generateName"].as_str() {
        let count = |w: &World| {
            let of_stem =
                |o: &Value| o["metadata"]["generateName"] == stem && o.namespace() == seen.version.object.namespace();
            w.live().filter(|l| l.resource == life.resource && of_stem(&l.object) && lives(&l.object)).count()
        };
        count(world) >= count(&case.world_before(seen.seq))
    } else {
        let at = world.at(&life.resource, life.object.namespace.as_deref(), &life.object.name);
        at.is_some_and(|l| lives(&l.object))
    };
    if back {
        return None;
    }
    let message = format!(
        "{} (uid {}) did not come back after {} deleted it at {}",
        life.object,
        wording::uid(&life.uid),
        drift.actor,
        wording::at(seen.at_ms),
    );
    Some(finding(case, drift, message, end))
}

fn changed(case: &Case<'_>, drift: &Drift<'_>, world: &World, end: (u64, f64)) -> Option<Finding> {
    let seen = case.version(drift.index);
    let before = &case.version(seen.before?).version.object;
    // A deleted child has nothing to set back.
    let now = &world.by_uid(&drift.life.uid)?.object;
    let managers = managers(case, drift.life);
    let stays = |c: &Change| {
        let managed = is_managed(before, &managers, &c.path);
        managed && c.before != c.after && diff::value_at(now, &c.path) == &c.after
    };
    let all = diff::changes(before, &seen.version.object);
    let left: Vec<&Change> = all.iter().filter(|c| stays(c)).collect();
    let first = left.first()?;
    let message = format!(
        "{} (uid {}) still has {} {} that {} set at {}",
        drift.life.object,
        wording::uid(&drift.life.uid),
        diff::path_text(&first.path),
        diff::value_text(&first.after),
        drift.actor,
        wording::at(seen.at_ms),
    );
    let mut finding = finding(case, drift, message, end);
    let object = ObjectRef::of(now).unwrap_or_else(|| drift.life.object.clone());
    finding.object = Some(object);
    let lines = left.iter().map(|c| {
        let text = format!(
            "{}: was {}, is {}",
            diff::path_text(&c.path),
            diff::value_text(&c.before),
            diff::value_text(&c.after)
        );
        spiritlevel_model::finding::Detail { key: "field".into(), text }
    });
    let at = finding.details.len().min(1);
    finding.details.splice(at..at, lines);
    Some(finding)
}

fn finding(case: &Case<'_>, drift: &Drift<'_>, message: String, end: (u64, f64)) -> Finding {
    let seen = case.version(drift.index);
    let watched = case.streams.open_at(end.0).iter().any(|(r, _)| r == &drift.life.resource);
    let told = case.streams.delivery(&drift.life.uid, seen.moment(), end.0);
    let cause = match told {
        Some(d) => format!("{} heard of it at {} and did nothing", d.actor, wording::at(d.at_ms)),
        None if !case.processes.alive_at(end.0) => "the operator does not run".into(),
        None if watched => format!("the operator watches {} and did not hear of it", drift.life.resource),
        None => format!("the operator does not watch {}", drift.life.resource),
    };
    let request = case.author(drift.index).map(|w| w.id);
    let step = case.steps.iter().rev().find(|s| s.seq < seen.seq);
    let draft = Draft::new("heals", message, cause, end).object(&drift.life.object).request(request);
    match step {
        Some(s) => draft.detail("drift", format!("{} in {}", s.operation, s.path)).found_in(&s.called).finish(case),
        None => draft.finish(case),
    }
}

/// The field managers under which the operator wrote the object.
fn managers(case: &Case<'_>, life: &Life) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for index in life.versions.iter().filter(|i| case.is_operators(**i)) {
        let seen = case.version(*index);
        let entries = |o: &Value| -> BTreeSet<String> {
            let all = o["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            all.iter().map(|e| format!("{}\n{}", e["manager"].as_str().unwrap_or_default(), e["time"])).collect()
        };
        let before = seen.before.map(|i| entries(&case.version(i).version.object)).unwrap_or_default();
        let new = entries(&seen.version.object).into_iter().filter(|e| !before.contains(e));
        names.extend(new.filter_map(|e| e.split('\n').next().map(Into::into)));
    }
    names
}

/// Whether one of the managers owns the field, or something below it, or the whole list or map around it.
fn is_managed(object: &Value, managers: &BTreeSet<String>, path: &[Segment]) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    let ours = entries.into_iter().flatten().filter(|e| e["manager"].as_str().is_some_and(|m| managers.contains(m)));
    ours.into_iter().any(|entry| {
        let mut node = &entry["fieldsV1"];
        for segment in path {
            match segment {
                Segment::Key(key) => match node.get(format!("f:{key}")) {
                    Some(below) => node = below,
                    // An atomic map or list is a leaf; inside a list item the keys are not followed.
                    None => return node.as_object().is_some_and(serde_json::Map::is_empty),
                },
                Segment::Index(_) => return true,
            }
        }
        true
    })
}

#[cfg(test)]
mod tests;
