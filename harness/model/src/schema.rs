//! The JSON Schema of the files that users write: for editors (`spiritlevel schema`), and what [`crate::load`] checks by.

use crate::{
    Period,
    expect::ExpectFile,
    operation::{Operation, Output, Step, StepAction},
    scenario::Scenario,
    suite::Suite,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The schemas of all kinds of files in one document, under `suite`, `scenario` and `expect`.
pub fn schema() -> Value {
    json!({
        "suite": of::<Suite>("spiritlevel.yaml: the operator under test"),
        "scenario": of::<Scenario>("a scenario file: one story"),
        "expect": of::<ExpectFile>("NAME.expect.yaml: what runs of a scenario are meant to get"),
    })
}

/// The schema of one kind of file.
pub(crate) fn of<T: JsonSchema>(title: &str) -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    schema.to_value()
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    /// A single operation, or a step of several. The order matters to [`crate::load`]: what fits neither is an operation.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = json!({"type": ["string", "null"]});
        let operations = json!({"type": "array", "items": generator.subschema_for::<Operation>()});
        let full = json!({
            "type": "object",
            "description": "Operations one after the other; the first failure ends the step.",
            "properties": {
                "name": described(text.clone(), "How reports speak of it."),
                "description": described(text, "Why."),
                "try": described(operations.clone(), "One after the other; the first failure ends the step."),
                "catch": described(operations.clone(), "After a failure."),
                "finally": described(operations, "In any case."),
            },
            "required": ["try"],
            "additionalProperties": false,
        });
        schemars::json_schema!({"oneOf": [full, generator.subschema_for::<Operation>()]})
    }
}

impl JsonSchema for Operation {
    fn schema_name() -> Cow<'static, str> {
        "Operation".into()
    }

    /// The settings of an operation beside exactly one action.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let timeout = json!({"anyOf": [generator.subschema_for::<Period>(), {"type": "null"}]});
        let outputs = json!({"type": "array", "items": generator.subschema_for::<Output>()});
        let actions = StepAction::json_schema(generator).to_value();
        let mut properties = Map::new();
        let mut one_of = Vec::new();
        for action in actions["oneOf"].as_array().into_iter().flatten() {
            for (name, schema) in action["properties"].as_object().into_iter().flatten() {
                let text = action["description"].as_str().unwrap_or_default();
                properties.insert(name.clone(), described(schema.clone(), text));
                one_of.push(json!({"required": [name]}));
            }
        }
        properties.insert("description".into(), described(json!({"type": ["string", "null"]}), "Why."));
        properties.insert("timeout".into(), described(timeout, "How long it may take; default: the suite's."));
        properties.insert(
            "continueOnError".into(),
            described(json!({"type": "boolean"}), "Whether the step goes on when it fails."),
        );
        properties.insert("outputs".into(), described(outputs, "Values to keep from the answer as bindings."));
        schemars::json_schema!({
            "type": "object",
            "description": "One operation with its settings.",
            "properties": properties,
            "additionalProperties": false,
            "oneOf": one_of,
        })
    }
}

fn described(mut schema: Value, text: &str) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.insert("description".into(), text.into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::schema;
    use serde_json::json;

    #[test]
    fn a_step_is_one_operation_or_a_step_of_several() {
        let schema = schema();
        let definitions = &schema["scenario"]["$defs"];
        let step = definitions["Step"]["oneOf"].as_array().unwrap();
        assert_eq!(step[0]["required"], json!(["try"]));
        assert_eq!(step[1]["$ref"], "#/$defs/Operation");
        let operation = &definitions["Operation"];
        for name in ["apply", "restartOperator", "timeout", "continueOnError"] {
            assert!(operation["properties"][name].is_object(), "{name}");
        }
        let choices = operation["oneOf"].as_array().unwrap();
        assert!(
            choices.contains(&json!({"required": ["duplicateReconcile"]}))
                && !choices.contains(&json!({"required": ["timeout"]}))
        );
        assert_eq!(operation["additionalProperties"], false);
        assert!(schema["suite"]["$defs"]["ProcessSpec"].is_object());
        assert!(schema["expect"]["additionalProperties"]["items"].is_object());
    }

    #[test]
    fn every_property_says_what_it_is_for() {
        let schema = schema();
        let mut silent = Vec::new();
        for kind in ["suite", "scenario", "expect"] {
            for (name, definition) in schema[kind]["$defs"].as_object().unwrap() {
                for (property, inner) in definition["properties"].as_object().into_iter().flatten() {
                    if inner["description"].as_str().unwrap_or_default().is_empty() {
                        silent.push(format!("{name}.{property}"));
                    }
                }
            }
        }
        assert_eq!(silent, [""; 0]);
    }
}
