//! What a decision needs of a request's body, whatever its encoding. The body itself is passed on untouched.

use crate::protobuf;
use serde_json::Value;
use spiritlevel_model::{Meta, RequestInfo, Verb, fault::Bodies};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const APPLY_YAML: &str = "application/apply-patch+yaml";

/// Reads the body of a write. What cannot be read is left out: the API server will say what is wrong with it.
pub(crate) fn read(info: &RequestInfo, content_type: Option<&str>, body: &[u8]) -> Bodies {
    let media_type = content_type.and_then(|c| c.split(';').next()).map(str::trim).unwrap_or_default();
    let apply = media_type.starts_with("application/apply-patch+");
    if media_type == PROTOBUF {
        return protobuf::read(body).unwrap_or_default();
    }
    let json = match serde_json::from_slice::<Value>(body) {
        Ok(value) => Some(value),
        Err(_) if media_type == APPLY_YAML || media_type == "application/yaml" => {
            std::str::from_utf8(body).ok().and_then(|text| serde_saphyr::from_str(text).ok())
        }
        Err(_) => None,
    };
    let Some(json) = json else { return Bodies { apply, ..Bodies::default() } };
    let text = |v: &Value| v.as_str().filter(|s| !s.is_empty()).map(String::from);
    if matches!(info.verb, Verb::Delete | Verb::DeleteCollection) {
        let preconditions = &json["preconditions"];
        let (uid, resource_version) = (text(&preconditions["uid"]), text(&preconditions["resourceVersion"]));
        return Bodies {
            uid: uid.map(spiritlevel_model::Uid),
            resource_version,
            json: Some(json),
            ..Bodies::default()
        };
    }
    let meta = &json["metadata"];
    let labels = meta["labels"].as_object().into_iter().flatten();
    Bodies {
        name: text(&meta["name"]),
        generate_name: text(&meta["generateName"]),
        labels: labels.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.into()))).collect(),
        resource_version: text(&meta["resourceVersion"]).or_else(|| tested_version(&json)),
        uid: json.uid(),
        apply,
        json: Some(json),
        ..Bodies::default()
    }
}

/// The resourceVersion that a JSON patch carries: in a `test` or as a written value, both of which the API server checks.
fn tested_version(patch: &Value) -> Option<String> {
    let operations = patch.as_array()?.iter();
    operations
        .filter(|o| {
            o["path"] == "/metadata/resourceVersion" && matches!(o["op"].as_str(), Some("test" | "replace" | "add"))
        })
        .find_map(|o| o["value"].as_str().map(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, content_type: &str, body: &str) -> Bodies {
        read(&RequestInfo::classify(method, "/api/v1/namespaces/a/configmaps/x"), Some(content_type), body.as_bytes())
    }

    #[test]
    fn bodies_are_read_in_every_encoding_that_clients_send() {
        let json = of(
            "PUT",
            "application/json; charset=utf-8",
            r#"{"metadata":{"name":"x","resourceVersion":"5","uid":"u","labels":{"a":"b"}}}"#,
        );
        assert_eq!((json.name.as_deref(), json.resource_version.as_deref()), (Some("x"), Some("5")));
        assert_eq!((json.labels["a"].as_str(), json.apply), ("b", false));

        let yaml = of("PATCH", APPLY_YAML, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n");
        assert_eq!((yaml.name.as_deref(), yaml.apply), (Some("x"), true));
        assert_eq!(yaml.json.unwrap()["kind"], "ConfigMap");

        let apply = of("PATCH", APPLY_YAML, r#"{"metadata":{"name":"x"}}"#);
        assert_eq!((apply.name.as_deref(), apply.apply), (Some("x"), true));

        let patch = of(
            "PATCH",
            "application/json-patch+json",
            r#"[{"op":"test","path":"/metadata/resourceVersion","value":"7"}]"#,
        );
        assert_eq!(patch.resource_version.as_deref(), Some("7"));

        let blind = of("PATCH", "application/merge-patch+json", r#"{"metadata":{"labels":{"a":null}}}"#);
        assert_eq!((blind.resource_version, blind.labels.is_empty()), (None, true));

        assert_eq!(of("PUT", "application/json", "{"), Bodies::default());
        assert_eq!(of("PUT", PROTOBUF, "{}"), Bodies::default());
    }

    #[test]
    fn a_delete_names_what_it_means() {
        let careful = of(
            "DELETE",
            "application/json",
            r#"{"kind":"DeleteOptions","preconditions":{"uid":"u","resourceVersion":"5"}}"#,
        );
        assert_eq!(careful.resource_version.as_deref(), Some("5"));
        assert_eq!(careful.uid.unwrap().0, "u");
        assert_eq!(of("DELETE", "application/json", ""), Bodies::default());
        let plain = of("DELETE", "application/json", r#"{"propagationPolicy":"Foreground"}"#);
        assert_eq!((plain.uid, plain.resource_version), (None, None));
    }
}
