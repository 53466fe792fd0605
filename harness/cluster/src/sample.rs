//! The smallest object that a CRD's schema seems to allow.
//!
//! Best effort: patterns and CEL rules are not solved. The API server is the judge, and a kind whose sample it refuses
//! is reported as not tried.

use serde_json::{Map, Value, json};

/// Nested deeper than this a schema is taken for recursive; CRD schemas cannot be.
const DEPTH: usize = 32;

/// What `schema` (OpenAPI v3, structural) requires, without `apiVersion`, `kind` and `metadata`.
pub(crate) fn minimal_object(schema: &Value) -> Map<String, Value> {
    let mut object = match minimal(schema, DEPTH) {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    for filled_in in ["apiVersion", "kind", "metadata", "status"] {
        object.remove(filled_in);
    }
    object
}

fn minimal(schema: &Value, depth: usize) -> Value {
    if let Some(given) = schema.get("default").or_else(|| schema.pointer("/enum/0")) {
        return given.clone();
    }
    if depth == 0 {
        return Value::Null;
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return json!(1);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") | None => object(schema, depth),
        Some("array") => array(schema, depth),
        Some("string") => json!(string(schema)),
        Some("integer" | "number") => number(schema),
        Some("boolean") => json!(false),
        Some(_) => Value::Null,
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut object = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in required(schema) {
        let property = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Null);
        // The server fills in a default by itself; ours would have to be merged with those below it.
        if property.get("default").is_none() {
            object.insert(name.to_owned(), minimal(property, depth - 1));
        }
    }
    let at_least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0) as usize;
    for (name, property) in properties.into_iter().flatten() {
        if object.len() >= at_least {
            break;
        }
        object.entry(name).or_insert_with(|| minimal(property, depth - 1));
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|additional| additional.is_object()) {
        for number in object.len()..at_least {
            object.insert(format!("a{number}"), minimal(additional, depth - 1));
        }
    }
    Value::Object(object)
}

/// Its own requirements and those of the first alternative it offers.
fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let first_alternative = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema.get(key)?.get(0));
    let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    std::iter::once(schema)
        .chain(first_alternative)
        .chain(all)
        .filter_map(|part| part.get("required")?.as_array())
        .flatten()
        .filter_map(Value::as_str)
}

fn array(schema: &Value, depth: usize) -> Value {
    let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
    let item = schema.get("items").map_or(Value::Null, |items| minimal(items, depth - 1));
    Value::Array(vec![item; count])
}

fn string(schema: &Value) -> String {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2020-01-01T00:00:00Z",
        Some("date") => "2020-01-01",
        Some("duration") => "1s",
        Some("ipv4" | "ip") => "127.0.0.1",
        Some("ipv6") => "::1",
        Some("cidr") => "127.0.0.0/8",
        Some("uri") => "https://example.com",
        Some("hostname") => "example.com",
        Some("email") => "a@example.com",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("byte") => "YQ==",
        _ => "a",
    };
    let at_least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0) as usize;
    format!("{known:a<at_least$}")
}

fn number(schema: &Value) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let excludes = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let lowest = bound("minimum").map(|minimum| if excludes("exclusiveMinimum") { minimum + 1.0 } else { minimum });
    let highest = bound("maximum").map(|maximum| if excludes("exclusiveMaximum") { maximum - 1.0 } else { maximum });
    let mut value = 1.0_f64.max(lowest.unwrap_or(1.0)).min(highest.unwrap_or(f64::MAX));
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        value = (value / step).ceil() * step;
    }
    if value.fract() == 0.0 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(schema: Value, expected: Expect) {
        expected.assert_eq(&Value::Object(minimal_object(&schema)).to_string());
    }

    #[test]
    fn what_is_required_is_there_and_nothing_else() {
        check(
            json!({
                "type": "object", "required": ["spec", "metadata"],
                "properties": {
                    "metadata": {"type": "object"},
                    "status": {"type": "object"},
                    "spec": {
                        "type": "object",
                        "required": ["replicas", "size", "mode", "members", "until", "defaulted", "port"],
                        "properties": {
                            "replicas": {"type": "integer", "minimum": 3},
                            "size": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                            "mode": {"type": "string", "enum": ["Fast", "Slow"]},
                            "members": {
                                "type": "array", "minItems": 1,
                                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 3}}},
                            },
                            "until": {"type": "string", "format": "date-time"},
                            "defaulted": {"type": "string", "default": "x"},
                            "port": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 9},
                            "optional": {"type": "string"},
                        },
                    },
                },
            }),
            expect![[
                r#"{"spec":{"replicas":3,"size":1,"mode":"Fast","members":[{"name":"aaa"}],"until":"2020-01-01T00:00:00Z","port":1}}"#
            ]],
        );
    }

    #[test]
    fn alternatives_and_counts() {
        check(
            json!({"type": "object", "required": ["spec"], "properties": {"spec": {
                "type": "object",
                "oneOf": [{"required": ["file"]}, {"required": ["url"]}],
                "properties": {"file": {"type": "string"}, "url": {"type": "string"}, "labels": {"type": "object"}},
            }}}),
            expect![[r#"{"spec":{"file":"a"}}"#]],
        );
        check(
            json!({"type": "object", "required": ["data"], "properties": {"data": {
                "type": "object", "minProperties": 2, "additionalProperties": {"type": "number", "maximum": 0.5},
            }}}),
            expect![[r#"{"data":{"a0":0.5,"a1":0.5}}"#]],
        );
    }

    #[test]
    fn a_schema_that_requires_nothing_needs_nothing() {
        check(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), expect!["{}"]);
    }
}
