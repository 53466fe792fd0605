//! `assert`, `error`, and the promises `never` and `always`.

use super::play::{Failure, Play};
use crate::{api, files, recorder::Live};
use serde_json::Value;
use spiritlevel_model::{
    Meta,
    assertion::{Tree, closest, output, render},
    bindings::Bindings,
    history::{Event, StepRecord, StepState, VersionType},
    operation::{Assertion, Operation, Ref},
    world::World,
};
use std::time::Duration;

/// Which kind of promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No version may match.
    Never,
    /// Every version must match.
    Always,
}

/// A tree that holds from a step to the end.
pub(super) struct Promise {
    path: String,
    kind: Kind,
    trees: Vec<(Ref, Tree)>,
    from: u64,
}

/// A read tree with the objects that it is about.
struct Wanted {
    target: Ref,
    tree: Tree,
}

impl Play<'_> {
    fn wanted(&self, assertion: &Assertion) -> Result<Vec<Wanted>, Failure> {
        let values = match (&assertion.file, &assertion.resource) {
            (Some(file), _) => files::manifests(&self.scenario_dir, file, &self.bindings())?,
            (None, Some(resource)) => vec![resource.clone()],
            (None, None) if assertion.cel.is_some() => Vec::new(),
            (None, None) => return Err(Failure::Broken("neither `file`, `resource` nor `cel` is given".into())),
        };
        values.iter().map(|value| self.read(value)).collect()
    }

    fn read(&self, value: &Value) -> Result<Wanted, Failure> {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let target = Ref {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: value.namespace().map(Into::into),
            name: value.name().map(Into::into),
            ..Ref::default()
        };
        self.objects(&self.around.lane.clients().user).kind(&target.api_version, &target.kind)?;
        Ok(Wanted { target, tree: tree(value)? })
    }

    pub(super) async fn assert(
        &self,
        assertion: &Assertion,
        operation: &Operation,
        limit: Duration,
    ) -> Result<(), Failure> {
        let (wanted, known) = (self.wanted(assertion)?, self.bindings());
        // Outputs are of the object that matched, of the last tree where there are several.
        let matched = |live: &Live| -> Option<Value> {
            let last = wanted.last()?;
            closest(&last.tree, api::referred(&live.world, &last.target, self.namespace()), &known).ok().cloned()
        };
        let lacking = |live: &Live| {
            let trees = wanted.iter().find_map(|w| lacking(w, &live.world, self.namespace(), &known));
            trees.or_else(|| assertion.cel.as_ref().and_then(|cel| unfulfilled(cel, &live.world)))
        };
        let holds = |live: &Live| lacking(live).is_none().then(|| matched(live).unwrap_or(Value::Null));
        if let Some(object) = self.stage.recorder.wait_for(limit, holds).await {
            return self.outputs(operation, &object);
        }
        let why = lacking(&self.stage.recorder.live()).unwrap_or_default();
        Err(Failure::Failed(format!("after {} s: {why}", limit.as_secs())))
    }

    pub(super) async fn absent(&self, assertion: &Assertion, limit: Duration) -> Result<(), Failure> {
        let (wanted, known) = (self.wanted(assertion)?, self.bindings());
        let there = |live: &Live| {
            let found = wanted.iter().find_map(|w| {
                let objects = api::referred(&live.world, &w.target, self.namespace());
                closest(&w.tree, objects, &known).ok().map(api::describe)
            });
            let cel = assertion.cel.as_ref().filter(|cel| unfulfilled(cel, &live.world).is_none());
            found.or_else(|| cel.map(|c| format!("{c:?} holds")))
        };
        if self.stage.recorder.wait_for(limit, |live| there(live).is_none().then_some(())).await.is_some() {
            return Ok(());
        }
        let what = there(&self.stage.recorder.live()).unwrap_or_default();
        Err(Failure::Failed(format!("after {} s there still is what must not be: {what}", limit.as_secs())))
    }

    pub(super) fn promise(&self, path: &str, assertion: &Assertion, kind: Kind) -> Result<(), Failure> {
        let trees = self.wanted(assertion)?.into_iter().map(|w| (w.target, w.tree)).collect();
        let from = self.stage.recorder.live().records.len() as u64;
        let promise = Promise { path: path.into(), kind, trees, from };
        self.promises.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(promise);
        Ok(())
    }

    /// Holds every promise against every version since; the first breach of each is a failed step.
    pub(crate) fn keep_promises(&self) {
        let promises = std::mem::take(&mut *self.promises.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let known = self.bindings();
        for promise in &promises {
            let breach = self.breach(promise, &known);
            if let Some(message) = breach {
                let operation = if promise.kind == Kind::Never { "never" } else { "always" };
                self.stage.recorder.record(Event::Step(StepRecord {
                    path: promise.path.clone(),
                    name: None,
                    operation: operation.into(),
                    state: StepState::Failed { message },
                    object: None,
                }));
            }
        }
    }

    fn breach(&self, promise: &Promise, known: &Bindings) -> Option<String> {
        let live = self.stage.recorder.live();
        let versions = live.records.iter().filter(|r| r.seq >= promise.from).filter_map(|r| match &r.event {
            Event::Version(v) if v.kind != VersionType::Deleted => Some((r, v)),
            _ => None,
        });
        for (record, version) in versions {
            for (target, tree) in &promise.trees {
                let mut one = World::new(live.world.kinds().to_vec());
                one.apply(version);
                let Some(object) = api::referred(&one, target, self.namespace()).first().copied().cloned() else {
                    continue;
                };
                let mismatches = tree.mismatches(&object, known);
                let broken = match promise.kind {
                    Kind::Never => mismatches.is_empty(),
                    Kind::Always => !mismatches.is_empty(),
                };
                if broken {
                    let revision = version.revision;
                    let what = match promise.kind {
                        Kind::Never => "matches what must never be".to_owned(),
                        Kind::Always => format!("is not what must always be: {}", render(&mismatches)),
                    };
                    return Some(format!(
                        "{} at revision {revision} (record {}) {what}",
                        api::describe(&object),
                        record.seq
                    ));
                }
            }
        }
        None
    }

    /// Holds a tree against an answer, with `$stdout` and the like bound.
    pub(super) fn check(check: &Value, answer: &Value, known: &Bindings) -> Result<(), Failure> {
        let mismatches = tree(check)?.mismatches(answer, known);
        if mismatches.is_empty() { Ok(()) } else { Err(Failure::Failed(render(&mismatches))) }
    }

    /// The value of an output.
    pub(super) fn evaluate(&self, value: &Value, answer: &Value) -> Result<Value, Failure> {
        output(value, answer, &self.bindings()).map_err(|e| Failure::Broken(e.to_string()))
    }
}

fn tree(value: &Value) -> Result<Tree, Failure> {
    Tree::read(value).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(|p| format!("{}: {}", p.path, p.error)).collect();
        Failure::Broken(all.join("; "))
    })
}

fn lacking(wanted: &Wanted, world: &World, namespace: &str, known: &Bindings) -> Option<String> {
    let objects = api::referred(world, &wanted.target, namespace);
    match closest(&wanted.tree, objects, known) {
        Ok(_) => None,
        Err(None) => {
            let name = wanted.target.name.as_deref().map(|n| format!(" {n}")).unwrap_or_default();
            Some(format!("there is no {}{name}", wanted.target.kind))
        }
        Err(Some((object, mismatches))) => Some(format!("{}: {}", api::describe(object), render(&mismatches))),
    }
}

/// Why a CEL expression over the world does not hold; `None` when it does.
fn unfulfilled(cel: &str, world: &World) -> Option<String> {
    use spiritlevel_model::cel::Cel;
    match Cel::compile(cel).and_then(|c| c.test_world(world)) {
        Ok(true) => None,
        Ok(false) => Some(format!("{cel:?} is false")),
        Err(e) => Some(e.to_string()),
    }
}
