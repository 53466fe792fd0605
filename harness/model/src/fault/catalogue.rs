//! All faults with their meaning and how legal they are: what a page for readers is made of.

use super::{Fault, Legality};
use crate::schema;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One kind of fault, or a step that disturbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// As written in scenario files.
    pub name: String,
    /// What happens.
    pub meaning: String,
    /// How legal it can be; empty for steps, which do what a user, a node or a crash does.
    pub legality: BTreeSet<Legality>,
}

/// Operations that only prepare, ask or wait.
const HARMLESS: [&str; 25] = [
    "apply",
    "create",
    "patch",
    "update",
    "delete",
    "assert",
    "error",
    "never",
    "always",
    "script",
    "command",
    "sleep",
    "wait",
    "events",
    "podLogs",
    "describe",
    "get",
    "operatorLogs",
    "requestLog",
    "inject",
    "heal",
    "await",
    "startOperator",
    "snapshot",
    "exec",
];

/// What a `do` can be, in the order of their declaration.
pub fn actions() -> Vec<Kind> {
    let kind = |(name, meaning): (String, String)| {
        let legality = examples(&name).into_iter().filter_map(|example| {
            let fault: Fault = serde_json::from_value(example).ok()?;
            Some(fault.legality())
        });
        let stale = (name == "staleView").then_some(Legality::Never);
        Kind { legality: legality.chain(stale).collect(), name, meaning }
    };
    variants("Action").into_iter().map(kind).collect()
}

/// Steps that disturb.
pub fn steps() -> Vec<Kind> {
    let disturbs = variants("StepAction").into_iter().filter(|(name, _)| !HARMLESS.contains(&name.as_str()));
    disturbs.map(|(name, meaning)| Kind { name, meaning, legality: BTreeSet::new() }).collect()
}

/// Names and meanings of an enum's variants, as the schema of scenario files has them.
fn variants(of: &str) -> Vec<(String, String)> {
    let schema = schema::schema();
    let definitions = &schema["scenario"]["$defs"];
    let Some(one_of) = definitions[of]["oneOf"].as_array() else {
        // An operation's actions are its properties.
        let properties = definitions["Operation"]["properties"].as_object().cloned().unwrap_or_default();
        let settings = crate::operation::OPERATION_KEYS;
        let actions = properties.into_iter().filter(|(name, _)| !settings.contains(&name.as_str()));
        return actions.map(|(name, p)| (name, sentence(&p["description"]))).collect();
    };
    let name = |v: &Value| v["properties"].as_object().and_then(|p| p.keys().next().cloned());
    one_of.iter().filter_map(|v| Some((name(v)?, sentence(&v["description"])))).collect()
}

fn sentence(text: &Value) -> String {
    text.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The smallest faults of a kind; several where how legal it is depends on what it says.
fn examples(name: &str) -> Vec<Value> {
    let fault = |settings: Value, matches: Value| json!({"name": "f", "match": matches, "do": {name: settings}});
    let settings = match name {
        "reject" => {
            return vec![
                fault(json!({"status": 500}), json!({})),
                fault(json!({"status": 404}), json!({"verb": "get"})),
            ];
        }
        "delay" => json!({"by": "1s"}),
        "hold" | "holdWatchStart" => json!({"until": {"elapsed": "1s"}}),
        "pause" => json!({"for": "1s"}),
        "closeWatch" => json!({"as": "clean"}),
        "partition" => json!({"as": "refuse"}),
        "throttle" => json!({"perSecond": 1}),
        "discoveryFailure" => json!({"group": "db.example.com"}),
        "shortWatch" => json!({"timeout": "1s"}),
        "replayFromOlder" => json!({"versions": 1}),
        "staleView" => json!({"at": {"step": "s"}}),
        _ => json!({}),
    };
    vec![fault(settings, json!({}))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_meaning_and_a_legality_and_every_step_a_meaning() {
        let actions = actions();
        assert!(actions.len() >= 26, "{}", actions.len());
        for kind in &actions {
            assert!(!kind.meaning.is_empty() && !kind.legality.is_empty(), "{kind:?}");
            let fault: Fault = serde_json::from_value(examples(&kind.name).remove(0)).unwrap();
            assert_eq!(fault.action.name(), kind.name);
        }
        let names: Vec<String> = steps().into_iter().map(|k| k.name).collect();
        assert!(names.contains(&"killPod".to_owned()) && !names.contains(&"apply".to_owned()), "{names:?}");
        assert!(steps().iter().all(|k| !k.meaning.is_empty()));
    }
}
