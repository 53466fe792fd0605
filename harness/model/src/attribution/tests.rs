use super::*;
use crate::{
    ResourceKey,
    fault::Legality,
    history::{AnswerObject, Epoch, Reply, ReplyOutcome},
};
use serde_json::json;

struct History {
    ledger: Ledger,
    seq: u64,
    kind: &'static str,
}

impl History {
    fn new() -> Self {
        Self { ledger: Ledger::default(), seq: 0, kind: "configmaps" }
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
            speech: None,
        }));
    }

    fn answer(&mut self, id: u64, status: u16, object: Option<(&str, Option<u64>)>) {
        let object = object.map(|(uid, revision)| AnswerObject {
            name: Some("x".into()),
            uid: Some(Uid(uid.into())),
            revision: revision.map(Revision),
            ..AnswerObject::default()
        });
        self.push(Event::Answer(Answer {
            id: RequestId(id),
            status: Some(status),
            reason: None,
            message: None,
            object,
        }));
    }

    fn version(&mut self, kind: VersionType, uid: &str, revision: u64, metadata: &Value) -> usize {
        let mut object =
            json!({"metadata": {"name": "x", "namespace": "a", "uid": uid, "resourceVersion": revision.to_string()}});
        for (k, v) in metadata.as_object().into_iter().flatten() {
            object["metadata"][k] = v.clone();
        }
        let resource =
            ResourceKey::new("", if object["metadata"]["namespace"].is_null() { "namespaces" } else { self.kind });
        self.push(Event::Version(Version { resource, kind, revision: Revision(revision), object }));
        self.ledger.versions().len() - 1
    }
}

fn epoch(before: u64, now: u64) -> Event {
    let (before, now) = (Revision(before), Revision(now));
    Event::Epoch(Epoch { step: "steps[0].try[0]".into(), before, now, legality: Legality::Never })
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
    let object = AnswerObject {
        uid: Some(Uid("u".into())),
        revision: Some(Revision(5)),
        terminating: true,
        ..AnswerObject::default()
    };
    h.push(Event::Answer(Answer {
        id: RequestId(2),
        status: Some(200),
        reason: None,
        message: None,
        object: Some(object),
    }));
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

#[test]
fn a_write_that_changed_nothing_does_not_claim_what_the_api_server_made() {
    let mut h = History::new();
    let v = h.version(VersionType::Modified, "u", 5, &json!({}));
    h.send(1, "operator/0", "PATCH", X, None);
    h.answer(1, 200, Some(("u", Some(5))));
    assert_eq!(h.ledger.claim(v), Claim::Nobody);
}

#[test]
fn a_write_that_names_its_base_beats_one_that_may_have_changed_nothing() {
    let mut h = History::new();
    h.send(1, "user", "PUT", X, Some("4"));
    h.send(2, "operator/0", "PATCH", X, None);
    h.answer(2, 200, Some(("u", Some(5))));
    h.answer(1, 200, Some(("u", Some(5))));
    let v = h.version(VersionType::Modified, "u", 5, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::By(RequestId(1)));
}

#[test]
fn an_answer_does_not_prove_the_version_while_an_equal_write_has_none() {
    let mut h = History::new();
    h.send(1, "user", "PATCH", X, None);
    h.send(2, "operator/0", "PATCH", X, None);
    h.answer(2, 200, Some(("u", Some(5))));
    let v = h.version(VersionType::Modified, "u", 5, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::Ambiguous(vec![RequestId(2), RequestId(1)]));
}

#[test]
fn what_a_fault_kept_back_claims_nothing() {
    let mut h = History::new();
    h.send(1, "operator/0", "DELETE", X, None);
    h.push(Event::Reply(Reply { id: RequestId(1), outcome: ReplyOutcome::Forged(500), fault: Some("f".into()) }));
    let v = h.version(VersionType::Deleted, "u", 6, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::Nobody);
}

#[test]
fn a_dry_deletion_claims_nothing() {
    let mut h = History::new();
    h.push(Event::Request(Request {
        id: RequestId(1),
        actor: Actor("operator/0".into()),
        info: RequestInfo::classify("DELETE", X),
        user_agent: None,
        content_type: None,
        body: Some(json!({"dryRun": ["All"]})),
        uid: None,
        resource_version: None,
        speech: None,
    }));
    h.answer(1, 200, Some(("u", None)));
    h.send(2, "user", "DELETE", X, None);
    h.answer(2, 200, Some(("u", None)));
    let v = h.version(VersionType::Deleted, "u", 6, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::By(RequestId(2)));
}

#[test]
fn a_status_write_on_a_terminating_object_is_not_its_end() {
    let terminating = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let mut h = History::new();
    h.send(1, "operator/0", "PATCH", X, None);
    let object = AnswerObject {
        uid: Some(Uid("u".into())),
        revision: Some(Revision(5)),
        terminating: true,
        ..AnswerObject::default()
    };
    h.push(Event::Answer(Answer {
        id: RequestId(1),
        status: Some(200),
        reason: None,
        message: None,
        object: Some(object),
    }));
    let changed = h.version(VersionType::Modified, "u", 5, &terminating);
    h.send(2, "kubelet-stub", "DELETE", X, None);
    h.answer(2, 200, Some(("u", None)));
    let gone = h.version(VersionType::Deleted, "u", 6, &terminating);
    assert_eq!(h.ledger.claim(changed), Claim::By(RequestId(1)));
    assert_eq!(h.ledger.claim(gone), Claim::By(RequestId(2)));
}

#[test]
fn a_deletecollection_claims_nothing_that_was_made_after_its_answer() {
    let mut h = History::new();
    h.send(1, "operator/0", "DELETE", ALL, None);
    h.answer(1, 200, None);
    h.send(2, "user", "POST", ALL, None);
    h.answer(2, 201, Some(("u", Some(5))));
    h.version(VersionType::Added, "u", 5, &json!({}));
    h.send(3, "user", "DELETE", ALL, None);
    h.answer(3, 200, None);
    let gone = h.version(VersionType::Deleted, "u", 6, &json!({}));
    assert_eq!(h.ledger.claim(gone), Claim::By(RequestId(3)));
}

#[test]
fn a_pending_write_claims_only_what_follows_the_version_that_it_names() {
    let mut h = History::new();
    h.version(VersionType::Added, "u", 4, &json!({}));
    h.send(1, "operator/0", "PUT", X, Some("3"));
    let v = h.version(VersionType::Modified, "u", 5, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::Nobody);
    h.send(2, "operator/0", "PUT", X, Some("5"));
    let v = h.version(VersionType::Modified, "u", 6, &json!({}));
    assert_eq!(h.ledger.claim(v), Claim::By(RequestId(2)));
}

#[test]
fn a_deletion_without_grace_makes_two_versions_and_names_the_second() {
    let grace = |seconds| json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": seconds});
    let mut h = History::new();
    h.send(1, "user", "DELETE", X, None);
    h.answer(1, 200, Some(("u", Some(5))));
    let marked = h.version(VersionType::Modified, "u", 5, &grace(30));
    h.send(2, "kubelet-stub", "DELETE", X, None);
    h.answer(2, 200, Some(("u", Some(7))));
    let shortened = h.version(VersionType::Modified, "u", 6, &grace(0));
    let gone = h.version(VersionType::Deleted, "u", 7, &grace(0));
    let claims = [marked, shortened, gone].map(|v| h.ledger.claim(v));
    assert_eq!(claims, [1, 2, 2].map(|id| Claim::By(RequestId(id))));
}

#[test]
fn a_namespace_ends_by_the_finalizer_of_its_spec() {
    let terminating = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "namespace": null});
    let object = || {
        let object = AnswerObject {
            uid: Some(Uid("u".into())),
            revision: Some(Revision(5)),
            terminating: true,
            ..AnswerObject::default()
        };
        Some(object)
    };
    let mut h = History::new();
    let mut versions = Vec::new();
    for (id, sub, base, kind) in [(1, "status", "4", VersionType::Modified), (2, "finalize", "5", VersionType::Deleted)]
    {
        h.send(id, "namespace-controller", "PUT", &format!("/api/v1/namespaces/x/{sub}"), Some(base));
        h.push(Event::Answer(Answer {
            id: RequestId(id),
            status: Some(200),
            reason: None,
            message: None,
            object: object(),
        }));
        let v = h.version(kind, "u", 4 + id, &terminating);
        versions.push(v);
    }
    assert_eq!(h.ledger.claim(versions[0]), Claim::By(RequestId(1)));
    assert_eq!(h.ledger.claim(versions[1]), Claim::By(RequestId(2)));
}

#[test]
fn an_eviction_ends_a_pod_only_if_nobody_else_has_to() {
    for (grace, ended_by) in [(0, 1), (30, 2)] {
        let marked = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace});
        let mut h = History { kind: "pods", ..History::new() };
        let first = h.version(VersionType::Added, "u", 4, &json!({}));
        h.send(1, "operator/0", "POST", "/api/v1/namespaces/a/pods/x/eviction", None);
        h.answer(1, 201, None);
        let mark = h.version(VersionType::Modified, "u", 5, &marked);
        h.send(2, "kubelet-stub", "DELETE", "/api/v1/namespaces/a/pods/x", None);
        let gone = h.version(VersionType::Deleted, "u", 6, &marked);
        assert_eq!(h.ledger.claim(first), Claim::Nobody);
        assert_eq!(h.ledger.claim(mark), Claim::By(RequestId(1)));
        assert_eq!(h.ledger.claim(gone), Claim::By(RequestId(ended_by)), "grace of {grace} s");
    }
}

#[test]
fn no_revision_is_compared_over_a_restore() {
    let mut h = History::new();
    h.send(1, "user", "PATCH", X, None);
    h.answer(1, 200, Some(("u", Some(22))));
    let old = h.version(VersionType::Modified, "u", 22, &json!({}));
    h.version(VersionType::Modified, "u", 50, &json!({}));
    h.push(epoch(50, 20));
    let found = h.version(VersionType::Found, "u", 20, &json!({}));
    // The client's version is ahead of the server's, and so it is refused.
    h.send(2, "operator/0", "PUT", X, Some("50"));
    h.answer(2, 409, None);
    h.send(3, "operator/0", "PATCH", X, None);
    h.answer(3, 200, Some(("u", Some(21))));
    let first = h.version(VersionType::Modified, "u", 21, &json!({}));
    // Both revision and uid were there before.
    h.send(4, "operator/0", "PUT", X, Some("21"));
    h.answer(4, 200, Some(("u", Some(22))));
    let second = h.version(VersionType::Modified, "u", 22, &json!({}));
    let claims = [old, found, first, second].map(|v| h.ledger.claim(v));
    let by = |id| Claim::By(RequestId(id));
    assert_eq!(claims, [by(1), Claim::Nobody, by(3), by(4)]);
    assert_eq!(h.ledger.versions()[found].before, None, "what was before is another past");
    assert!(h.ledger.versions()[old].moment() < h.ledger.versions()[first].moment());
}
