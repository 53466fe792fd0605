//! Steps and their operations. Names and sub-fields are Chainsaw's where Chainsaw has them.

use crate::{
    Period,
    fault::{Match, Signal},
};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _, ser::SerializeMap};
use serde_json::{Map, Value};

/// A step: operations, what to gather when one fails, what to do in any case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// How reports speak of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One after the other; the first failure ends the step.
    #[serde(rename = "try")]
    pub attempt: Vec<Operation>,
    /// After a failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub catch: Vec<Operation>,
    /// In any case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finally: Vec<Operation>,
}

/// The keys of a full step; without `try` the item is a single operation.
pub const STEP_KEYS: [&str; 5] = ["name", "description", "try", "catch", "finally"];

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            name: Option<String>,
            description: Option<String>,
            r#try: Vec<Operation>,
            #[serde(default)]
            catch: Vec<Operation>,
            #[serde(default)]
            finally: Vec<Operation>,
        }
        let map = Map::deserialize(d)?;
        if !map.contains_key("try") {
            let operation = Operation::deserialize(Value::Object(map)).map_err(D::Error::custom)?;
            return Ok(Self { attempt: vec![operation], ..Self::default() });
        }
        let full = Full::deserialize(Value::Object(map)).map_err(D::Error::custom)?;
        Ok(Self {
            name: full.name,
            description: full.description,
            attempt: full.r#try,
            catch: full.catch,
            finally: full.finally,
        })
    }
}

/// One operation with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Why.
    pub description: Option<String>,
    /// How long it may take; default: the suite's for this kind of operation.
    pub timeout: Option<Period>,
    /// Whether the step goes on when it fails.
    pub continue_on_error: bool,
    /// Values to keep from the answer as bindings.
    pub outputs: Vec<Output>,
    /// What is done.
    pub action: StepAction,
}

/// The keys that stand beside an operation.
pub const OPERATION_KEYS: [&str; 4] = ["description", "timeout", "continueOnError", "outputs"];

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut map = Map::deserialize(d)?;
        let mut take = |key: &str| map.remove(key).unwrap_or(Value::Null);
        let description = Option::deserialize(take("description")).map_err(D::Error::custom)?;
        let timeout = Option::deserialize(take("timeout")).map_err(D::Error::custom)?;
        let go_on: Option<bool> = Option::deserialize(take("continueOnError")).map_err(D::Error::custom)?;
        let outputs: Option<Vec<Output>> = Option::deserialize(take("outputs")).map_err(D::Error::custom)?;
        if map.len() != 1 {
            let names: Vec<&str> = map.keys().map(String::as_str).collect();
            return Err(D::Error::custom(format!("an item needs exactly one operation, this one has {names:?}")));
        }
        let action = StepAction::deserialize(Value::Object(map)).map_err(D::Error::custom)?;
        Ok(Self {
            description,
            timeout,
            continue_on_error: go_on.unwrap_or(false),
            outputs: outputs.unwrap_or_default(),
            action,
        })
    }
}

impl Serialize for Operation {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        if let Some(description) = &self.description {
            map.serialize_entry("description", description)?;
        }
        if let Some(timeout) = &self.timeout {
            map.serialize_entry("timeout", timeout)?;
        }
        if self.continue_on_error {
            map.serialize_entry("continueOnError", &true)?;
        }
        if !self.outputs.is_empty() {
            map.serialize_entry("outputs", &self.outputs)?;
        }
        let action = serde_json::to_value(&self.action).map_err(serde::ser::Error::custom)?;
        for (key, value) in action.as_object().into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A value kept from an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Output {
    /// The binding's name.
    pub name: String,
    /// An expression over the object (or over `stdout`), in parentheses.
    pub value: Value,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "a plan has few of them, each made once")]
pub enum StepAction {
    /// Server-side apply, as a user would with kubectl.
    Apply(Manifest),
    /// POST; an existing object is an error.
    Create(Manifest),
    /// Merge patch of an existing object.
    Patch(Manifest),
    /// PUT over the object's latest version.
    Update(Manifest),
    /// DELETE, and wait until it is gone.
    Delete(Delete),
    /// An object that matches is there, eventually.
    Assert(Assertion),
    /// No object that matches is there, eventually.
    Error(Assertion),
    /// From now on to the end no object version matches.
    Never(Assertion),
    /// From now on to the end every version of the object matches.
    Always(Assertion),
    /// A shell script on this machine.
    Script(Script),
    /// A program on this machine.
    Command(Command),
    /// A pause; prefer `await`.
    Sleep(Sleep),
    /// A condition, a deletion or a field.
    Wait(Wait),
    /// Shows events.
    Events(Gather),
    /// Shows a pod's log.
    PodLogs(Gather),
    /// Shows objects in words.
    Describe(Gather),
    /// Shows objects.
    Get(Gather),
    /// Shows the operator's output.
    OperatorLogs(Tail),
    /// Shows the operator's requests.
    RequestLog(Tail),
    /// Arms a fault.
    Inject(Inject),
    /// Lifts a fault, or all.
    Heal(Heal),
    /// Waits for something to happen.
    Await(Await),
    /// Ends the operator and starts it again.
    RestartOperator(RestartOperator),
    /// Ends the operator; it stays down.
    StopOperator(StopOperator),
    /// Starts the operator.
    StartOperator(StartOperator),
    /// The operator sees an object again that has not changed.
    DuplicateReconcile(DuplicateReconcile),
    /// A pod's containers die, or one of them.
    KillPod(KillPod),
    /// A pod gets into a state.
    SetPod(SetPod),
    /// Somebody else changes or deletes a child.
    Drift(Drift),
    /// Something happens to a node, and is undone.
    Node(NodeFault),
    /// The API server stops, refuses connections for a while, and starts again.
    RestartApiserver(RestartApiserver),
    /// etcd's clock stops for a while: requests hang, and go on.
    FreezeEtcd(FreezeEtcd),
    /// Many creates or patches at once.
    Load(Load),
    /// Keeps the state of etcd under a name.
    Snapshot(Snapshot),
    /// Puts a snapshot back, with the operator alive.
    Restore(Restore),
    /// Takes permissions from the operator, until heal.
    Revoke(Revoke),
    /// An admission webhook stands in the way, until heal.
    Webhook(Webhook),
}

impl StepAction {
    /// As written in scenario files.
    pub fn name(&self) -> String {
        let value = serde_json::to_value(self).ok();
        value.and_then(|v| v.as_object()?.keys().next().cloned()).unwrap_or_default()
    }

    /// Whether it disturbs the control plane itself, and with it every run that shares it.
    pub fn disturbs_control_plane(&self) -> bool {
        matches!(self, Self::RestartApiserver(_) | Self::FreezeEtcd(_) | Self::Restore(_))
    }
}

/// Objects from a file or in place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Manifest {
    /// A file, relative to the scenario's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// An object in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Value>,
    /// What the answer must look like; default: success.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
}

/// What the answer to an operation must look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expectation {
    /// An assertion tree over the answer; `($error != null): true` expects a refusal.
    pub check: Value,
}

/// Which objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Ref {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; default the run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Or labels.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
}

/// `delete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Delete {
    /// Which objects.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub target: Option<Ref>,
    /// Or those in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// `Background`, `Foreground` or `Orphan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_propagation_policy: Option<String>,
    /// `false` goes on at once, for what hangs by design.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
}

/// `assert`, `error`, `never`, `always`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Assertion {
    /// A file with assertion trees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// An assertion tree in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Value>,
    /// CEL over `objects(apiVersion, kind)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
}

/// `script`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Script {
    /// The script, for `sh -e`.
    pub content: String,
    /// Further environment.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, String>,
    /// An assertion tree over `stdout`, `stderr`, `exitCode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Value>,
}

/// `command`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Command {
    /// The program.
    pub entrypoint: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Further environment.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, String>,
    /// An assertion tree over `stdout`, `stderr`, `exitCode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Value>,
}

/// `sleep`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sleep {
    /// How long.
    pub duration: Period,
}

/// `wait`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Wait {
    /// On which objects.
    #[serde(rename = "ref")]
    pub target: Ref,
    /// For what.
    #[serde(rename = "for")]
    pub what: WaitFor,
}

/// What a `wait` waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WaitFor {
    /// A status condition.
    Condition {
        /// Its type.
        name: String,
        /// Its status; default `True`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// The object is gone.
    Deletion {},
    /// A field has a value.
    JsonPath {
        /// kubectl's notation, `{.status.phase}`.
        path: String,
        /// The value.
        value: Value,
    },
}

/// What to show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Gather {
    /// Of which objects; default: the run's namespace.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub target: Option<Ref>,
}

/// How much to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Tail {
    /// The last lines; default 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
}

/// `inject`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Inject {
    /// Its name.
    pub fault: String,
}

/// `heal`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Heal {
    /// One fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// All of them.
    pub all: bool,
}

/// `await`: all that is given must happen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Await {
    /// These faults have fired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fired: Vec<String>,
    /// The subjects have converged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converged: Option<Converged>,
    /// Nothing is written any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<SettledFor>,
    /// The object is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<OneObject>,
    /// The object is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<OneObject>,
    /// An exchange that matches is answered, counted from this step on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Match>,
    /// How long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Period>,
}

/// Which subjects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Converged {
    /// Default: all.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub target: Option<Ref>,
}

/// How long nothing must have been written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SettledFor {
    /// Default: the quiet window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Period>,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OneObject {
    /// Which.
    #[serde(rename = "ref")]
    pub target: Ref,
}

/// `restartOperator`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RestartOperator {
    /// How it ends.
    pub signal: Signal,
    /// How long it stays down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Period>,
    /// Which replica; default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<usize>,
}

/// `stopOperator`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct StopOperator {
    /// How it ends.
    pub signal: Signal,
    /// Which replica; default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<usize>,
}

/// `startOperator`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct StartOperator {
    /// Which replica; default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<usize>,
}

/// The annotation that a touch changes.
pub const TOUCH: &str = "spiritlevel.dev/touched";

/// `duplicateReconcile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DuplicateReconcile {
    /// Of which object.
    #[serde(rename = "ref")]
    pub target: Ref,
    /// How often; default once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// In which way.
    #[serde(default)]
    pub via: Via,
}

/// How the operator comes to see an object again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Via {
    /// An annotation of the harness's is changed: a real new version.
    #[default]
    Touch,
    /// The watch ends and resumes: the client's own place decides what it sees again.
    Replay,
    /// The watch expires: the client lists again.
    Relist,
}

/// `killPod`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KillPod {
    /// Which; kind and apiVersion may be left out.
    #[serde(rename = "ref")]
    pub target: Ref,
    /// Only this container of it, where pods are real; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// `setPod`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SetPod {
    /// Which.
    #[serde(rename = "ref")]
    pub target: Ref,
    /// Whether it is Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Its phase: `Pending`, `Running`, `Succeeded`, `Failed`, or `Evicted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Its containers ended with this code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// `drift`: exactly one of `set`, `delete`, `stripOwners`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Drift {
    /// Which object.
    #[serde(rename = "ref")]
    pub target: Ref,
    /// A merge patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Value>,
    /// Deletes it.
    #[serde(default)]
    pub delete: bool,
    /// Takes its ownerReferences away.
    #[serde(default)]
    pub strip_owners: bool,
}

/// `node`: what happens to a real one; needs `requires: {realPods: true}`. The step ends when the node is back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeFault {
    /// Which one.
    #[serde(default)]
    pub which: NodeRole,
    /// What happens.
    #[serde(rename = "do")]
    pub action: NodeAction,
    /// For how long; default 2 s.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Period>,
}

/// A node by its role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NodeRole {
    /// The one with the API server.
    #[default]
    ControlPlane,
    /// The first one without; needs `requires: {nodes: 2}`.
    Worker,
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NodeAction {
    /// It is shut down and started again.
    Restart,
    /// Everything on it is killed, and it is started again.
    Crash,
    /// Its clock stops: requests to it hang.
    Pause,
    /// It is taken off the network.
    Cut,
    /// Its kubelet stops; its pods go on unattended.
    StopKubelet,
    /// Its container runtime restarts; its pods go on.
    RestartRuntime,
    /// It takes no new pods, and the run's pods on it are evicted, as far as their disruption budgets allow within the time.
    Drain,
}

impl NodeAction {
    /// Whether somebody has to undo it.
    pub fn lasts(self) -> bool {
        self != Self::RestartRuntime
    }
}

/// `restartApiserver`: on provider local. The writers are held until the harness has seen all that they wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RestartApiserver {
    /// How long it stays down before it is started, which takes some seconds more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Period>,
}

/// `freezeEtcd`: on provider local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FreezeEtcd {
    /// For how long.
    pub elapsed: Period,
}

/// `load`: exactly one of `create` and `patch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Load {
    /// Makes many objects of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<LoadCreate>,
    /// Changes objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<LoadPatch>,
    /// They are sent evenly over this time; without it as fast as they are answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Period>,
    /// So many at once; default 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<usize>,
}

/// `create` of a `load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LoadCreate {
    /// A file with one object; the copies are called `NAME-1`, `NAME-2`, ….
    pub file: String,
    /// How many.
    pub count: u32,
}

/// `patch` of a `load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LoadPatch {
    /// Which objects: one after the other, and from the beginning again.
    #[serde(rename = "ref")]
    pub target: Ref,
    /// A merge patch; `$i` in its strings is the number of the patch, from 1.
    pub set: Value,
    /// How many; default one for each object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// `snapshot`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Snapshot {
    /// What `restore` calls it.
    pub name: String,
    /// Of what.
    pub of: SnapshotOf,
}

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SnapshotOf {
    /// The store of the API server, as `etcdctl snapshot save` takes it.
    Etcd,
}

/// `restore`: on provider local. etcd, API server and controllers stop, and start with the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Restore {
    /// The snapshot.
    pub from: String,
    /// Revisions go on from so far beyond the snapshot's: what clients hold is then older than all that comes. Without it
    /// revisions repeat themselves, which breaks the API's contract. Goes with `markCompacted`, as in `etcdutl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bump_revision: Option<u64>,
    /// Watches from a revision of before are answered 410, so that clients list again.
    #[serde(default)]
    pub mark_compacted: bool,
}

/// `revoke`: the operator's roles lose these permissions; heal gives them back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Revoke {
    /// `create`, `patch`, …
    pub verbs: Vec<String>,
    /// `pods`, `statefulsets.apps`, `databases.example.com/status`.
    pub resources: Vec<String>,
}

/// `webhook`: a validating webhook of the harness's for the run's namespaces; heal removes it. On provider local.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Webhook {
    /// `pods`, `statefulsets.apps`: which requests are asked about.
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`; default `CREATE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// What it does.
    #[serde(rename = "do")]
    pub action: WebhookAction,
    /// What the API server makes of a webhook that fails: default `Fail`, which refuses the request.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
}

/// What a webhook does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WebhookAction {
    /// Nobody listens.
    Down,
    /// It answers too late: the API server gives up after a second.
    Slow,
    /// Its certificate is signed by somebody else than its configuration says.
    WrongCertificate,
    /// It refuses.
    Deny,
}

/// As in `ValidatingWebhookConfiguration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The request is refused.
    #[default]
    Fail,
    /// The request goes on.
    Ignore,
}
