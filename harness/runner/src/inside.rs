//! The operator inside the cluster: one Deployment a replica, whose pod reaches the API server through the replica's own
//! listener. What the manifest says stays, but for the way to the API server and the account.

#[cfg(test)]
mod tests;
pub(crate) mod webhooks;

use crate::{
    Error,
    api::Objects,
    arrange::Surroundings,
    files,
    harness_writes::merge_patch,
    kustomize,
    lane::Lane,
    rbac::ACCOUNT,
    recorder::{Live, Recorder},
    stage::Stage,
};
use futures::AsyncBufReadExt;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::LogParams};
use serde_json::{Value, json};
use spiritlevel_cluster::Nodes;
use spiritlevel_model::{
    Meta,
    bindings::Bindings,
    fault::Signal,
    history::KindInfo,
    suite::{DeploymentSpec, OperatorScope},
};
use std::{
    collections::VecDeque,
    io::Write,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

/// Says of namespaces and webhook configurations which run they belong to.
pub(crate) const RUN: &str = "spiritlevel.dev/run";
/// Tells the replicas' pods apart.
const REPLICA: &str = "spiritlevel.dev/replica";
/// The proxy's certificate, in the place of the cluster's.
const CA: &str = "spiritlevel-proxy-ca";
const ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Until a pod runs whose image is on the node.
const START: Duration = Duration::from_secs(120);
/// A kubelet tells of a dead container within seconds.
const END: Duration = Duration::from_secs(60);

/// A container that runs, or ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    node: String,
    pod: String,
    /// As containerd knows it.
    pub(crate) id: String,
}

/// How a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// A replica's Deployment.
pub(crate) struct Inside {
    client: Client,
    url: String,
    namespace: String,
    index: usize,
    container: String,
    /// Whether the API server asks it: then it is not up before its pod is Ready.
    asked: bool,
    recorder: Arc<Recorder>,
    /// Weak: who waits for a container's end must not keep the cluster.
    lane: Weak<Lane>,
    log: PathBuf,
}

// === impl Inside ===

impl Inside {
    /// Makes the Deployment of a replica, with no pod yet.
    pub(crate) async fn create(
        stage: &Stage,
        around: &Surroundings<'_>,
        lane: Arc<Lane>,
        spec: &DeploymentSpec,
        index: usize,
        proxy: SocketAddr,
    ) -> Result<Self, Error> {
        let namespace = stage.plan.operator_namespace.clone();
        let kinds = lane.hub().kinds();
        let client = lane.clients().arrange.clone();
        let objects = Objects { client: &client, kinds: &kinds, namespace: &namespace };
        let mut documents = Vec::new();
        for name in &spec.manifests {
            let name = crate::arrange::text(name, &around.bindings)?;
            for document in kustomize::manifests(&around.suite_dir, &name).await? {
                documents.push(files::resolved(&document, &around.bindings, &name)?);
            }
        }
        let named = |d: &&Value| spec.name.as_deref().is_none_or(|n| d.name() == Some(n));
        let mut deployments = documents.iter().filter(|d| d["kind"] == "Deployment").filter(named);
        let (Some(deployment), None) = (deployments.next(), deployments.next()) else {
            let names = spec.manifests.join(", ");
            return Err(Error::Input(format!("there must be exactly one Deployment in {names}, or name it: `name:`")));
        };
        let configurations: Vec<&Value> = documents.iter().filter(|d| webhooks::configures(d)).collect();
        if index == 0 {
            let ca = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CA},
                "data": {"ca.crt": lane.proxy().ca_pem()},
            });
            objects.apply(&placed(&ca, &namespace)).await?;
            for document in documents.iter().filter(|d| is_mounted(d, &kinds)) {
                objects.apply(&placed(document, &namespace)).await?;
            }
            let home = webhooks::Home {
                system: &namespace,
                namespace: &stage.plan.namespace,
                shared: stage.plan.suite.operator.scope == OperatorScope::Namespaced,
            };
            let mut ca_bundle = None;
            if let Some(secret) = &spec.webhook_certificate {
                let (secret, ca) = webhooks::certificate(secret, &configurations, &home)?;
                objects.apply(&secret).await?;
                ca_bundle = Some(ca);
            }
            for configuration in &configurations {
                objects.apply(&webhooks::of_run(configuration, ca_bundle.as_deref(), &home)).await?;
            }
        }
        let (deployment, container) = rendered(deployment, spec, &around.bindings, index, proxy)?;
        let deployment = placed(&deployment, &namespace);
        objects.apply(&deployment).await?;
        let url = objects.url("apps/v1", "Deployment", Some(&namespace), deployment.name())?;
        Ok(Self {
            client,
            url,
            namespace,
            index,
            container,
            asked: !configurations.is_empty(),
            recorder: stage.recorder.clone(),
            lane: Arc::downgrade(&lane),
            log: around.report_dir.join(format!("operator-{index}.log")),
        })
    }

    /// Lets it have a pod, and returns when its container runs.
    pub(crate) async fn start(&self) -> Result<Instance, Error> {
        self.scale(1).await?;
        let up = |live: &Live| self.running(live).filter(|i| !self.asked || self.answers(live, i));
        self.recorder.wait_for(START, up).await.ok_or_else(|| {
            let live = self.recorder.live();
            let why: Vec<String> = self.pods(&live).filter_map(why_not).collect();
            Error::Input(format!(
                "the operator's pod did not run within {} s: {}",
                START.as_secs(),
                if why.is_empty() { "there is none".to_owned() } else { why.join("; ") }
            ))
        })
    }

    /// Whether its pod is Ready.
    fn answers(&self, live: &Live, instance: &Instance) -> bool {
        let pod = self.pods(live).find(|p| p.name() == Some(&instance.pod));
        let mut conditions = pod.and_then(|p| p["status"]["conditions"].as_array()).into_iter().flatten();
        conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
    }

    /// Takes its pod away; the container gets the signal first.
    pub(crate) async fn stop(&self, signal: Option<Signal>) -> Result<(), Error> {
        let instance = self.running(&self.recorder.live());
        self.scale(0).await?;
        if let (Some(instance), Some(signal)) = (instance, signal) {
            // It may have ended by then.
            let _ = self.signal(&instance, signal).await;
        }
        let gone = |live: &Live| self.pods(live).next().is_none().then_some(());
        self.recorder.wait_for(END, gone).await;
        Ok(())
    }

    async fn scale(&self, replicas: u32) -> Result<(), Error> {
        let patch = json!({"spec": {"replicas": replicas}});
        merge_patch(&self.client, &self.url, &patch)
            .await
            .map_err(Error::request("scale the operator's Deployment"))?;
        Ok(())
    }

    fn lane(&self) -> Result<Arc<Lane>, Error> {
        self.lane.upgrade().ok_or_else(|| Error::Input("the cluster is gone".into()))
    }

    /// Signals the container's main process.
    pub(crate) async fn signal(&self, instance: &Instance, signal: Signal) -> Result<(), Error> {
        let name = match signal {
            Signal::Kill => "SIGKILL",
            Signal::Term => "SIGTERM",
            Signal::Int => "SIGINT",
        };
        Ok(nodes(self.lane()?.as_ref())?.signal_container(&instance.node, &instance.id, name).await?)
    }

    /// Freezes it.
    pub(crate) async fn pause(&self, instance: &Instance) -> Result<(), Error> {
        Ok(nodes(self.lane()?.as_ref())?.pause_container(&instance.node, &instance.id).await?)
    }

    /// Lets it go on.
    pub(crate) async fn resume(&self, instance: &Instance) -> Result<(), Error> {
        Ok(nodes(self.lane()?.as_ref())?.resume_container(&instance.node, &instance.id).await?)
    }

    fn pods<'a>(&'a self, live: &'a Live) -> impl Iterator<Item = &'a Value> {
        let index = self.index.to_string();
        let pods = live.world.of_kind("v1", "Pod").map(|l| &l.object);
        pods.filter(move |p| {
            p.namespace() == Some(&self.namespace) && p["metadata"]["labels"][REPLICA].as_str() == Some(&index)
        })
    }

    /// The container that runs now.
    pub(crate) fn running(&self, live: &Live) -> Option<Instance> {
        self.pods(live).find_map(|pod| {
            let status = self.status(pod)?;
            let id = status["containerID"].as_str().filter(|_| !status["state"]["running"].is_null())?;
            let node = pod["spec"]["nodeName"].as_str()?;
            Some(Instance { node: node.into(), pod: pod.name()?.into(), id: id.into() })
        })
    }

    /// How a container ended, once it is known; one whose pod is gone was killed with it.
    pub(crate) fn ended(&self, live: &Live, instance: &Instance) -> Option<Ended> {
        let Some(pod) = self.pods(live).find(|p| p.name() == Some(&instance.pod)) else {
            return Some(Ended { code: None, signal: Some(9) });
        };
        let status = self.status(pod)?;
        let terminated = [&status["state"]["terminated"], &status["lastState"]["terminated"]];
        let own = terminated.into_iter().find(|t| t["containerID"] == *instance.id)?;
        let code = own["exitCode"].as_i64().and_then(|c| i32::try_from(c).ok());
        // As a shell reports signals.
        let signal =
            own["signal"].as_i64().and_then(|s| i32::try_from(s).ok()).or(code.filter(|c| *c > 128).map(|c| c - 128));
        Some(Ended { code: code.filter(|_| signal.is_none()), signal })
    }

    fn status<'a>(&self, pod: &'a Value) -> Option<&'a Value> {
        let mut all = pod["status"]["containerStatuses"].as_array()?.iter();
        all.find(|c| c["name"] == *self.container)
    }

    /// Copies the container's output to a file and to `tail`, until it ends.
    pub(crate) async fn follow_log(&self, instance: Instance, tail: Arc<Mutex<VecDeque<String>>>, most: usize) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = LogParams {
            container: Some(self.container.clone()),
            follow: true,
            timestamps: true,
            ..LogParams::default()
        };
        let Ok(stream) = pods.log_stream(&instance.pod, &params).await else { return };
        let Ok(mut file) = std::fs::File::options().create(true).append(true).open(&self.log) else { return };
        let mut lines = stream.lines();
        while let Some(Ok(line)) = lines.next().await {
            let line = self.recorder.redactor().line(&line);
            // A full disk shows elsewhere.
            let _ = writeln!(file, "{line}");
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            if tail.len() == most {
                tail.pop_front();
            }
            tail.push_back(line);
        }
    }
}

fn nodes(lane: &Lane) -> Result<&Nodes, Error> {
    lane.nodes().ok_or_else(|| Error::Input("this provider has no real nodes".into()))
}

/// Why a pod does not run.
fn why_not(pod: &Value) -> Option<String> {
    let name = pod.name()?;
    let mut statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let waiting = statuses.find_map(|c| c["state"]["waiting"].as_object());
    let reason = waiting.map_or_else(
        || pod["status"]["phase"].as_str().unwrap_or("Pending").to_owned(),
        |w| {
            let text = |key: &str| w.get(key).and_then(Value::as_str).unwrap_or_default();
            format!("{}: {}", text("reason"), text("message"))
        },
    );
    Some(format!("pod {name} is {reason}"))
}

/// What a Deployment may mount or be reached by; permissions and accounts are ours.
fn is_mounted(document: &Value, kinds: &[KindInfo]) -> bool {
    let kind = document["kind"].as_str().unwrap_or_default();
    let known = kinds.iter().any(|k| k.kind == kind && k.namespaced);
    known && matches!(kind, "ConfigMap" | "Secret" | "Service" | "PersistentVolumeClaim")
}

fn placed(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    object
}

/// The Deployment of one replica, and the name of the operator's container.
fn rendered(
    deployment: &Value,
    spec: &DeploymentSpec,
    known: &Bindings,
    index: usize,
    proxy: SocketAddr,
) -> Result<(Value, String), Error> {
    let mut deployment = deployment.clone();
    let name = deployment.name().unwrap_or("operator").to_owned();
    deployment["metadata"]["name"] = json!(format!("{name}-{index}"));
    deployment["spec"]["replicas"] = json!(0);
    // A rolling update would have two pods at once, where a replica is one.
    deployment["spec"]["strategy"] = json!({"type": "Recreate"});
    deployment["spec"]["selector"]["matchLabels"][REPLICA] = json!(index.to_string());
    deployment["spec"]["template"]["metadata"]["labels"][REPLICA] = json!(index.to_string());
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod["serviceAccountName"] = json!(ACCOUNT);
    pod["automountServiceAccountToken"] = json!(false);
    let first = pod["containers"][0]["name"].as_str().map(ToOwned::to_owned);
    let container = spec.container.clone().or(first).unwrap_or_default();
    let mut found = false;
    for list in ["initContainers", "containers"] {
        for one in pod[list].as_array_mut().into_iter().flatten() {
            if list == "containers" && one["name"] == *container {
                found = true;
                if let Some(image) = &spec.image {
                    one["image"] = json!(image);
                    one["imagePullPolicy"] = json!("IfNotPresent");
                }
                let mut args = one["args"].as_array().cloned().unwrap_or_default();
                for arg in &spec.args {
                    args.push(json!(crate::arrange::text(arg, known)?));
                }
                one["args"] = Value::Array(args);
                let mut env = one["env"].as_array().cloned().unwrap_or_default();
                for (name, value) in &spec.env {
                    env.retain(|e| e["name"] != **name);
                    env.push(json!({"name": name, "value": crate::arrange::text(value, known)?}));
                }
                one["env"] = Value::Array(env);
            }
            redirect(one, proxy);
        }
    }
    if !found {
        return Err(Error::Input(format!("the Deployment {name} has no container {container:?}")));
    }
    // As the admission of ServiceAccounts makes it, but for the certificate.
    let volume = json!({"name": "spiritlevel-account", "projected": {"sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}});
    match pod["volumes"].as_array_mut() {
        Some(volumes) => volumes.push(volume),
        None => pod["volumes"] = json!([volume]),
    }
    Ok((deployment, container))
}

/// A container's way to the API server leads through the proxy.
fn redirect(container: &mut Value, proxy: SocketAddr) {
    let own = [
        json!({"name": "KUBERNETES_SERVICE_HOST", "value": proxy.ip().to_string()}),
        json!({"name": "KUBERNETES_SERVICE_PORT", "value": proxy.port().to_string()}),
    ];
    let mut env = container["env"].as_array().cloned().unwrap_or_default();
    env.retain(|e| own.iter().all(|o| o["name"] != e["name"]));
    env.extend(own);
    container["env"] = Value::Array(env);
    let mut mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
    mounts.retain(|m| m["mountPath"] != ACCOUNT_DIR);
    mounts.push(json!({"name": "spiritlevel-account", "mountPath": ACCOUNT_DIR, "readOnly": true}));
    container["volumeMounts"] = Value::Array(mounts);
}
