//! Is an object level with what we want of it?
//!
//! Not equality: the live object has defaults, addresses and other people's fields. What we want is a *part* of it, and
//! only a missing or different part is a reason to write. Comparing the whole is the commonest endless loop there is.

use serde_json::Value;

/// Fields that the API server replaces as a whole (`x-kubernetes-map-type: atomic`): one key too many is a difference.
const ATOMIC: [&str; 1] = ["selector"];

/// Whether everything in `wanted` is in `live`.
pub fn is_level(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, wanted)| match live.get(key) {
            Some(live) if ATOMIC.contains(&key.as_str()) => wanted == live,
            Some(live) => is_level(wanted, live),
            // An absent field and an empty one say the same.
            None => wanted.is_null() || wanted.as_object().is_some_and(serde_json::Map::is_empty),
        }),
        (Value::Array(wanted), Value::Array(live)) => match merge_key(wanted) {
            Some(key) => wanted
                .iter()
                .all(|item| live.iter().find(|other| other[key] == item[key]).is_some_and(|live| is_level(item, live))),
            None => wanted == live,
        },
        _ => wanted == live,
    }
}

/// The key by which the API server merges such a list: items of others beside ours are no difference.
fn merge_key(items: &[Value]) -> Option<&'static str> {
    ["name", "uid"].into_iter().find(|key| !items.is_empty() && items.iter().all(|item| item.get(key).is_some()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_level;

    fn check(wanted: Value, live: Value, level: bool) {
        assert_eq!(is_level(&wanted, &live), level, "wanted {wanted}, live {live}");
    }

    #[test]
    fn defaults_and_fields_of_others_are_no_difference() {
        check(json!({"spec": {"a": 1}}), json!({"spec": {"a": 1, "defaulted": true}, "status": {}}), true);
        check(
            json!({"ports": [{"name": "pg", "port": 5432}]}),
            json!({"ports": [{"name": "mesh", "port": 1}, {"name": "pg", "port": 5432, "protocol": "TCP"}]}),
            true,
        );
        check(json!({"emptyDir": {}}), json!({}), true);
    }

    #[test]
    fn a_missing_or_changed_part_is_a_difference() {
        check(json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}), false);
        check(json!({"spec": {"a": 1}}), json!({}), false);
        check(json!({"args": ["-c", "x"]}), json!({"args": ["-c"]}), false);
        check(json!({"ports": [{"name": "pg", "port": 5432}]}), json!({"ports": []}), false);
        check(json!({"owners": [{"uid": "1"}]}), json!({"owners": [{"uid": "2"}]}), false);
    }

    #[test]
    fn an_atomic_map_is_compared_as_a_whole() {
        check(json!({"selector": {"a": "b"}}), json!({"selector": {"a": "b", "c": "d"}}), false);
        check(json!({"labels": {"a": "b"}}), json!({"labels": {"a": "b", "c": "d"}}), true);
    }
}
