use super::*;
use crate::ResourceKey;
use serde_json::json;

struct History {
    ledger: Ledger,
    seq: u64,
}

impl History {
    fn new() -> Self {
        Self { ledger: Ledger::default(), seq: 0 }
    }

    fn push(&mut self, event: Event) {
        self.ledger.record(&Record { seq: self.seq, at_ms: 0.0, event });
        self.seq += 1;
    }

    fn send(&mut self, id: u64, actor: &str, method: &str, url: &str, revision: Option<&str>) {
        self.push(Event::Request(Request {
            id: RequestId(id),
            actor: Actor(actor.into()),
            info: RequestInfo::classify(method, url),
            user_agent: None,
            content_type: None,
            body: None,
            uid: None,
            resource_version: revision.map(Into::into),
        }));
    }

    fn answer(&mut self, id: u64, status: u16, object: Option<(&str, Option<u64>)>) {
        let object = object.map(|(uid, revision)| AnswerObject {
            name: Some("x".into()),
            uid: Some(Uid(uid.into())),
            revision: revision.map(Revision),
            ..AnswerObject::default()
        });
        self.push(Event::Answer(Answer { id: RequestId(id), status: Some(status), reason: None, message: None, object }));
    }

    fn version(&mut self, kind: VersionType, uid: &str, revision: u64, metadata: &Value) -> usize {
        let mut object = json!({"metadata": {"name": "x", "namespace": "a", "uid": uid, "resourceVersion": revision.to_string()}});
        for (k, v) in metadata.as_object().into_iter().flatten() {
            object["metadata"][k] = v.clone();
        }
        let resource = ResourceKey::new("", "configmaps");
        self.push(Event::Version(Version { resource, kind, revision: Revision(revision), object }));
        self.ledger.versions().len() - 1
    }
}

const X: &str = "/api/v1/namespaces/a/configmaps/x";
const ALL: &str = "/api/v1/namespaces/a/configmaps";

#[test]
fn an_answer_names_its_version_even_when_the_witness_was_faster() {
    let mut h = History::new();
    h.send(1, "operator/0", "POST", ALL, None);
    let v = h.version(VersionType::Added, "u", 5, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::Nobody, "not answered yet, and a create's name is not in the URL");
    h.answer(1, 201, Some(("u", Some(5))));
    assert_eq!(h.ledger.claim(v), Claim::By(RequestId(1)));
}

#[test]
fn a_no_op_write_claims_nothing() {
    let mut h = History::new();
    h.send(1, "user", "PATCH", X, None);
    h.answer(1, 200, Some(("u", Some(5))));
    h.send(2, "operator/0", "PATCH", X, None);
    h.answer(2, 200, Some(("u", Some(5))));
    h.send(3, "operator/0", "PUT", X, Some("5"));
    h.answer(3, 200, Some(("u", Some(5))));
    let v = h.version(VersionType::Modified, "u", 5, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::By(RequestId(1)));
}

#[test]
fn overlapping_writes_with_one_answer_are_ambiguous_and_nobody_is_blamed() {
    let mut h = History::new();
    h.send(1, "user", "PATCH", X, None);
    h.send(2, "operator/0", "PATCH", X, None);
    h.answer(1, 200, Some(("u", Some(5))));
    h.answer(2, 200, Some(("u", Some(5))));
    let v = h.version(VersionType::Modified, "u", 5, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::Ambiguous(vec![RequestId(1), RequestId(2)]));
    assert!(h.ledger.author(v).is_none());
}

#[test]
fn a_deletion_is_joined_by_uid() {
    let mut h = History::new();
    h.send(1, "garbage-collector", "DELETE", X, None);
    h.answer(1, 200, Some(("u", None)));
    h.send(2, "operator/0", "DELETE", X, None);
    h.answer(2, 404, None);
    let v = h.version(VersionType::Deleted, "u", 6, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::By(RequestId(1)));
}

#[test]
fn removing_the_last_finalizer_makes_the_deletion_and_not_the_version_it_is_answered_with() {
    let terminating = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]});
    let mut h = History::new();
    h.send(1, "user", "DELETE", X, None);
    h.answer(1, 200, Some(("u", Some(5))));
    let marked = h.version(VersionType::Modified, "u", 5, &terminating);
    h.send(2, "operator/0", "PATCH", X, None);
    let object = AnswerObject { uid: Some(Uid("u".into())), revision: Some(Revision(5)), terminating: true, ..AnswerObject::default() };
    h.push(Event::Answer(Answer { id: RequestId(2), status: Some(200), reason: None, message: None, object: Some(object) }));
    let gone = h.version(VersionType::Deleted, "u", 6, &terminating);
    assert_eq!(h.ledger.claim(marked), Claim::By(RequestId(1)));
    assert_eq!(h.ledger.claim(gone), Claim::By(RequestId(2)));
}

#[test]
fn a_write_without_an_answer_claims_what_it_asked_for() {
    let mut h = History::new();
    h.send(1, "operator/0", "DELETE", X, None);
    let v = h.version(VersionType::Deleted, "u", 6, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::By(RequestId(1)));
}

#[test]
fn a_deletecollection_claims_many() {
    let mut h = History::new();
    h.send(1, "namespace-controller", "DELETE", ALL, None);
    h.answer(1, 200, None);
    let a = h.version(VersionType::Deleted, "u", 6, &json!({}));
    let b = h.version(VersionType::Deleted, "w", 7, &json!({"name": "y"}));
    assert_eq!((h.ledger.claim(a), h.ledger.claim(b)), (Claim::By(RequestId(1)), Claim::By(RequestId(1))));
}
