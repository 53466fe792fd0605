//! JSON for CEL, as kube-apiserver hands objects to CEL.

use kube_cel::cel::Value as CelValue;
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// A JSON value for CEL. Whole numbers are `int` (`k8s.io/apiserver/pkg/cel/common/values.go`); the crate's own
/// conversion makes them `uint`, to which no literal such as `3` is equal.
pub fn cel_value(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(b) => CelValue::Bool(*b),
        Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => CelValue::Int(i),
            (None, Some(u)) => CelValue::UInt(u),
            (None, None) => CelValue::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => CelValue::String(Arc::new(s.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(cel_value).collect())),
        Value::Object(map) => {
            let map: HashMap<String, CelValue> = map.iter().map(|(k, v)| (k.clone(), cel_value(v))).collect();
            CelValue::Map(map.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cel::Cel;
    use serde_json::json;

    #[test]
    fn numbers_are_equal_to_literals() {
        let object = json!({"n": 1, "neg": -2, "f": 1.5, "l": [1, 2], "m": {"a.b/c": 3}, "big": u64::MAX});
        for text in [
            "object.n == 1",
            "object.n + 1 == 2",
            "object.neg == -2 && object.f == 1.5",
            "1 in object.l && object.l[1] == 2",
            "object.m['a.b/c'] == 3",
            "object.big > 5u",
            "!has(object.nothing)",
        ] {
            assert_eq!(Cel::compile(text).unwrap().test(&[("object", &object)]), Ok(true), "{text}");
        }
    }
}
