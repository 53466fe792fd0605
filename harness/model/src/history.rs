//! What happened: everything of one run in one order. An append-only file of one JSON record a line.

use crate::{
    Actor, ObjectRef, RequestId, RequestInfo, ResourceKey, Revision, StreamId, Uid,
    fault::{At, CloseWatch, FrameType, Legality},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the format of `history.jsonl`.
pub const HISTORY_VERSION: u32 = 1;

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its place in the order, from 0 without gaps.
    pub seq: u64,
    /// Milliseconds from the first step by a monotonic clock; negative while arranging.
    pub at_ms: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "records are made and passed on one at a time")]
pub enum Event {
    /// The first record.
    Header(Header),
    /// The kinds that the control plane serves; again when CRDs come.
    Kinds(Vec<KindInfo>),
    /// A request arrived at the proxy.
    Request(Request),
    /// The API server answered it, or will never.
    Answer(Answer),
    /// How the exchange ended for the client.
    Reply(Reply),
    /// A watch stream opened.
    StreamOpened(StreamOpened),
    /// An event in a watch stream.
    Frame(FrameRecord),
    /// A watch stream ended.
    StreamClosed(StreamClosed),
    /// An object version, from the witness.
    Version(Version),
    /// The witness lost its place: versions may be missing.
    WitnessLost {
        /// Of which resource.
        resource: ResourceKey,
        /// Why.
        why: String,
    },
    /// The store was put back: another etcd epoch begins, whose revisions cannot be compared with those of before. What is
    /// there follows as found; what does not follow is gone without having been deleted.
    Epoch(Epoch),
    /// The operator's process.
    Process(Process),
    /// A phase of the run begins.
    Phase(Phase),
    /// A step of the scenario.
    Step(StepRecord),
    /// A fault.
    Fault(FaultRecord),
    /// The world has settled, or time is over.
    Settled(Settled),
    /// Something a reader should know.
    Note {
        /// What.
        text: String,
    },
}

/// Who ran what, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// [`HISTORY_VERSION`].
    pub schema_version: u32,
    /// Wall time of the first step, RFC 3339.
    pub started: String,
    /// Version of the harness.
    pub harness: String,
    /// Version of Kubernetes.
    pub kubernetes: String,
}

/// A kind as discovery tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindInfo {
    /// API group, empty for the core group.
    pub group: String,
    /// The version that is watched.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural.
    pub resource: String,
    /// Whether its objects lie in namespaces.
    pub namespaced: bool,
}

impl KindInfo {
    /// Without its version.
    pub fn key(&self) -> ResourceKey {
        ResourceKey::new(&self.group, &self.resource)
    }

    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// Who sent it.
    pub actor: Actor,
    /// What it asks for; `name` filled in from a create's body.
    pub info: RequestInfo,
    /// Its User-Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// `application/json`, `application/vnd.kubernetes.protobuf`, a patch type, …; writes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The body of a write where it was JSON, secrets replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The uid that a delete's precondition or an update names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// The resourceVersion that the request carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// How the client speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<Speech>,
}

/// How a client speaks: what stacks of clients differ in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Speech {
    /// `1.1` or `2`.
    pub http: String,
    /// The media types that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    /// The protocol that it wants to change to, such as `websocket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<String>,
}

/// What the API server made of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Of which request.
    pub id: RequestId,
    /// HTTP status; none when the API server never answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `metav1.Status` of a refusal: reason and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message of a refusal, or why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The object in the answer, or the object that a `Status` names in its details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<AnswerObject>,
}

/// What the answer tells of the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerObject {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// resourceVersion; none in a `Status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Whether deletionTimestamp is set.
    #[serde(default)]
    pub terminating: bool,
    /// Whether finalizers are left.
    #[serde(default)]
    pub finalizers: bool,
}

/// How an exchange ended for the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// Of which request.
    pub id: RequestId,
    /// What the client got.
    pub outcome: ReplyOutcome,
    /// The fault that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What the client got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReplyOutcome {
    /// The answer of the API server.
    Delivered(u16),
    /// An answer that a fault made.
    Forged(u16),
    /// A broken connection.
    Broken,
    /// The client went away first.
    Gone,
}

/// A watch stream opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamOpened {
    /// Its number.
    pub stream: StreamId,
    /// The request that opened it.
    pub request: RequestId,
    /// Who watches.
    pub actor: Actor,
    /// What.
    pub resource: ResourceKey,
    /// Where; none for all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A watch event and its fate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrameRecord {
    /// In which stream.
    pub stream: StreamId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: FrameType,
    /// The object's uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// The object's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The object's resourceVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// What became of it.
    pub fate: Fate,
    /// The fault that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What became of a watch event. A held one is recorded twice: when it is held, and when it is delivered or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// The client got it.
    Delivered,
    /// It waits.
    Held,
    /// Withheld with the rest of its stream.
    Withheld,
    /// It vanished.
    Dropped,
}

/// A watch stream ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamClosed {
    /// Its number.
    pub stream: StreamId,
    /// Who ended it.
    pub by: ClosedBy,
    /// The fault that ended it, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// In which way a fault ended it.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub how: Option<CloseWatch>,
}

/// Who ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClosedBy {
    /// The API server.
    Server,
    /// The client.
    Client,
    /// A fault.
    Fault,
}

/// An object version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Of which resource.
    pub resource: ResourceKey,
    /// What happened to the object.
    #[serde(rename = "type")]
    pub kind: VersionType,
    /// Its resourceVersion; for a deletion the revision of the deletion.
    pub revision: Revision,
    /// The whole object, secrets replaced; for a deletion its last state.
    pub object: Value,
}

/// What a version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VersionType {
    /// There when the witness came.
    Found,
    /// Made.
    Added,
    /// Changed.
    Modified,
    /// Gone.
    Deleted,
}

/// The beginning of an etcd epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Epoch {
    /// The step that put the store back, `steps[1].try[0]`.
    pub step: String,
    /// The newest revision of the store before.
    pub before: Revision,
    /// Its revision now. When it is less, clients hold resourceVersions that are ahead of the server's.
    pub now: Revision,
    /// Whether a correct API server can do this: revisions go on from beyond the old ones, and watches from those are
    /// answered 410.
    pub legality: Legality,
}

/// What an operator's process does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    /// Which replica.
    pub actor: Actor,
    /// What.
    pub what: ProcessEvent,
    /// The fault or step that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What happens to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessEvent {
    /// It runs.
    Started {
        /// Process number on this machine.
        pid: u32,
    },
    /// We are about to signal it.
    Signalled {
        /// `KILL`, `TERM`, `STOP`, `CONT`.
        signal: String,
    },
    /// It is gone.
    Exited {
        /// Exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// Whether we ended it.
        expected: bool,
        /// Its last lines of output when we did not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        last_lines: Vec<String>,
    },
}

/// The phases of a run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Namespaces, CRDs, RBAC, the operator comes up.
    Arrange,
    /// The scenario's own steps, with faults.
    Steps,
    /// Every fault is lifted.
    Heal,
    /// Until nothing more happens.
    Settle,
    /// The second round.
    Probe,
    /// Until nothing more happens after the probe.
    SettleProbe,
    /// The subjects are deleted, the operator alive.
    Teardown,
    /// Until everything that belonged to them is gone.
    SettleTeardown,
    /// The operator is stopped; what comes is not judged.
    End,
}

/// A step of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// `steps[1].try[0]`, or `probe`.
    pub path: String,
    /// The step's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The operation: `apply`, `assert`, …
    pub operation: String,
    /// Begun, done or failed.
    pub state: StepState,
    /// The object it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
}

/// Where a step is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepState {
    /// It begins.
    Started,
    /// It is done.
    Done,
    /// An `assert` or `error` step did not hold: a fail.
    Failed {
        /// What differs.
        message: String,
    },
    /// A wait for a fault or a settled world was in vain: inconclusive.
    TimedOut {
        /// For what.
        message: String,
    },
    /// The step itself could not be done (a rejected apply, a failing script): an error.
    Broken {
        /// Why.
        message: String,
    },
}

/// What happens to a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultRecord {
    /// Its name.
    pub name: String,
    /// What.
    pub what: FaultEvent,
}

/// The life of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultEvent {
    /// It counts and fires from now on.
    Armed,
    /// A request or event matched.
    Matched {
        /// The request, or the one that opened the stream.
        request: RequestId,
        /// Which match, from 1.
        ordinal: u64,
    },
    /// It acts.
    Fired {
        /// The request, or the one that opened the stream; none for an ambient fault.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
        /// The point in the exchange.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<At>,
        /// How legal it was to this very request, where that depends on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        legality: Option<Legality>,
    },
    /// It made a difference.
    Effect {
        /// Which.
        what: String,
    },
    /// What it held or delayed goes on.
    Released {
        /// The request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
        /// By what: the condition, or heal.
        by: String,
    },
    /// It acts no more.
    Healed,
}

/// How a settle phase ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// Which.
    pub phase: Phase,
    /// Whether nothing more happened, or time was over.
    pub settled: bool,
    /// Whether every subject had converged (or was gone, after teardown).
    pub converged: bool,
    /// How long it took, in milliseconds.
    pub took_ms: f64,
    /// Length of the quiet window that was applied, in milliseconds.
    pub window_ms: f64,
    /// What was still going on, when time was over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Whether what was pending is the operator's to do.
    #[serde(default)]
    pub operator_pending: bool,
}
