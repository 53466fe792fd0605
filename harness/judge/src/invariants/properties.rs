//! `always`, `never`, `eventually`: the author's own properties in CEL.
//!
//! `object` is the version at hand, `old` the one before (null when there is none), `objects(apiVersion, kind)` the live
//! objects at that moment. `always` and `never` are evaluated on every version from the first step to the end;
//! `eventually` once, at the end of the settling.

use crate::{case::Case, draft::Draft, wording};
use kube_cel::cel::{Context, ResolveResult, Value as CelValue};
use serde_json::Value;
use spiritlevel_model::{
    Meta, ObjectRef, ResourceKey, Uid,
    attribution::Seen,
    cel::{Cel, CelError},
    cel_value,
    finding::Finding,
    history::{Phase, VersionType},
    invariants::{KindSelector, Property},
    world::Place,
};
use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// What a property says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// It holds for every version.
    Always,
    /// It holds for no version.
    Never,
}

/// `always` or `never`: the first violation of each property.
pub(crate) fn judge(case: &Case<'_>, says: Says, properties: &[Property]) -> Vec<Finding> {
    properties.iter().filter_map(|p| on_every_version(case, says, p)).collect()
}

fn name_of(says: Says) -> &'static str {
    match says {
        Says::Always => "always",
        Says::Never => "never",
    }
}

fn on_every_version(case: &Case<'_>, says: Says, property: &Property) -> Option<Finding> {
    let begin = case.phases.begin(Phase::Steps).map_or(0, |(seq, _)| seq);
    let until = case.phases.begin(Phase::End).map_or(u64::MAX, |(seq, _)| seq);
    let cel = match Cel::compile(&property.cel) {
        Ok(cel) => cel,
        Err(e) => return Some(no_answer(case, name_of(says), property, &e, (0, 0.0))),
    };
    let live = LiveObjects::new(case);
    let mut context = live.context();
    let about_world = property.cel.contains("objects(");
    let (mut first, mut count) = (None, 0_usize);
    for seen in case.versions() {
        live.apply(seen);
        let gone = seen.version.kind == VersionType::Deleted && !about_world;
        let selected = property.matches.as_ref().is_none_or(|m| is_of(case, &seen.version.resource, m));
        // Until the last of them, the world that a restore brought back is not complete.
        let incomplete = about_world && seen.epoch > 0 && seen.version.kind == VersionType::Found;
        if seen.seq < begin || seen.seq >= until || gone || incomplete || !selected {
            continue;
        }
        let old = seen.before.map_or(&Value::Null, |i| &case.version(i).version.object);
        bind(&mut context, &seen.version.object, old);
        match cel.test_in(&context) {
            Ok(holds) if holds == (says == Says::Always) => {}
            Ok(_) => {
                count += 1;
                first = first.or(Some(seen));
            }
            Err(e) => return Some(no_answer(case, name_of(says), property, &e, (seen.seq, seen.at_ms))),
        }
    }
    let seen = first?;
    let object = ObjectRef::of(&seen.version.object);
    let (what, how) = match says {
        Says::Always => ("does not hold", "is false"),
        Says::Never => ("must never hold", "is true"),
    };
    let name = object.as_ref().map(ToString::to_string).unwrap_or_default();
    let message =
        format!("{name}: {:?} {what} at {}, version {}", property.name, wording::at(seen.at_ms), seen.version.revision);
    let cause = format!("{} {how}", property.cel);
    let author = case.versions().iter().position(|v| v.seq == seen.seq).and_then(|i| case.author(i));
    let mut draft = Draft::new(name_of(says), message, cause, (seen.seq, seen.at_ms)).request(author.map(|w| w.id));
    if let Some(object) = &object {
        draft = draft.object(object);
    }
    draft = draft.maybe("written", author.map(|w| format!("by {}", wording::by(&w.actor, seen.at_ms, w.id))));
    Some(draft.detail("versions", format!("{count} in all")).finish(case))
}

/// `eventually`: at the end of the settling, for every live object of the kind, or once for the world.
pub(crate) fn eventually(case: &Case<'_>, properties: &[Property]) -> Vec<Finding> {
    let Some(end) = case.phases.end_of(Phase::Settle) else { return Vec::new() };
    let world = case.world_before(end.0);
    let live = LiveObjects::new(case);
    case.versions().iter().take_while(|v| v.seq < end.0).for_each(|v| live.apply(v));
    let mut context = live.context();
    let mut findings = Vec::new();
    for property in properties {
        let cel = match Cel::compile(&property.cel) {
            Ok(cel) => cel,
            Err(e) => {
                findings.push(no_answer(case, "eventually", property, &e, end));
                continue;
            }
        };
        let selected =
            |m: &KindSelector| world.live().filter(|l| is_of(case, &l.resource, m)).map(|l| &l.object).collect();
        let objects: Vec<&Value> = property.matches.as_ref().map_or_else(|| vec![&Value::Null], selected);
        for object in objects {
            bind(&mut context, object, &Value::Null);
            match cel.test_in(&context) {
                Ok(true) => {}
                Ok(false) => findings.push(unfulfilled(case, property, ObjectRef::of(object).as_ref(), end)),
                Err(e) => findings.push(no_answer(case, "eventually", property, &e, end)),
            }
        }
    }
    findings
}

fn unfulfilled(case: &Case<'_>, property: &Property, object: Option<&ObjectRef>, end: (u64, f64)) -> Finding {
    let name = object.map_or_else(|| "the world".to_owned(), ToString::to_string);
    let message = format!("{name}: {:?} does not hold at the end of the settling", property.name);
    let draft = Draft::new("eventually", message, format!("{} is false", property.cel), end);
    match object {
        Some(object) => draft.object(object).finish(case),
        None => draft.finish(case),
    }
}

/// An expression without an answer is a violation of its own: a property that cannot be told does not hold.
fn no_answer(case: &Case<'_>, invariant: &str, property: &Property, error: &CelError, at: (u64, f64)) -> Finding {
    let message = format!("{:?} cannot be told", property.name);
    let cause = error.to_string().lines().next().unwrap_or_default().to_owned();
    Draft::new(invariant, message, cause, at).finish(case)
}

fn is_of(case: &Case<'_>, resource: &ResourceKey, selector: &KindSelector) -> bool {
    let group = selector.api_version.split_once('/').map_or("", |(group, _)| group);
    case.kind_of(resource).is_some_and(|k| k.group == group && k.kind == selector.kind)
}

fn bind(context: &mut Context<'_>, object: &Value, old: &Value) {
    for (name, value) in [("object", object), ("old", old)] {
        context.add_variable_from_value(name, cel_value(value));
    }
}

/// The live objects as CEL values, each converted once, shared with the function `objects`.
struct LiveObjects {
    epoch: Cell<u32>,
    kinds: BTreeMap<(String, String), ResourceKey>,
    live: Arc<Mutex<BTreeMap<Place, (Uid, CelValue)>>>,
}

impl LiveObjects {
    fn new(case: &Case<'_>) -> Self {
        let kinds = case.kinds().iter().map(|k| ((k.group.clone(), k.kind.clone()), k.key()));
        Self { epoch: Cell::new(0), kinds: kinds.collect(), live: Arc::default() }
    }

    fn apply(&self, seen: &Seen) {
        let object = &seen.version.object;
        let (Some(name), Some(uid)) = (object.name(), object.uid()) else { return };
        let place = (seen.version.resource.clone(), object.namespace().map(Into::into), name.to_owned());
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if self.epoch.replace(seen.epoch) < seen.epoch {
            live.clear();
        }
        if seen.version.kind == VersionType::Deleted {
            if live.get(&place).is_some_and(|(of, _)| of == &uid) {
                live.remove(&place);
            }
        } else {
            live.insert(place, (uid, cel_value(object)));
        }
    }

    /// A context that knows `objects(apiVersion, kind)`; an unknown kind has no objects.
    fn context<'a>(&self) -> Context<'a> {
        let (kinds, live) = (self.kinds.clone(), Arc::clone(&self.live));
        let mut context = Cel::context();
        context.add_function("objects", move |api_version: Arc<String>, kind: Arc<String>| -> ResolveResult {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let key = kinds.get(&(group.to_owned(), kind.to_string()));
            let live = live.lock().unwrap_or_else(PoisonError::into_inner);
            let of_kind = live.iter().filter(|((r, ..), _)| Some(r) == key).map(|(_, (_, v))| v.clone());
            Ok(CelValue::List(Arc::new(of_kind.collect())))
        });
        context
    }
}

#[cfg(test)]
mod tests;
