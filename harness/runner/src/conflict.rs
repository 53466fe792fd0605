//! A real 409: the object is changed under a writer's hands right before its request, and changed back once it was answered.
//!
//! Where the request carries a resourceVersion any change will do: an annotation. An unforced server-side apply without one
//! fails only over a field that another manager holds with another value, so such a field of its own is taken over.

use crate::{
    harness_writes::{HarnessWrites, merge_patch, object_url, patch_as},
    recorder::Recorder,
};
use kube::Client;
use serde_json::{Map, Value, json};
use spiritlevel_model::{Meta, fault::Exchange, history::Event, operation::TOUCH};

/// The field manager that takes a field over.
const MANAGER: &str = "spiritlevel-conflict";
/// Fields that are tried: most objects take the first.
const MOST_TRIES: usize = 6;

/// What a touch changed, and how to change it back.
#[derive(Debug)]
pub(crate) struct Touch {
    url: String,
    /// A merge patch.
    undo: Value,
    /// Whose fields they were, where one was taken over.
    managers: Option<Value>,
}

impl Touch {
    /// Touches the object that a request is about. A failure is a note: the fault then has no effect, and the verdict says so.
    pub(crate) async fn make(
        writes: &HarnessWrites,
        recorder: &Recorder,
        exchange: &Exchange<'_>,
        fault: &str,
    ) -> Option<Self> {
        let url = object_url(exchange.info, exchange.name())?;
        let touched = if exchange.bodies.resource_version.is_some() {
            annotate(writes, recorder, &url, fault).await
        } else {
            take_over(writes, recorder, &url, exchange.bodies.json.as_ref()?, fault).await
        };
        let why = match touched {
            Ok(Some(touch)) => return Some(touch),
            Ok(None) => "no field of its own can be changed".to_owned(),
            Err(e) => e.to_string(),
        };
        recorder.record(Event::Note { text: format!("fault {fault}: {url} could not be touched: {why}") });
        None
    }

    /// Changes it back. What went on meanwhile stays: an object that is gone needs no undoing.
    pub(crate) async fn undo(self, client: &Client, recorder: &Recorder, fault: &str) {
        if let Err(e) = self.change_back(client).await
            && !is_gone(&e)
        {
            recorder.record(Event::Note { text: format!("fault {fault}: {} keeps its touch: {e}", self.url) });
        }
    }

    async fn change_back(&self, client: &Client) -> Result<(), kube::Error> {
        let restored = merge_patch(client, &self.url, &self.undo).await?;
        let Some(managers) = &self.managers else { return Ok(()) };
        // Only after the value is back: this write changes no field, and so makes nobody a manager.
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": restored["metadata"]["resourceVersion"]},
            {"op": "replace", "path": "/metadata/managedFields", "value": managers},
        ]);
        patch_as(client, "application/json-patch+json", &self.url, &patch).await?;
        Ok(())
    }
}

async fn annotate(
    writes: &HarnessWrites,
    recorder: &Recorder,
    url: &str,
    fault: &str,
) -> Result<Option<Touch>, kube::Error> {
    let undo = json!({"metadata": {"annotations": {TOUCH: Value::Null}}});
    writes.undo_record(recorder, &json!({"fault": fault, "url": url, "undo": undo}));
    let patch = json!({"metadata": {"annotations": {TOUCH: writes.next_touch().to_string()}}});
    merge_patch(writes.conflict(), url, &patch).await?;
    Ok(Some(Touch { url: url.into(), undo, managers: None }))
}

async fn take_over(
    writes: &HarnessWrites,
    recorder: &Recorder,
    url: &str,
    applied: &Value,
    fault: &str,
) -> Result<Option<Touch>, kube::Error> {
    let client = writes.conflict();
    let get = http::Request::get(url).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let live: Value = client.request(get).await?;
    let managers = live["metadata"]["managedFields"].clone();
    for path in candidates(applied).into_iter().take(MOST_TRIES) {
        let Some(other) = other_value(at(applied, &path)) else { continue };
        let undo = nested(&path, at(&live, &path).clone());
        writes.undo_record(recorder, &json!({"fault": fault, "url": url, "undo": undo, "managedFields": managers}));
        let mut apply = nested(&path, other);
        apply["apiVersion"] = applied["apiVersion"].clone();
        apply["kind"] = applied["kind"].clone();
        apply["metadata"]["name"] = json!(live.name());
        // Without it an object that has just gone would be made.
        apply["metadata"]["uid"] = live["metadata"]["uid"].clone();
        let forced = format!("{url}?fieldManager={MANAGER}&force=true");
        match patch_as(client, "application/apply-patch+yaml", &forced, &apply).await {
            Ok(_) => return Ok(Some(Touch { url: url.into(), undo, managers: Some(managers) })),
            // Not a value that this field can have, or not one that may change.
            Err(kube::Error::Api(status)) if status.code == 422 => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Fields that the request applies, the most harmless first: nobody acts on an annotation, while a number may be a number of
/// replicas. Lists are left out.
fn candidates(applied: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (key, value) in applied.as_object().into_iter().flatten() {
        // An undo record is plain text.
        let secret = applied["kind"] == "Secret";
        if !secret && !matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            leaves(value, &mut vec![key.clone()], &mut found);
        }
    }
    for key in ["annotations", "labels"] {
        leaves(&applied["metadata"][key], &mut vec!["metadata".into(), key.into()], &mut found);
    }
    let rank = |path: &Vec<String>| match (path[0].as_str(), path.get(1).map(String::as_str), at(applied, path)) {
        ("metadata", Some("annotations"), _) => 0,
        ("data" | "stringData", _, _) => 1,
        (_, _, Value::String(_)) if path[0] != "metadata" => 2,
        (_, _, Value::Bool(_)) => 3,
        ("metadata", _, _) => 4,
        _ => 5,
    };
    found.sort_by_key(rank);
    found
}

fn leaves(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                path.push(key.clone());
                leaves(inner, path, found);
                path.pop();
            }
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) => found.push(path.clone()),
        Value::Array(_) | Value::Null => {}
    }
}

fn at<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(object, |value, key| &value[key])
}

fn nested(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, key| Value::Object(Map::from_iter([(key.clone(), inner)])))
}

/// Another value of the same type.
fn other_value(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(json!(format!("{text}x"))),
        Value::Bool(is) => Some(json!(!is)),
        Value::Number(n) => n.as_i64().map(|n| json!(n.saturating_add(1))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_harmless_field_is_tried_first() {
        let applied = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "x", "labels": {"a": "b"}, "annotations": {"note": "n"}},
            "spec": {"replicas": 3, "paused": true, "strategy": {"type": "Recreate"}, "template": {"spec": {"containers": [{}]}}},
        });
        let paths: Vec<String> = candidates(&applied).iter().map(|p| p.join(".")).collect();
        let expected =
            ["metadata.annotations.note", "spec.strategy.type", "spec.paused", "metadata.labels.a", "spec.replicas"];
        assert_eq!(paths, expected);
        assert!(candidates(&json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}})).is_empty());
        assert!(candidates(&json!({"kind": "Secret", "data": {"password": "x"}})).is_empty());
    }

    #[test]
    fn a_field_is_addressed_from_the_root() {
        let path = ["spec".to_owned(), "a".to_owned()];
        assert_eq!(nested(&path, json!(1)), json!({"spec": {"a": 1}}));
        assert_eq!(at(&json!({"spec": {"a": 2}}), &path), 2);
        // A merge patch removes what was not there.
        assert_eq!(nested(&path, at(&json!({}), &path).clone()), json!({"spec": {"a": null}}));
        assert_eq!(other_value(&json!("a")), Some(json!("ax")));
        assert_eq!(other_value(&json!(3)), Some(json!(4)));
        assert_eq!(other_value(&json!([])), None);
    }
}
