//! The suite, `spiritlevel.yaml`: the operator under test, the cluster, defaults. One directory, many scenarios.

use crate::{Period, invariants::Invariants};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The only `apiVersion` there is.
pub const API_VERSION: &str = "spiritlevel/v1alpha1";

/// A suite file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Suite {
    /// `spiritlevel/v1alpha1`.
    pub api_version: String,
    /// `Suite`.
    pub kind: String,
    /// Its name.
    pub metadata: Named,
    /// What it is about.
    pub spec: SuiteSpec,
}

/// `metadata` of a suite or scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Named {
    /// Lower case, digits and dashes.
    pub name: String,
    /// For `--filter`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
}

/// The body of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SuiteSpec {
    /// Where it runs.
    #[serde(default)]
    pub cluster: Cluster,
    /// Files or folders with CustomResourceDefinitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crds: Vec<String>,
    /// Files or folders with objects that exist before the operator starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// The operator under test.
    pub operator: Operator,
    /// What the operator is for.
    pub subject: Subject,
    /// How the kubelet stub behaves (provider `local`).
    #[serde(default)]
    pub kubelet: Kubelet,
    /// Values for `($name)`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub bindings: IndexMap<String, Value>,
    /// What scenarios inherit.
    #[serde(default)]
    pub defaults: Defaults,
}

/// The control plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Cluster {
    /// How it is made.
    pub provider: Provider,
    /// Kubernetes version, `"1.36"`.
    pub version: String,
    /// Further arguments of kube-apiserver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apiserver_args: Vec<String>,
    /// The image of a node, for `k3s` and `kind`; default: the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// kind's configuration file; default: one of `kind-configs/` by the number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Images of this machine's Docker that are put onto every node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Whether k3s has a node. Without (`false`, k3s's `--disable-agent`) it is a control plane only, whose container needs no
    /// privileges; no pod runs, and the kubelet stub stands in as with provider `local`.
    #[serde(skip_serializing_if = "is_true")]
    pub agent: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

impl Cluster {
    /// Whether kubelets and pods are real.
    pub fn has_real_pods(&self) -> bool {
        match self.provider {
            Provider::Local => false,
            Provider::K3s => self.agent,
            Provider::Kind => true,
        }
    }

    /// Whether it is a container's, with no node.
    pub fn is_control_plane_only(&self) -> bool {
        self.provider == Provider::K3s && !self.agent
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            provider: Provider::Local,
            version: "1.36".into(),
            apiserver_args: Vec::new(),
            image: None,
            config: None,
            images: Vec::new(),
            agent: true,
        }
    }
}

/// How a control plane is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Processes on this machine, with a kubelet stub.
    #[default]
    Local,
    /// One container of rancher/k3s's contract; real pods.
    K3s,
    /// Containers made by the kind CLI; real pods, and several nodes.
    Kind,
}

impl Provider {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::K3s => "k3s",
            Self::Kind => "kind",
        }
    }
}

/// The operator under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Operator {
    /// How its program is made; left out: it is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// How it runs as a process beside the cluster.
    #[serde(default)]
    pub process: ProcessSpec,
    /// How it runs inside the cluster; providers with real pods only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentSpec>,
    /// Which of the two, where both are given; default: the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunAs>,
    /// A run each, under this name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub variants: IndexMap<String, Variant>,
    /// Its permissions.
    #[serde(default)]
    pub service_account: ServiceAccount,
    /// Whether one operator serves one namespace.
    #[serde(default)]
    pub scope: OperatorScope,
}

impl Operator {
    /// How it runs inside the cluster, where it does.
    pub fn inside(&self) -> Option<&DeploymentSpec> {
        self.deployment.as_ref().filter(|_| self.is_inside())
    }

    /// Whether it runs inside the cluster.
    pub fn is_inside(&self) -> bool {
        match self.run {
            Some(run) => run == RunAs::Deployment,
            None => self.process.command.is_empty() && self.deployment.is_some(),
        }
    }
}

/// Where an operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RunAs {
    /// A process beside the cluster.
    Process,
    /// A Deployment inside it.
    Deployment,
}

/// How the operator runs inside the cluster, as its users deploy it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// Files or folders with its Deployment, what that mounts or is reached by (ConfigMaps, Secrets, Services), and its
    /// webhook configurations. A folder with a `kustomization.yaml` is built by kustomize. Permissions come from
    /// `serviceAccount`. A replica is a Deployment of its own, so that each has its own way to the API server.
    pub manifests: Vec<String>,
    /// Where the manifests have several Deployments: the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The operator's container in it; default: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Its image, which is put onto every node; default: what the manifest says, to be pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Further arguments of the container; a variant's are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Further environment, likewise.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, String>,
    /// The Secret with the certificate of its webhooks (`tls.crt`, `tls.key`, `ca.crt`), as cert-manager would make it: it
    /// is made, and the webhook configurations get its `caBundle`. Left out: the operator sees to both itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_certificate: Option<String>,
    /// How the image is made from the program that `build` makes; default: it is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_build: Option<ImageBuild>,
}

/// How an image is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ImageBuild {
    /// The Dockerfile.
    pub dockerfile: String,
    /// What it can copy: name in the build context to file, `($binary)` included.
    pub files: IndexMap<String, String>,
}

/// How the operator's program is made: exactly one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Build {
    /// A command, run in the suite's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// What the command produces; looked at when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub produces: Option<String>,
    /// A pinned Go module, built in the module cache; bound as `($module)` (its folder) and `($binary)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub go_module: Option<GoModule>,
}

/// A pinned Go module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GoModule {
    /// Its path.
    pub module: String,
    /// Its exact version.
    pub version: String,
    /// The main package, `./cmd/controller`.
    pub package: String,
    /// Added `replace` directives, for a module whose graph names what is nowhere to be had: by `module@version`, or by a
    /// folder (`./…`, from the suite's).
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub replace: IndexMap<String, String>,
}

/// How the operator runs as a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ProcessSpec {
    /// Program and arguments; a relative program starts from the suite's folder.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, String>,
    /// How many run side by side.
    #[serde(default = "one")]
    pub replicas: usize,
    /// What happens when it ends by itself.
    #[serde(default)]
    pub restart: Restart,
    /// How it finds the API server.
    #[serde(default)]
    pub access: Access,
    /// Its network.
    #[serde(default)]
    pub network: Network,
    /// Exit codes that are no crash, such as that of a lost lease; 0 always is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_codes: Vec<i32>,
    /// Whether the lease of a killed replica stays until it runs out.
    #[serde(default)]
    pub leases: Leases,
}

fn one() -> usize {
    1
}

impl Default for ProcessSpec {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: IndexMap::new(),
            replicas: one(),
            restart: Restart::default(),
            access: Access::default(),
            network: Network::default(),
            exit_codes: Vec::new(),
            leases: Leases::default(),
        }
    }
}

/// Leases of killed replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Leases {
    /// Released by the harness after a kill, so that the successor need not wait.
    #[default]
    Release,
    /// Kept: leases are the subject.
    Keep,
}

/// What happens when the operator ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Restart {
    /// Whether it is started again.
    pub policy: RestartPolicy,
    /// After how long.
    pub backoff: Period,
}

impl Default for Restart {
    fn default() -> Self {
        Self { policy: RestartPolicy::Always, backoff: Period::secs(1) }
    }
}

/// Whether an operator that ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestartPolicy {
    /// As a Deployment would.
    #[default]
    Always,
    /// Not.
    Never,
}

/// How the operator finds the API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// As in a pod: environment and the service-account files.
    #[default]
    InCluster,
    /// A file, bound as `($kubeconfig)`.
    Kubeconfig,
}

/// The operator's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// A namespace of its own with only `lo`.
    #[default]
    Isolated,
    /// The machine's.
    Host,
}

/// What differs in a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Variant {
    /// Further arguments.
    pub args: Vec<String>,
    /// Further environment.
    pub env: IndexMap<String, String>,
    /// Another program.
    pub build: Option<Build>,
    /// Another command altogether.
    pub command: Option<Vec<String>>,
    /// Other CRDs.
    pub crds: Option<Vec<String>>,
    /// Other permissions.
    pub service_account: Option<ServiceAccount>,
}

/// The operator's permissions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ServiceAccount {
    /// Files with Roles, ClusterRoles and bindings; subjects are rewritten to the run's account.
    pub rbac: Vec<String>,
    /// Instead of files: everything is allowed. A notice says that permissions are not tested.
    pub cluster_admin: bool,
}

/// Whether one operator serves one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OperatorScope {
    /// It can be told to look at the run's namespace only: many runs share a control plane.
    #[default]
    Namespaced,
    /// It looks at all namespaces: one run at a time on a control plane.
    Cluster,
}

/// The kind that the operator is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subject {
    /// `db.example.com/v1`.
    pub api_version: String,
    /// `PostgresCluster`.
    pub kind: String,
    /// When it is ready.
    #[serde(default)]
    pub ready: Ready,
}

/// When a subject is ready: all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Ready {
    /// A condition that must be True, for the current generation where it carries one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// CEL over `object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    /// The subject has no status: it is ready as soon as it is there and its asserts hold.
    pub exists: bool,
}

/// How the kubelet stub behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Kubelet {
    /// From bound to Ready.
    pub pod_ready_after: Period,
    /// Pods of Jobs.
    pub jobs: Jobs,
    /// Other rules for some pods; the first that matches counts.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PodRule>,
    /// What `exec` answers.
    pub exec: Exec,
}

impl Default for Kubelet {
    fn default() -> Self {
        Self { pod_ready_after: Period::millis(200), jobs: Jobs::default(), rules: Vec::new(), exec: Exec::default() }
    }
}

/// Pods of Jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Jobs {
    /// From Running to done.
    pub complete_after: Period,
    /// Exit code.
    pub exit_code: i32,
}

impl Default for Jobs {
    fn default() -> Self {
        Self { complete_after: Period::millis(200), exit_code: 0 }
    }
}

/// A rule for some pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct PodRule {
    /// Labels that the pod must have.
    pub labels: IndexMap<String, String>,
    /// From bound to Ready.
    pub ready_after: Option<Period>,
    /// The phase it stays in: `Pending` is never bound.
    pub phase: Option<String>,
}

/// What `exec` answers on provider `local`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Exec {
    /// Exit code.
    pub exit_code: i32,
    /// Standard output.
    pub output: String,
}

/// What scenarios inherit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Defaults {
    /// How long operations may take.
    pub timeouts: Timeouts,
    /// Settings of invariants.
    pub invariants: Invariants,
}

/// How long operations may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Timeouts {
    /// `apply`, `create`, `patch`, `update`.
    pub apply: Period,
    /// `assert`, `wait`, `await`.
    pub assert: Period,
    /// `error`.
    pub error: Period,
    /// `delete`.
    pub delete: Period,
    /// `script`, `command`.
    pub exec: Period,
    /// Everything after the judging.
    pub cleanup: Period,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            apply: Period::secs(30),
            assert: Period::secs(90),
            error: Period::secs(30),
            delete: Period::secs(60),
            exec: Period::secs(30),
            cleanup: Period::secs(120),
        }
    }
}
