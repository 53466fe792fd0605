//! The order of steps, and what a failure means.

use crate::{Error, api::Objects, arrange::Surroundings, recorder::Live, stage::Stage};
use kube::Client;
use serde_json::Value;
use spiritlevel_model::{
    Meta, ObjectRef,
    bindings::Bindings,
    fault::Moment,
    history::{Event, KindInfo, StepRecord, StepState},
    operation::{Operation, Step, StepAction},
};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How an operation failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What the scenario says did not hold: a fail.
    Failed(String),
    /// A wait was in vain: inconclusive.
    TimedOut(String),
    /// It could not be done: an error.
    Broken(String),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Broken(e.chain())
    }
}

/// One performance of a scenario's steps.
pub(crate) struct Play<'a> {
    pub(super) stage: &'a Arc<Stage>,
    pub(super) around: &'a Surroundings<'a>,
    pub(super) scenario_dir: PathBuf,
    pub(super) kinds: Vec<KindInfo>,
    bindings: Mutex<Bindings>,
    applied: Mutex<Vec<Value>>,
    pub(super) promises: Mutex<Vec<super::assertion::Promise>>,
}

impl<'a> Play<'a> {
    /// Nothing is played yet.
    pub(crate) fn new(stage: &'a Arc<Stage>, around: &'a Surroundings<'a>, scenario_dir: PathBuf) -> Self {
        Self {
            stage,
            around,
            scenario_dir,
            kinds: around.lane.hub().kinds(),
            bindings: Mutex::new(around.bindings.clone()),
            applied: Mutex::default(),
            promises: Mutex::default(),
        }
    }

    /// The objects that steps applied or created, as they were sent, in order.
    pub(crate) fn applied(&self) -> Vec<Value> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Plays every step; the first failure ends it, after that step's `catch` and `finally`.
    pub(crate) async fn all(&self) -> Result<(), Failure> {
        for (index, step) in self.stage.plan.scenario.steps.iter().enumerate() {
            self.step(index, step).await?;
            let moment = step.name.clone().map(Moment::Step).filter(|m| self.stage.is_moment(m));
            if let Some(moment) = moment {
                let kept = self.stage.keep_moment(&self.around.lane.clients().arrange, &moment).await;
                kept.map_err(|e| Failure::Broken(format!("the moment could not be kept: {e}")))?;
            }
        }
        Ok(())
    }

    async fn step(&self, index: usize, step: &Step) -> Result<(), Failure> {
        let place = |list: &str, i: usize| format!("steps[{index}].{list}[{i}]");
        let mut outcome = Ok(());
        for (i, operation) in step.attempt.iter().enumerate() {
            let result = self.operation(&place("try", i), step.name.as_deref(), operation).await;
            if result.is_err() && !operation.continue_on_error {
                outcome = result;
                break;
            }
        }
        if outcome.is_err() {
            for (i, operation) in step.catch.iter().enumerate() {
                // What is gathered after a failure does not change it.
                let _ = self.operation(&place("catch", i), step.name.as_deref(), operation).await;
            }
        }
        for (i, operation) in step.finally.iter().enumerate() {
            let result = self.operation(&place("finally", i), step.name.as_deref(), operation).await;
            if outcome.is_ok() {
                outcome = result;
            }
        }
        outcome
    }

    async fn operation(&self, path: &str, name: Option<&str>, operation: &Operation) -> Result<(), Failure> {
        let record = |state: StepState, object: Option<ObjectRef>| {
            self.stage.tell_event(Event::Step(StepRecord {
                path: path.into(),
                name: name.map(Into::into),
                operation: operation.action.name(),
                state,
                object,
            }));
        };
        // Outputs of earlier steps are known by now.
        let resolved = serde_json::to_value(&operation.action)
            .map_err(|e| Failure::Broken(e.to_string()))
            .and_then(|v| Ok(crate::files::resolved(&v, &self.bindings(), path)?))
            .and_then(|v| serde_json::from_value::<StepAction>(v).map_err(|e| Failure::Broken(format!("{path}: {e}"))));
        record(StepState::Started, resolved.as_ref().ok().and_then(|a| self.target(a)));
        let result = match &resolved {
            Ok(action) => self.act(path, operation, action).await,
            Err(Failure::Failed(m) | Failure::TimedOut(m) | Failure::Broken(m)) => Err(Failure::Broken(m.clone())),
        };
        let state = match &result {
            Ok(()) => StepState::Done,
            Err(Failure::Failed(message)) => StepState::Failed { message: message.clone() },
            Err(Failure::TimedOut(message)) => StepState::TimedOut { message: message.clone() },
            Err(Failure::Broken(message)) => StepState::Broken { message: message.clone() },
        };
        if operation.continue_on_error && result.is_err() {
            let Err(Failure::Failed(m) | Failure::TimedOut(m) | Failure::Broken(m)) = &result else { return result };
            self.stage.recorder.record(Event::Note { text: format!("{path} failed, and the scenario goes on: {m}") });
            record(StepState::Done, None);
        } else {
            record(state, resolved.as_ref().ok().and_then(|a| self.target(a)));
        }
        result
    }

    async fn act(&self, path: &str, operation: &Operation, action: &StepAction) -> Result<(), Failure> {
        let defaults = &self.stage.plan.suite.defaults.timeouts;
        let limit = |default: spiritlevel_model::Period| operation.timeout.unwrap_or(default).0;
        match action {
            StepAction::Apply(_) | StepAction::Create(_) | StepAction::Patch(_) | StepAction::Update(_) => {
                self.write(action, operation, limit(defaults.apply)).await
            }
            StepAction::Delete(delete) => self.delete(delete, limit(defaults.delete)).await,
            StepAction::Assert(assertion) => self.assert(assertion, operation, limit(defaults.assert)).await,
            StepAction::Error(assertion) => self.absent(assertion, limit(defaults.error)).await,
            StepAction::Never(assertion) => self.promise(path, assertion, super::assertion::Kind::Never),
            StepAction::Always(assertion) => self.promise(path, assertion, super::assertion::Kind::Always),
            StepAction::Script(script) => self.script(script, operation, limit(defaults.exec)).await,
            StepAction::Command(command) => self.command(command, operation, limit(defaults.exec)).await,
            StepAction::Sleep(sleep) => {
                tokio::time::sleep(sleep.duration.0).await;
                Ok(())
            }
            StepAction::Wait(wait) => self.wait(wait, limit(defaults.assert)).await,
            StepAction::Await(wanted) => {
                let limit = wanted.timeout.or(operation.timeout).unwrap_or(defaults.assert).0;
                self.happens(wanted, limit).await
            }
            StepAction::Inject(inject) => {
                if self.stage.inject(&inject.fault) {
                    Ok(())
                } else {
                    Err(Failure::Broken(format!("there is no fault {}", inject.fault)))
                }
            }
            StepAction::Heal(heal) => {
                match &heal.fault {
                    Some(fault) => self.stage.heal(fault),
                    None => self.stage.heal_all(),
                }
                Ok(())
            }
            StepAction::RestartOperator(restart) => self.restart(restart, path).await,
            StepAction::StopOperator(stop) => self.stop(stop, path).await,
            StepAction::StartOperator(start) => self.start(start, path).await,
            StepAction::DuplicateReconcile(duplicate) => self.duplicate(duplicate, path).await,
            StepAction::KillPod(pod) => self.kill_pod(&pod.target).await,
            StepAction::SetPod(set) => self.set_pod(set).await,
            StepAction::Drift(drift) => self.drift(drift, path).await,
            StepAction::Node(fault) => self.node(fault, path).await,
            StepAction::Events(gather) => self.events(gather).await,
            StepAction::PodLogs(gather) => self.pod_logs(gather).await,
            StepAction::Describe(gather) | StepAction::Get(gather) => self.show(gather),
            StepAction::OperatorLogs(tail) => {
                self.operator_logs(*tail);
                Ok(())
            }
            StepAction::RequestLog(tail) => {
                self.request_log(*tail);
                Ok(())
            }
        }
    }

    fn target(&self, action: &StepAction) -> Option<ObjectRef> {
        let target = match action {
            StepAction::Delete(d) => d.target.as_ref()?,
            StepAction::KillPod(p) => &p.target,
            StepAction::SetPod(p) => &p.target,
            StepAction::Drift(d) => &d.target,
            StepAction::DuplicateReconcile(d) => &d.target,
            StepAction::Apply(m) | StepAction::Create(m) | StepAction::Patch(m) | StepAction::Update(m) => {
                return ObjectRef::of(m.resource.as_ref()?);
            }
            StepAction::Assert(a) | StepAction::Error(a) | StepAction::Never(a) | StepAction::Always(a) => {
                let mut object = ObjectRef::of(a.resource.as_ref()?)?;
                let same = |k: &&KindInfo| k.kind == object.kind && k.api_version() == object.api_version;
                if self.kinds.iter().find(same).is_some_and(|k| k.namespaced) {
                    object.namespace.get_or_insert_with(|| self.namespace().into());
                }
                return Some(object);
            }
            _ => return None,
        };
        Some(ObjectRef {
            api_version: target.api_version.clone(),
            kind: target.kind.clone(),
            namespace: Some(target.namespace.clone().unwrap_or_else(|| self.namespace().into())),
            name: target.name.clone()?,
            uid: None,
        })
    }

    pub(super) fn namespace(&self) -> &str {
        &self.stage.plan.namespace
    }

    pub(super) fn objects<'b>(&'b self, client: &'b Client) -> Objects<'b> {
        Objects { client, kinds: &self.kinds, namespace: self.namespace() }
    }

    pub(super) fn bindings(&self) -> Bindings {
        self.bindings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn bind(&self, name: &str, value: Value) {
        self.bindings.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), value);
    }

    pub(super) fn remember(&self, object: &Value) {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).push(object.clone());
    }

    pub(super) fn note(&self, text: String) {
        self.stage.recorder.record(Event::Note { text });
    }

    /// Until the witness has seen what an answer showed: later looks at the world must not be older.
    pub(super) async fn until_seen(&self, answer: &Value) {
        let (Some(uid), Some(revision)) = (answer.uid(), answer.revision()) else { return };
        let seen = |live: &Live| live.seen.get(&uid.0).is_some_and(|at| *at >= revision.0).then_some(());
        if self.stage.recorder.wait_for(Duration::from_secs(10), seen).await.is_none() {
            self.note(format!(
                "the witness had not seen revision {revision} of {} within 10 s",
                crate::api::describe(answer)
            ));
        }
    }
}
