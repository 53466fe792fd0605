//! When a subject is ready: one definition for whoever waits for it and for whoever judges it.

use serde_json::Value;
use spiritlevel_model::{Meta, cel::Cel, suite::Ready};

/// What is missing until the object is ready for its current generation, one line each; empty when it is ready.
///
/// Without any setting an object is ready when it has a condition `Ready` or `Available` that is True.
pub fn missing(ready: &Ready, object: &Value) -> Vec<String> {
    let mut missing = Vec::new();
    let generation = object.generation();
    if let (Some(seen), Some(current)) = (object["status"]["observedGeneration"].as_i64(), generation)
        && seen != current
    {
        missing.push(format!("status.observedGeneration is {seen}, the generation is {current}"));
    }
    let guessed = ready.condition.is_none() && ready.cel.is_none() && !ready.exists;
    if let Some(name) = &ready.condition {
        missing.extend(lacks_condition(object, name));
    } else if guessed && lacks_condition(object, "Available").is_some() {
        missing.extend(lacks_condition(object, "Ready"));
    }
    if let Some(cel) = &ready.cel {
        match Cel::compile(cel).and_then(|c| c.test(&[("object", object)])) {
            Ok(true) => {}
            Ok(false) => missing.push(format!("{cel} is false")),
            Err(e) => missing.push(e.to_string()),
        }
    }
    missing
}

/// What an object of a workload kind lacks to be current by its own observedGeneration; none for other kinds.
pub fn lagging(object: &Value) -> Option<String> {
    let kind = object["kind"].as_str()?;
    let group = object["apiVersion"].as_str()?.split_once('/').map_or("", |(g, _)| g);
    if group != "apps" || !matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") {
        return None;
    }
    let generation = object.generation()?;
    let observed = object["status"]["observedGeneration"].as_i64().unwrap_or(0);
    (observed < generation).then(|| format!("its controller has observed generation {observed} of {generation}"))
}

fn lacks_condition(object: &Value, name: &str) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array();
    let Some(condition) = conditions.into_iter().flatten().find(|c| c["type"] == name) else {
        return Some(format!("it has no condition {name}"));
    };
    let text = |key: &str| condition[key].as_str().unwrap_or_default();
    if condition["status"] != "True" {
        let why = [text("reason"), text("message")].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(": ");
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        return Some(format!("condition {name} is {}{why}", text("status")));
    }
    let (seen, current) = (condition["observedGeneration"].as_i64()?, object.generation()?);
    (seen != current).then(|| format!("condition {name} is True for generation {seen}, the generation is {current}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(status: Value) -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Sample", "metadata": {"name": "a", "generation": 2}, "status": status})
    }

    #[test]
    fn a_subject_is_ready_for_its_current_generation_only() {
        let condition = Ready { condition: Some("Ready".into()), ..Ready::default() };
        let cel = Ready { cel: Some("object.status.phase == 'Up'".into()), ..Ready::default() };
        let exists = Ready { exists: true, ..Ready::default() };
        let ready = |g: i64| json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": g}]});
        for (setting, status, expected) in [
            (&condition, ready(2), ""),
            (&condition, ready(1), "condition Ready is True for generation 1, the generation is 2"),
            (&condition, json!({"conditions": [{"type": "Ready", "status": "True"}]}), ""),
            (&condition, json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}),
             "status.observedGeneration is 1, the generation is 2"),
            (&condition, json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Waiting", "message": "m"}]}),
             "condition Ready is False (Waiting: m)"),
            (&condition, json!({}), "it has no condition Ready"),
            (&cel, json!({"phase": "Up"}), ""),
            (&cel, json!({"phase": "Down"}), "object.status.phase == 'Up' is false"),
            (&exists, json!({}), ""),
            (&Ready::default(), json!({"conditions": [{"type": "Available", "status": "True"}]}), ""),
            (&Ready::default(), json!({}), "it has no condition Ready"),
        ] {
            assert_eq!(missing(setting, &object(status.clone())).join("; "), expected, "{status}");
        }
        assert!(missing(&cel, &object(json!({})))[0].contains("has()"));
    }

    #[test]
    fn workloads_are_current_by_their_own_observed_generation() {
        let mut set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a", "generation": 2}});
        assert_eq!(lagging(&set).as_deref(), Some("its controller has observed generation 0 of 2"));
        set["status"] = json!({"observedGeneration": 2});
        assert_eq!(lagging(&set), None);
        assert_eq!(lagging(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generation": 2}})), None);
    }
}
