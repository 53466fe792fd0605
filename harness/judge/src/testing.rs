//! Histories written by hand, for the tests of the invariants: a small world whose writes are recorded as proxy and
//! witness record them.

use crate::{Judgement, judge};
use serde_json::{Value, json};
use spiritlevel_model::{
    Actor, Meta, RequestId, RequestInfo, ResourceKey, Revision, StreamId, Uid,
    fault::{At, FrameType, Legality},
    finding::Finding,
    history::{
        Answer, AnswerObject, ClosedBy, Epoch, Event, Fate, FaultEvent, FaultRecord, FrameRecord, Header, KindInfo,
        Phase, Process, ProcessEvent, Record, Reply, ReplyOutcome, Request, Settled, StepRecord, StepState,
        StreamClosed, StreamOpened, Version, VersionType,
    },
    plan::Plan,
};
use std::{collections::BTreeMap, fmt::Write as _};

/// The operator's only replica.
pub(crate) const OPERATOR: &str = "operator/0";
/// Kubernetes' garbage collector.
pub(crate) const COLLECTOR: &str = "garbage-collector";
/// The scenario.
pub(crate) const USER: &str = "user";

/// A run being written.
pub(crate) struct Run {
    pub(crate) plan: Plan,
    pub(crate) history: Vec<Record>,
    at_ms: f64,
    revision: u64,
    requests: u64,
    streams: u64,
    uids: u64,
    live: BTreeMap<Uid, Value>,
}

/// Resource, apiVersion, kind, namespaced.
const KINDS: [(&str, &str, &str, bool); 8] = [
    ("samples", "example.com/v1", "Sample", true),
    ("configmaps", "v1", "ConfigMap", true),
    ("secrets", "v1", "Secret", true),
    ("pods", "v1", "Pod", true),
    ("persistentvolumeclaims", "v1", "PersistentVolumeClaim", true),
    ("statefulsets", "apps/v1", "StatefulSet", true),
    ("leases", "coordination.k8s.io/v1", "Lease", true),
    ("clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole", false),
];

fn group_of(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// An object of one of the known kinds in namespace `ns`, with further fields merged in.
pub(crate) fn object(kind: &str, name: &str, more: Value) -> Value {
    let (_, api_version, _, namespaced) =
        KINDS.iter().find(|k| k.2 == kind).copied().expect("a kind of the test world");
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if namespaced {
        object["metadata"]["namespace"] = json!("ns");
    }
    merge(&mut object, &more);
    object
}

/// An ownerReference to a Sample.
pub(crate) fn owned_by(name: &str, uid: &Uid) -> Value {
    let owner =
        json!({"apiVersion": "example.com/v1", "kind": "Sample", "name": name, "uid": uid.0, "controller": true});
    json!({"metadata": {"ownerReferences": [owner]}})
}

/// The status of a Sample that is ready.
pub(crate) fn ready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

fn merge(into: &mut Value, patch: &Value) {
    let (Some(map), Some(patch)) = (into.as_object_mut(), patch.as_object()) else { return };
    for (key, value) in patch {
        match (map.get_mut(key), value) {
            (_, Value::Null) => {
                map.remove(key);
            }
            (Some(inner), Value::Object(_)) if inner.is_object() => merge(inner, value),
            _ => {
                map.insert(key.clone(), value.clone());
            }
        }
    }
}

// === impl Run ===

impl Run {
    /// Arranged, the operator up and watching Samples, the steps begin.
    pub(crate) fn new() -> Self {
        Self::with(json!([]), json!({}))
    }

    /// With faults, and with settings of invariants.
    pub(crate) fn with(faults: Value, more: Value) -> Self {
        let mut plan = json!({
            "schemaVersion": 1, "suiteName": "suite", "scenarioName": "scenario", "seed": 42, "suiteDir": ".", "scenarioDir": ".",
            "namespace": "ns", "operatorNamespace": "ns-operator", "bindings": {},
            "suite": {
                "operator": {"process": {"command": ["op"]}},
                "subject": {"apiVersion": "example.com/v1", "kind": "Sample", "ready": {"condition": "Ready"}},
            },
            "process": {"command": ["op"]},
            "scenario": {"faults": faults, "steps": []},
            "invariants": {
                "converges": "10s", "quiet": {"window": "2s", "maxEffectiveWrites": 0, "maxNoOpWritesPerMinute": 60},
                "noOrphans": [], "legalOwners": true, "deletes": "90s", "heals": "90s", "processHealth": "90s",
                "always": [], "never": [], "eventually": [],
            },
        });
        merge(&mut plan, &more);
        let plan = serde_json::from_value(plan).expect("a plan");
        let (at_ms, live) = (-1000.0, BTreeMap::new());
        let mut run = Self { plan, history: Vec::new(), at_ms, revision: 100, requests: 0, streams: 0, uids: 0, live };
        run.event(Event::Header(Header {
            schema_version: 1,
            started: "2026-01-01T00:00:00Z".into(),
            harness: "0".into(),
            kubernetes: "1.36".into(),
        }));
        let kind = |(resource, api_version, kind, namespaced): &(&str, &str, &str, bool)| {
            let (group, version) = group_of(api_version);
            KindInfo {
                group: group.into(),
                version: version.into(),
                kind: (*kind).into(),
                resource: (*resource).into(),
                namespaced: *namespaced,
            }
        };
        run.event(Event::Kinds(KINDS.iter().map(kind).collect()));
        run.phase(Phase::Arrange);
        run.process(ProcessEvent::Started { pid: 1 });
        run.watch("samples.example.com");
        run.at(0.0);
        run.phase(Phase::Steps);
        run
    }

    /// Sets the clock, in seconds.
    pub(crate) fn at(&mut self, seconds: f64) -> &mut Self {
        self.at_ms = seconds * 1000.0;
        self
    }

    pub(crate) fn event(&mut self, event: Event) -> &mut Self {
        let seq = self.history.len() as u64;
        self.history.push(Record { seq, at_ms: self.at_ms, event });
        self
    }

    pub(crate) fn phase(&mut self, phase: Phase) -> &mut Self {
        self.event(Event::Phase(phase))
    }

    pub(crate) fn process(&mut self, what: ProcessEvent) -> &mut Self {
        self.process_of(OPERATOR, what, None)
    }

    /// A replica's process, and the step or fault that did it.
    pub(crate) fn process_of(&mut self, actor: &str, what: ProcessEvent, cause: Option<&str>) -> &mut Self {
        self.event(Event::Process(Process { actor: Actor(actor.into()), what, cause: cause.map(Into::into) }))
    }

    /// A replica is told to end, and ends.
    pub(crate) fn ended(&mut self, actor: &str, cause: &str) -> &mut Self {
        self.process_of(actor, ProcessEvent::Signalled { signal: "KILL".into() }, Some(cause));
        let exited = ProcessEvent::Exited { code: None, signal: Some(9), expected: true, last_lines: Vec::new() };
        self.process_of(actor, exited, None)
    }

    /// A replica is started.
    pub(crate) fn started(&mut self, actor: &str, cause: &str) -> &mut Self {
        self.process_of(actor, ProcessEvent::Started { pid: 2 }, Some(cause))
    }

    /// The operator opens a watch.
    pub(crate) fn watch(&mut self, resource: &str) -> StreamId {
        self.streams += 1;
        let (stream, request) = (StreamId(self.streams), RequestId(self.requests + 1));
        let key: ResourceKey = resource.parse().expect("a resource");
        self.request(OPERATOR, "GET", &format!("{}?watch=true", path(&key, None)));
        let (actor, namespace) = (Actor(OPERATOR.into()), Some("ns".into()));
        self.event(Event::StreamOpened(StreamOpened { stream, request, actor, resource: key, namespace }));
        stream
    }

    pub(crate) fn close(&mut self, stream: StreamId, fault: Option<&str>) -> &mut Self {
        let by = if fault.is_some() { ClosedBy::Fault } else { ClosedBy::Server };
        self.event(Event::StreamClosed(StreamClosed { stream, by, fault: fault.map(Into::into), how: None }))
    }

    /// The object's last version is delivered.
    pub(crate) fn deliver(&mut self, stream: StreamId, uid: &Uid) -> &mut Self {
        let revision = self.live[uid].revision();
        self.event(Event::Frame(FrameRecord {
            stream,
            kind: FrameType::Modified,
            uid: Some(uid.clone()),
            namespace: None,
            name: None,
            revision,
            fate: Fate::Delivered,
            fault: None,
        }))
    }

    /// A request without anything that follows.
    pub(crate) fn request(&mut self, actor: &str, method: &str, url: &str) -> RequestId {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.event(Event::Request(Request {
            id,
            actor: Actor(actor.into()),
            info: RequestInfo::classify(method, url),
            user_agent: None,
            content_type: None,
            body: None,
            uid: None,
            resource_version: None,
            speech: None,
        }));
        id
    }

    fn answer(&mut self, id: RequestId, status: u16, reason: Option<&str>, object: Option<AnswerObject>) {
        let (reason, message) = (reason.map(Into::into), reason.map(|r| format!("the API server says {r}")));
        self.event(Event::Answer(Answer { id, status: Some(status), reason, message, object }));
    }

    fn reply(&mut self, id: RequestId, outcome: ReplyOutcome, fault: Option<&str>) {
        self.event(Event::Reply(Reply { id, outcome, fault: fault.map(Into::into) }));
    }

    fn version(&mut self, kind: VersionType, object: &Value) {
        let (group, _) = group_of(object["apiVersion"].as_str().expect("an apiVersion"));
        let resource =
            KINDS.iter().find(|k| object["kind"] == k.2).map(|k| ResourceKey::new(group, k.0)).expect("a kind");
        let (revision, object) = (Revision(self.revision), object.clone());
        self.event(Event::Version(Version { resource, kind, revision, object }));
    }

    fn next_revision(&mut self, object: &mut Value) -> Revision {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        Revision(self.revision)
    }

    /// A request that is refused by the API server.
    pub(crate) fn refused(&mut self, actor: &str, method: &str, url: &str, status: u16, reason: &str) -> RequestId {
        let id = self.request(actor, method, url);
        self.answer(id, status, Some(reason), None);
        self.reply(id, ReplyOutcome::Delivered(status), None);
        id
    }

    /// A version that the witness sees and no request of this run made.
    pub(crate) fn version_of_another_run(&mut self, mut object: Value) -> &mut Self {
        object["metadata"]["uid"] = json!("another-run");
        self.next_revision(&mut object);
        self.version(VersionType::Added, &object);
        self
    }

    /// A create, its answer, its version.
    pub(crate) fn create(&mut self, actor: &str, object: Value) -> Uid {
        let (uid, id) = self.create_unanswered(actor, object);
        self.reply(id, ReplyOutcome::Delivered(201), None);
        uid
    }

    /// As `create`, and the reply is lost by a fault.
    pub(crate) fn create_lost(&mut self, actor: &str, object: Value, fault: &str) -> Uid {
        let (uid, id) = self.create_unanswered(actor, object);
        self.fired(fault, Some(id), Some(At::AfterCommit));
        self.reply(id, ReplyOutcome::Broken, Some(fault));
        self.effect(fault, "the connection broke");
        uid
    }

    fn create_unanswered(&mut self, actor: &str, mut object: Value) -> (Uid, RequestId) {
        self.uids += 1;
        let name = object.name().expect("a name").to_owned();
        let uid = Uid(format!("{:08x}-{name}", self.uids));
        object["metadata"]["uid"] = json!(uid.0);
        object["metadata"]["generation"] = json!(1);
        let url = url_of(&object);
        let collection = url.rsplit_once('/').expect("a collection").0.to_owned();
        let id = self.request(actor, "POST", &collection);
        if let Some(Record { event: Event::Request(r), .. }) = self.history.last_mut() {
            r.info.name = Some(name);
        }
        if actor == OPERATOR {
            object["metadata"]["managedFields"] = json!([{"manager": "op", "fieldsV1": fields(&object)}]);
        }
        let revision = self.next_revision(&mut object);
        self.answer(
            id,
            201,
            None,
            Some(AnswerObject { uid: Some(uid.clone()), revision: Some(revision), ..AnswerObject::default() }),
        );
        self.version(VersionType::Added, &object);
        self.live.insert(uid.clone(), object);
        (uid, id)
    }

    /// A merge patch; without a difference nothing is stored.
    pub(crate) fn patch(&mut self, actor: &str, uid: &Uid, patch: Value) -> RequestId {
        let mut object = self.live[uid].clone();
        let before = object.clone();
        merge(&mut object, &patch);
        let id = self.request(actor, "PATCH", &url_of(&before));
        if object != before {
            if object["spec"] != before["spec"] {
                object["metadata"]["generation"] = json!(before.generation().unwrap_or(0) + 1);
            }
            self.next_revision(&mut object);
        }
        let ends = object.is_terminating() && object.finalizers().is_empty();
        // Taking the last finalizer away is answered with the old version.
        let revision = if ends { before.revision() } else { object.revision() };
        let (terminating, finalizers) = (object.is_terminating(), !object.finalizers().is_empty());
        self.answer(
            id,
            200,
            None,
            Some(AnswerObject { name: None, uid: Some(uid.clone()), revision, terminating, finalizers }),
        );
        if ends {
            self.version(VersionType::Deleted, &before);
            self.live.remove(uid);
        } else if object != before {
            self.version(VersionType::Modified, &object);
            self.live.insert(uid.clone(), object);
        }
        self.reply(id, ReplyOutcome::Delivered(200), None);
        id
    }

    /// A deletion; with finalizers the object terminates.
    pub(crate) fn delete(&mut self, actor: &str, uid: &Uid) -> &mut Self {
        let mut object = self.live[uid].clone();
        let id = self.request(actor, "DELETE", &url_of(&object));
        let revision = self.next_revision(&mut object);
        let named = AnswerObject { uid: Some(uid.clone()), ..AnswerObject::default() };
        if object.finalizers().is_empty() {
            self.answer(id, 200, None, Some(named));
            self.version(VersionType::Deleted, &object);
            self.live.remove(uid);
        } else {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:01Z");
            let answer = AnswerObject { revision: Some(revision), terminating: true, finalizers: true, ..named };
            self.answer(id, 200, None, Some(answer));
            self.version(VersionType::Modified, &object);
            self.live.insert(uid.clone(), object);
        }
        self.reply(id, ReplyOutcome::Delivered(200), None);
        self
    }

    fn fault(&mut self, name: &str, what: FaultEvent) -> &mut Self {
        self.event(Event::Fault(FaultRecord { name: name.into(), what }))
    }

    pub(crate) fn armed(&mut self, name: &str) -> &mut Self {
        self.fault(name, FaultEvent::Armed)
    }

    pub(crate) fn fired(&mut self, name: &str, request: Option<RequestId>, at: Option<At>) -> &mut Self {
        self.fault(name, FaultEvent::Fired { request, at, legality: None })
    }

    pub(crate) fn effect(&mut self, name: &str, what: &str) -> &mut Self {
        self.fault(name, FaultEvent::Effect { what: what.into() })
    }

    pub(crate) fn healed(&mut self, name: &str) -> &mut Self {
        self.fault(name, FaultEvent::Healed)
    }

    pub(crate) fn released(&mut self, name: &str) -> &mut Self {
        self.fault(name, FaultEvent::Released { request: None, by: "heal".into() })
    }

    pub(crate) fn step(&mut self, path: &str, name: &str, operation: &str, state: StepState) -> &mut Self {
        let (path, name, operation) = (path.into(), Some(name.into()), operation.into());
        self.event(Event::Step(StepRecord { path, name, operation, state, object: None }))
    }

    /// The store is put back to this revision, with these objects in it as they are now.
    pub(crate) fn restore(&mut self, now: u64, there: &[&Uid], legality: Legality) -> &mut Self {
        let (before, step) = (Revision(self.revision), "steps[0].try[0]".to_owned());
        self.step(&step, "go back", "restore", StepState::Started);
        self.event(Event::Epoch(Epoch { step, before, now: Revision(now), legality }));
        self.revision = now;
        self.live.retain(|uid, _| there.contains(&uid));
        for object in self.live.values().cloned().collect::<Vec<_>>() {
            self.version(VersionType::Found, &object);
        }
        self.step("steps[0].try[0]", "go back", "restore", StepState::Done)
    }

    /// Heal and settle: `took` seconds, in a window of two, with this outcome.
    pub(crate) fn settle(&mut self, phase: Phase, took: f64, settled: bool) -> &mut Self {
        if phase == Phase::Settle {
            self.phase(Phase::Heal);
        }
        self.phase(phase);
        let end = self.at_ms / 1000.0 + took;
        self.at(end).settled(phase, took, settled)
    }

    /// The end of a settle phase that has begun already.
    pub(crate) fn settled(&mut self, phase: Phase, took: f64, settled: bool) -> &mut Self {
        self.event(Event::Settled(Settled {
            phase,
            settled,
            converged: settled,
            took_ms: took * 1000.0,
            window_ms: 2000.0,
            pending: Vec::new(),
            operator_pending: !settled,
        }))
    }

    /// Settles, deletes these subjects as the harness does, lets the collector take these objects, settles.
    pub(crate) fn finish(&mut self, subjects: &[&Uid], collected: &[&Uid]) -> &mut Self {
        if !self.history.iter().any(|r| r.event == Event::Phase(Phase::Settle)) {
            self.settle(Phase::Settle, 3.0, true);
        }
        self.phase(Phase::Teardown);
        for uid in subjects {
            self.delete(USER, uid);
        }
        for uid in collected {
            self.delete(COLLECTOR, uid);
        }
        self.settle(Phase::SettleTeardown, 3.0, true);
        self.phase(Phase::End)
    }

    pub(crate) fn judge(&self) -> Judgement {
        judge(&self.plan, &self.history)
    }

    /// The findings of one invariant, as text.
    pub(crate) fn text(&self, invariant: &str) -> String {
        let all = self.judge().findings;
        all.iter().filter(|f| f.invariant == invariant).map(text).collect::<Vec<_>>().join("\n")
    }
}

/// A finding as a reader sees it.
pub(crate) fn text(finding: &Finding) -> String {
    let class = serde_json::to_value(finding.class).expect("a class");
    let mut text = format!("{} {}: {}\n", class.as_str().unwrap_or_default(), finding.invariant, finding.message);
    let _ = writeln!(text, "  because {}", finding.cause);
    for detail in &finding.details {
        let _ = writeln!(text, "  {}: {}", detail.key, detail.text);
    }
    let blame = [("fault", &finding.fault), ("step", &finding.step)];
    for (key, value) in blame.iter().filter_map(|(k, v)| Some((k, v.as_ref()?))) {
        let _ = writeln!(text, "  -> {key} {value}");
    }
    text
}

fn path(key: &ResourceKey, name: Option<&str>) -> String {
    let (_, api_version, _, namespaced) =
        KINDS.iter().find(|k| k.0 == key.resource).copied().expect("a resource of the test world");
    let prefix = if key.group.is_empty() { "/api" } else { "/apis" };
    let namespace = if namespaced { "/namespaces/ns" } else { "" };
    let name = name.map(|n| format!("/{n}")).unwrap_or_default();
    format!("{prefix}/{api_version}{namespace}/{}{name}", key.resource)
}

fn url_of(object: &Value) -> String {
    let (group, _) = group_of(object["apiVersion"].as_str().expect("an apiVersion"));
    let resource = KINDS.iter().find(|k| object["kind"] == k.2).map(|k| k.0).expect("a kind");
    let url = path(&ResourceKey::new(group, resource), object.name());
    match object.namespace() {
        Some(namespace) => url.replace("/namespaces/ns/", &format!("/namespaces/{namespace}/")),
        None => url,
    }
}

/// Every field of the object, as managedFields writes it.
fn fields(object: &Value) -> Value {
    match object {
        Value::Object(map) => map.iter().map(|(k, v)| (format!("f:{k}"), fields(v))).collect(),
        _ => json!({}),
    }
}
