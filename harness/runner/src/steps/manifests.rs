//! `apply`, `create`, `patch`, `update`, `delete`.

use super::play::{Failure, Play};
use crate::{Error, api, files};
use serde_json::{Value, json};
use spiritlevel_model::{
    Meta,
    operation::{Delete, Manifest, Operation, StepAction},
};
use std::time::Duration;
use tokio::time::Instant;

/// Between two tries.
const AGAIN: Duration = Duration::from_millis(250);

fn deadline(limit: Duration) -> Instant {
    Instant::now() + limit
}

/// Whether the API server could not ask a webhook, which says nothing about the object.
fn is_webhook_away(error: &Error) -> bool {
    let Error::Request { source, .. } = error else { return false };
    matches!(&**source, kube::Error::Api(s) if s.code == 500 && s.message.contains("failed calling webhook"))
}

impl Play<'_> {
    pub(super) async fn write(
        &self,
        action: &StepAction,
        operation: &Operation,
        limit: Duration,
    ) -> Result<(), Failure> {
        let (StepAction::Apply(manifest)
        | StepAction::Create(manifest)
        | StepAction::Patch(manifest)
        | StepAction::Update(manifest)) = action
        else {
            return Ok(());
        };
        for object in self.manifest(manifest)? {
            let patient = manifest.expect.is_empty();
            let sent = tokio::time::timeout_at(deadline(limit), self.sent(action, &object, patient, limit)).await;
            let what = || format!("{} {}", action.name(), api::describe(&object));
            let sent =
                sent.map_err(|_| Failure::Broken(format!("{} was not answered within {} s", what(), limit.as_secs())))?;
            if !manifest.expect.is_empty() {
                self.expected(manifest, &sent)?;
                continue;
            }
            let answer = sent?;
            self.until_seen(&answer).await;
            self.remember(&object);
            self.outputs(operation, &answer)?;
        }
        Ok(())
    }

    pub(super) fn manifest(&self, manifest: &Manifest) -> Result<Vec<Value>, Failure> {
        let mut objects = match (&manifest.file, &manifest.resource) {
            (Some(file), _) => files::manifests(&self.scenario_dir, file, &self.bindings())?,
            (None, Some(resource)) => vec![resource.clone()],
            (None, None) => return Err(Failure::Broken("neither `file` nor `resource` is given".into())),
        };
        for object in &mut objects {
            let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let served = self.objects(&self.around.lane.clients().user).kind(&api_version, &kind)?.namespaced;
            if served && object.namespace().is_none() {
                object["metadata"]["namespace"] = json!(self.namespace());
            }
        }
        Ok(objects)
    }

    /// A webhook of an operator that has just started, or that was killed, is not reached for a moment: who applies something
    /// then tries again, and so do we where no refusal is expected.
    async fn sent(&self, action: &StepAction, object: &Value, patient: bool, limit: Duration) -> Result<Value, Error> {
        // The last refusal says more than that the time was over.
        let until = deadline(limit.saturating_sub(AGAIN * 2));
        loop {
            match self.send(action, object).await {
                Err(e) if patient && is_webhook_away(&e) && Instant::now() < until => tokio::time::sleep(AGAIN).await,
                other => return other,
            }
        }
    }

    async fn send(&self, action: &StepAction, object: &Value) -> Result<Value, Error> {
        let client = &self.around.lane.clients().user;
        let objects = self.objects(client);
        match action {
            StepAction::Apply(_) => objects.apply(object).await,
            StepAction::Create(_) => objects.create(object).await,
            StepAction::Patch(_) => objects.patch(object).await,
            _ => objects.update(object).await,
        }
    }

    /// Compares an answer, refusals included, with what the scenario expects of it.
    fn expected(&self, manifest: &Manifest, sent: &Result<Value, Error>) -> Result<(), Failure> {
        let mut known = self.bindings();
        let answer = match sent {
            Ok(answer) => {
                known.insert("error".into(), Value::Null);
                answer.clone()
            }
            Err(e) => {
                known.insert("error".into(), json!(e.chain()));
                json!({})
            }
        };
        for expectation in &manifest.expect {
            Self::check(&expectation.check, &answer, &known)?;
        }
        Ok(())
    }

    pub(super) async fn delete(&self, delete: &Delete, limit: Duration) -> Result<(), Failure> {
        let client = &self.around.lane.clients().user;
        let objects = self.objects(client);
        let mut targets: Vec<(String, Value)> = Vec::new();
        if let Some(file) = &delete.file {
            for object in self.manifest(&Manifest { file: Some(file.clone()), ..Manifest::default() })? {
                let text = |key: &str| object[key].as_str().unwrap_or_default();
                targets.push((
                    objects.url(text("apiVersion"), text("kind"), object.namespace(), object.name())?,
                    object.clone(),
                ));
            }
        }
        if let Some(target) = &delete.target {
            // An unknown kind is a mistake, an object that is not there is not.
            objects.kind(&target.api_version, &target.kind)?;
            let found: Vec<Value> = {
                let live = self.stage.recorder.live();
                api::referred(&live.world, target, self.namespace()).into_iter().cloned().collect()
            };
            for object in found {
                let url = objects.url(&target.api_version, &target.kind, object.namespace(), object.name())?;
                targets.push((url, object));
            }
        }
        for (url, _) in &targets {
            objects.delete(url, delete.deletion_propagation_policy.as_deref()).await?;
        }
        if delete.wait == Some(false) {
            return Ok(());
        }
        for (_, object) in &targets {
            self.gone(object, limit).await?;
        }
        Ok(())
    }

    /// Until the witness saw an object go.
    async fn gone(&self, object: &Value, limit: Duration) -> Result<(), Failure> {
        let (kind, name) = (object["kind"].as_str().unwrap_or_default(), object.name().unwrap_or_default());
        let place = self
            .objects(&self.around.lane.clients().user)
            .kind(object["apiVersion"].as_str().unwrap_or_default(), kind)?
            .key();
        let uid = object.uid();
        let left = |live: &crate::recorder::Live| {
            let at = live.world.at(&place, object.namespace(), name);
            at.filter(|l| uid.is_none() || l.object.uid() == uid).map(|l| l.object.clone())
        };
        let gone = |live: &crate::recorder::Live| left(live).is_none().then_some(());
        if self.stage.recorder.wait_for(limit, gone).await.is_some() {
            return Ok(());
        }
        let rest = left(&self.stage.recorder.live());
        let finalizers = rest.as_ref().map(|o| o.finalizers().join(", ")).unwrap_or_default();
        let why = if finalizers.is_empty() { String::new() } else { format!("; finalizers: {finalizers}") };
        Err(Failure::Failed(format!("{} is still there after {} s{why}", api::describe(object), limit.as_secs())))
    }

    pub(super) fn outputs(&self, operation: &Operation, answer: &Value) -> Result<(), Failure> {
        for output in &operation.outputs {
            let value = self.evaluate(&output.value, answer)?;
            self.bind(&output.name, value);
        }
        Ok(())
    }
}
