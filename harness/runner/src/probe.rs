//! The second round: the subjects are touched (or patched), and a second subject is made from the first manifest. Several
//! real bugs show only there.

use crate::{
    Error,
    api::{Objects, describe},
    harness_writes::merge_patch,
    lane::Lane,
    stage::Stage,
};
use serde_json::{Value, json};
use spiritlevel_model::{
    Meta,
    history::{Event, StepRecord, StepState},
    operation::TOUCH,
    scenario::{OwnProbe, Probe},
};

/// What the second subject is called after its first.
pub(crate) const SECOND: &str = "second";

/// Touches every subject and makes a second one. Returns whether anything was done.
pub(crate) async fn probe(stage: &Stage, lane: &Lane, applied: &[Value]) -> Result<bool, Error> {
    let own = match &stage.plan.scenario.probe {
        Probe::Switch(false) => return Ok(false),
        Probe::Switch(true) => OwnProbe::default(),
        Probe::Own(own) => own.clone(),
    };
    let subject = &stage.plan.suite.subject;
    let kinds = lane.hub().kinds();
    let objects = Objects { client: &lane.clients().probe, kinds: &kinds, namespace: &stage.plan.namespace };
    let subjects: Vec<Value> = {
        let live = stage.recorder.live();
        let all = live.world.of_kind(&subject.api_version, &subject.kind).map(|l| l.object.clone());
        all.filter(|o| !o.is_terminating() && o.namespace() == Some(&stage.plan.namespace)).collect()
    };
    for object in &subjects {
        let url = objects.url(&subject.api_version, &subject.kind, object.namespace(), object.name())?;
        let patch = own.patch.clone().unwrap_or_else(
            || json!({"metadata": {"annotations": {TOUCH: format!("probe-{}", stage.writes.next_touch())}}}),
        );
        tell(stage, StepState::Started, object);
        merge_patch(objects.client, &url, &patch)
            .await
            .map_err(Error::request(format!("probe {}", describe(object))))?;
        tell(stage, StepState::Done, object);
    }
    let first = applied.iter().find(|o| o["kind"] == *subject.kind && o["apiVersion"] == *subject.api_version);
    let second = first.filter(|_| own.second != Some(false)).and_then(second);
    if let Some(second) = &second {
        tell(stage, StepState::Started, second);
        objects.create(second).await?;
        tell(stage, StepState::Done, second);
    }
    Ok(!subjects.is_empty() || second.is_some())
}

fn tell(stage: &Stage, state: StepState, object: &Value) {
    stage.recorder.record(Event::Step(StepRecord {
        path: "probe".into(),
        name: None,
        operation: "probe".into(),
        state,
        object: spiritlevel_model::ObjectRef::of(object),
    }));
}

/// The manifest under another name. Values of the spec that are the name, or begin with it and a dash, follow: they name
/// things that belong to the subject, and two subjects must not share them.
fn second(first: &Value) -> Option<Value> {
    let name = first.name()?;
    let next = format!("{name}-{SECOND}");
    let mut second = first.clone();
    second["metadata"]["name"] = json!(next);
    if let Some(spec) = second.get_mut("spec") {
        rename(spec, name, &next);
    }
    Some(second)
}

fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::String(text) => {
            if let Some(rest) = text.strip_prefix(from).filter(|r| r.starts_with('-')) {
                *text = format!("{to}{rest}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|v| rename(v, from, to)),
        Value::Object(map) => map.values_mut().for_each(|v| rename(v, from, to)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_spec_names_after_the_subject_follows_its_name() {
        let first =
            json!({"metadata": {"name": "web"}, "spec": {"secretName": "web-tls", "a": ["web", "webs"], "n": 1}});
        let expected = json!({"metadata": {"name": "web-second"}, "spec": {"secretName": "web-second-tls", "a": ["web-second", "webs"], "n": 1}});
        assert_eq!(second(&first), Some(expected));
    }
}
