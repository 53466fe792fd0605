//! What an answer tells of the object that the request was about.

use serde_json::Value;
use spiritlevel_model::{Meta, Uid, history::AnswerObject};

/// What could be read of an answer's body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AnswerBody {
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) object: Option<AnswerObject>,
}

impl AnswerBody {
    /// From JSON; anything else tells nothing.
    pub(crate) fn read(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return Self::default() };
        let text = |v: &Value| v.as_str().filter(|s| !s.is_empty()).map(String::from);
        if value["kind"] == "Status" && value["apiVersion"] == "v1" {
            let details = &value["details"];
            let named = AnswerObject {
                name: text(&details["name"]),
                uid: text(&details["uid"]).map(Uid),
                ..AnswerObject::default()
            };
            return Self {
                reason: text(&value["reason"]),
                message: text(&value["message"]),
                object: (named != AnswerObject::default()).then_some(named),
            };
        }
        // A Table of one object carries it in its row; a list of several says nothing of one.
        let object = if value["kind"] == "Table" { &value["rows"][0]["object"] } else { &value };
        let object = AnswerObject {
            name: object.name().map(Into::into),
            uid: object.uid(),
            revision: object.revision(),
            terminating: object.is_terminating(),
            finalizers: !object.finalizers().is_empty(),
        };
        // A list, as deletecollection answers, has a revision but is no object.
        let named = object.name.is_some() || object.uid.is_some();
        Self { object: named.then_some(object), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use spiritlevel_model::Revision;

    #[test]
    fn objects_and_statuses_name_the_object() {
        let object = AnswerBody::read(
            json!({"kind": "Pod", "metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "finalizers": ["x"],
                   "deletionTimestamp": "2026-01-01T00:00:00Z"}})
            .to_string()
            .as_bytes(),
        );
        assert_eq!(
            object.object,
            Some(AnswerObject {
                name: Some("p".into()),
                uid: Some(Uid("u".into())),
                revision: Some(Revision(7)),
                terminating: true,
                finalizers: true
            })
        );
        let deleted = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"name": "p", "kind": "pods", "uid": "u"}});
        let deleted = AnswerBody::read(deleted.to_string().as_bytes());
        assert_eq!(deleted.object.and_then(|o| o.uid), Some(Uid("u".into())));
        let refused = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "message": "old", "code": 410});
        let refused = AnswerBody::read(refused.to_string().as_bytes());
        assert_eq!(
            (refused.reason.as_deref(), refused.message.as_deref(), refused.object),
            (Some("Expired"), Some("old"), None)
        );
        let list = json!({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": []});
        assert_eq!(AnswerBody::read(list.to_string().as_bytes()).object, None);
        assert_eq!(AnswerBody::read(b"k8s\0\x0a"), AnswerBody::default());
    }
}
