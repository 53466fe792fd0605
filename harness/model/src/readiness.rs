//! Whether an object is ready, by what it says of itself.

use crate::{Meta, ResourceKey, cel::Cel, suite::Subject};
use serde_json::Value;

/// What a subject still lacks to be ready for its current generation; `None` when it is ready.
pub fn not_ready(subject: &Subject, object: &Value) -> Option<String> {
    let ready = &subject.ready;
    let generation = object.generation();
    let observed = object["status"]["observedGeneration"].as_i64();
    if let (Some(observed), Some(generation)) = (observed, generation)
        && observed < generation
    {
        return Some(format!("status.observedGeneration is {observed}, generation is {generation}"));
    }
    if let Some(name) = &ready.condition {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let Some(condition) = conditions.into_iter().find(|c| c["type"] == **name) else {
            return Some(format!("it has no condition {name}"));
        };
        if condition["status"] != "True" {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            let (status, reason, message) = (text("status"), text("reason"), text("message"));
            return Some(format!("condition {name} is {status} ({reason}: {message})"));
        }
        if let (Some(at), Some(generation)) = (condition["observedGeneration"].as_i64(), generation)
            && at < generation
        {
            return Some(format!("condition {name} is of generation {at}, generation is {generation}"));
        }
    }
    if let Some(cel) = &ready.cel {
        return match Cel::compile(cel).and_then(|c| c.test(&[("object", object)])) {
            Ok(true) => None,
            Ok(false) => Some(format!("{cel:?} is false")),
            Err(e) => Some(e.to_string()),
        };
    }
    None
}

/// What a workload still lacks by its own status: built-in controllers have seen its current generation.
pub fn not_current(resource: &ResourceKey, object: &Value) -> Option<String> {
    let workload = matches!(
        (resource.group.as_str(), resource.resource.as_str()),
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets")
    );
    let (generation, observed) = (object.generation()?, object["status"]["observedGeneration"].as_i64().unwrap_or(0));
    (workload && observed < generation)
        .then(|| format!("status.observedGeneration is {observed}, generation is {generation}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn readiness_needs_the_condition_for_the_current_generation() {
        let subject: Subject = serde_json::from_value(
            json!({"apiVersion": "x.io/v1", "kind": "X", "ready": {"condition": "Ready", "cel": "object.spec.n == 1"}}),
        )
        .unwrap();
        let object = |status: &str, at: i64, observed: i64, n: i64| {
            json!({"metadata": {"generation": 2}, "spec": {"n": n}, "status": {"observedGeneration": observed,
                "conditions": [{"type": "Ready", "status": status, "observedGeneration": at}]}})
        };
        for (object, expected) in [
            (object("True", 2, 2, 1), None),
            (object("False", 2, 2, 1), Some("condition Ready is False")),
            (object("True", 1, 2, 1), Some("is of generation 1")),
            (object("True", 2, 1, 1), Some("status.observedGeneration is 1")),
            (object("True", 2, 2, 5), Some("is false")),
            (json!({"metadata": {"generation": 2}}), Some("it has no condition Ready")),
        ] {
            let got = not_ready(&subject, &object);
            assert_eq!(got.is_some(), expected.is_some(), "{got:?}");
            assert!(got.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
