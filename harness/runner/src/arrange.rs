//! Arranging a run: namespaces, the operator's account and permissions, what exists before, and the operator itself.

use crate::{
    Error,
    api::Objects,
    files,
    inside::Inside,
    lane::Lane,
    rbac::{ACCOUNT, Account},
    replica::{Place, Replica},
    stage::Stage,
    token::{self, Credentials},
};
use serde_json::json;
use spiritlevel_cluster::kubelet_stub::{Completion, KubeletRules, PodMatch, PodPhase, PodState};
use spiritlevel_model::{
    Actor, Meta, ResourceKey,
    bindings::{self, Bindings, Unresolved},
    history::Event,
    suite::{Access, DeploymentSpec, Kubelet, Network, RestartPolicy},
};
use spiritlevel_operator::{Bind, Isolation, Launch, Sandbox, SandboxSpec, ServiceAccountDir};
use spiritlevel_proxy::HostPort;
use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The API server's port as the operator sees it.
const PORT: u16 = 6443;
/// How long the operator may take until it watches its subjects; slower ones are waited for by the steps.
const UP: Duration = Duration::from_secs(20);

/// What arranging needs beside the stage.
pub(crate) struct Surroundings<'a> {
    /// The control plane.
    pub(crate) lane: &'a Arc<Lane>,
    /// Where relative files of the suite start.
    pub(crate) suite_dir: PathBuf,
    /// A private folder of the run: token, kubeconfig, homes.
    pub(crate) private: PathBuf,
    /// Where the operator's logs go.
    pub(crate) report_dir: PathBuf,
    /// What this machine allows.
    pub(crate) isolation: Isolation,
    /// Bindings that are known now: the plan's, `($binary)`, `($module)`.
    pub(crate) bindings: Bindings,
}

/// Makes everything up to the running operator.
pub(crate) async fn arrange(stage: &Arc<Stage>, around: &Surroundings<'_>) -> Result<(), Error> {
    let plan = stage.plan.clone();
    let kinds = around.lane.hub().kinds();
    let objects = Objects { client: &around.lane.clients().arrange, kinds: &kinds, namespace: &plan.namespace };
    for namespace in stage.namespaces() {
        let labels = json!({"spiritlevel.dev/run": plan.namespace});
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
        objects.create(&object).await?;
        if let Some(kubelet) = around.lane.kubelet() {
            kubelet.rules(namespace, rules(&plan.suite.kubelet));
        }
    }
    account(&objects, stage, around).await?;
    let token = token::ask(objects.client, &plan.operator_namespace, &stage.recorder).await?;
    for name in &plan.suite.before {
        for object in files::manifests(&around.suite_dir, name, &around.bindings)? {
            objects.apply(&object).await?;
        }
    }
    // Pods need the account that its controller makes in every namespace.
    let accounts = ResourceKey::new("", "serviceaccounts");
    let there = |live: &crate::recorder::Live| live.world.at(&accounts, Some(&plan.namespace), "default").map(|_| ());
    stage.recorder.wait_for(Duration::from_secs(30), there).await;

    let replicas = plan.scenario.replicas.unwrap_or(plan.process.replicas);
    for index in 0..replicas {
        let made = match plan.suite.operator.inside() {
            Some(deployment) => inside(stage, around, deployment, index).await?,
            None => replica(stage, around, index, &token)?,
        };
        stage.add_replica(made);
    }
    for replica in stage.replicas() {
        replica.start(None).await?;
    }
    until_up(stage).await
}

/// The operator's ServiceAccount with its permissions.
async fn account(objects: &Objects<'_>, stage: &Stage, around: &Surroundings<'_>) -> Result<(), Error> {
    let plan = &stage.plan;
    let system = &plan.operator_namespace;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": system}});
    objects.create(&account).await?;
    let rewriter = Account { namespace: &plan.namespace, operator_namespace: system };
    let mut rules = Vec::new();
    for file in &plan.suite.operator.service_account.rbac {
        let file = text(file, &around.bindings)?;
        rules.extend(files::foreign_manifests(&around.suite_dir, &file)?);
    }
    let mut granted = rewriter.rewrite(&rules);
    if plan.suite.operator.service_account.cluster_admin {
        let text = "the operator may do everything (clusterAdmin): its permissions are not tested".to_owned();
        stage.recorder.record(Event::Note { text });
        granted.extend(rewriter.cluster_admin());
    }
    for object in &granted {
        objects.apply(object).await?;
    }
    Ok(())
}

/// Takes back what lies outside the run's namespaces.
pub(crate) async fn retract(stage: &Stage, around: &Surroundings<'_>) -> Result<(), Error> {
    let plan = &stage.plan;
    let kinds = around.lane.hub().kinds();
    let objects = Objects { client: &around.lane.clients().arrange, kinds: &kinds, namespace: &plan.namespace };
    let rewriter = Account { namespace: &plan.namespace, operator_namespace: &plan.operator_namespace };
    let mut rules = rewriter.cluster_admin();
    for file in &plan.suite.operator.service_account.rbac {
        rules.extend(rewriter.rewrite(&files::foreign_manifests(&around.suite_dir, &text(file, &around.bindings)?)?));
    }
    for object in rules.iter().filter(|o| o.namespace().is_none()) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let url = objects.url("rbac.authorization.k8s.io/v1", kind, None, object.name())?;
        objects.delete(&url, None).await?;
    }
    for namespace in stage.namespaces() {
        // The namespace controller takes five seconds; nobody waits for it.
        objects.delete(&format!("/api/v1/namespaces/{namespace}"), None).await?;
        if let Some(kubelet) = around.lane.kubelet() {
            kubelet.forget(namespace);
        }
    }
    Ok(())
}

struct InSandbox(Sandbox);

impl spiritlevel_proxy::Bind for InSandbox {
    fn bind(&self) -> io::Result<std::net::TcpListener> {
        Bind::bind(&self.0)
    }

    fn address(&self) -> SocketAddr {
        Bind::address(&self.0)
    }
}

fn replica(stage: &Arc<Stage>, around: &Surroundings<'_>, index: usize, token: &str) -> Result<Arc<Replica>, Error> {
    let plan = &stage.plan;
    let proxy = around.lane.proxy();
    let home = around.private.join(format!("operator-{index}"));
    let account =
        ServiceAccountDir::create(home.join("serviceaccount"), token, proxy.ca_pem(), &plan.operator_namespace)?;
    let sandbox = Sandbox::create(SandboxSpec {
        isolation: around.isolation.clone(),
        network: match plan.process.network {
            Network::Isolated => spiritlevel_operator::Network::Isolated,
            Network::Host => spiritlevel_operator::Network::Host,
        },
        hostname: Some(format!("operator-{index}")),
        service_account: Some(account.path().into()),
        hosts: None,
        port: PORT,
    })?;
    let actor = Actor::operator(index);
    let listener = proxy.listen(actor.clone(), Arc::new(InSandbox(sandbox.clone())), stage.clone())?;
    let endpoint = spiritlevel_cluster::Endpoint { url: listener.url(), ca_pem: proxy.ca_pem().to_owned() };
    let kubeconfig = home.join("kubeconfig");
    let credentials = Credentials {
        client: around.lane.clients().arrange.clone(),
        account,
        kubeconfig: kubeconfig.clone(),
        endpoint,
        operator_namespace: plan.operator_namespace.clone(),
        namespace: plan.namespace.clone(),
    };
    credentials.write_kubeconfig(token)?;
    let mut known = around.bindings.clone();
    known.insert("kubeconfig".into(), json!(kubeconfig.to_string_lossy()));
    known.insert("replica".into(), json!(index));
    let command = plan.process.command.iter().map(|a| text(a, &known)).collect::<Result<Vec<_>, _>>()?;
    let mut env = BTreeMap::new();
    for (name, value) in &plan.process.env {
        env.insert(name.clone(), text(value, &known)?);
    }
    let launch = Launch {
        command,
        env,
        dir: around.suite_dir.clone(),
        home: home.join("home"),
        log: around.report_dir.join(format!("operator-{index}.log")),
        access: match plan.process.access {
            Access::InCluster => spiritlevel_operator::Access::InCluster,
            Access::Kubeconfig => spiritlevel_operator::Access::Kubeconfig(kubeconfig),
        },
    };
    let place = Place::Beside(sandbox, Box::new((launch, credentials)));
    Ok(Replica::new(actor, place, listener, stage.recorder.clone(), plan.process.restart))
}

/// A replica as a Deployment in the cluster.
async fn inside(
    stage: &Arc<Stage>,
    around: &Surroundings<'_>,
    spec: &DeploymentSpec,
    index: usize,
) -> Result<Arc<Replica>, Error> {
    let lane = around.lane;
    let Some(nodes) = lane.nodes() else {
        return Err(Error::Input("the operator is to run inside the cluster, which has no real nodes".into()));
    };
    let actor = Actor::operator(index);
    let bind = Arc::new(HostPort::on(nodes.host_address()));
    let listener = lane.proxy().listen(actor.clone(), bind, stage.clone())?;
    let inside = Inside::create(stage, around, lane.clone(), spec, index, listener.address()).await?;
    let place = Place::Inside(Arc::new(inside));
    Ok(Replica::new(actor, place, listener, stage.recorder.clone(), stage.plan.process.restart))
}

/// Until a replica watches the subjects, or asks for anything at all for long enough.
async fn until_up(stage: &Stage) -> Result<(), Error> {
    let subject = &stage.plan.suite.subject;
    // One that comes up at the second try is a finding, not an error: its Deployment would have brought it back as well.
    let tries = match stage.plan.process.restart.policy {
        RestartPolicy::Always => 3,
        RestartPolicy::Never => 1,
    };
    let watches = |live: &crate::recorder::Live| {
        let resource =
            live.world.kind(&subject.api_version, &subject.kind).map(spiritlevel_model::history::KindInfo::key);
        let ended = stage.replicas().iter().any(|r| r.crashes() >= tries);
        let opened = live.records.iter().any(|r| match &r.event {
            Event::StreamOpened(s) => s.actor.is_operator() && Some(&s.resource) == resource.as_ref(),
            _ => false,
        });
        (opened || ended).then_some(opened)
    };
    match stage.recorder.wait_for(UP, watches).await {
        Some(true) => Ok(()),
        Some(false) => {
            let replicas = stage.replicas();
            let failed = replicas.iter().find(|r| r.crashes() > 0);
            let exit = stage.recorder.live().records.iter().rev().find_map(|r| match &r.event {
                Event::Process(p) => match p.what {
                    spiritlevel_model::history::ProcessEvent::Exited { code: Some(code), .. } => {
                        Some(format!("exit code {code}"))
                    }
                    spiritlevel_model::history::ProcessEvent::Exited { signal: Some(signal), .. } => {
                        Some(format!("signal {signal}"))
                    }
                    _ => None,
                },
                _ => None,
            });
            let lines = failed.map(|r| r.tail(20).join("\n")).unwrap_or_default();
            Err(Error::EndedAtOnce { exit: exit.unwrap_or_else(|| "an unknown status".into()), lines })
        }
        None => {
            let text = format!("the operator had not opened a watch on {} within {} s", subject.kind, UP.as_secs());
            stage.recorder.record(Event::Note { text });
            Ok(())
        }
    }
}

/// A string with every binding put in.
pub(crate) fn text(template: &str, known: &Bindings) -> Result<String, Error> {
    bindings::resolve_text(template, known, Unresolved::Error)
        .map_err(|missing| Error::Input(missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))
}

fn rules(kubelet: &Kubelet) -> KubeletRules {
    let matches = kubelet.rules.iter().map(|rule| PodMatch {
        labels: rule.labels.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        ready_after: rule.ready_after.map(|p| p.0),
        state: rule.phase.as_deref().and_then(phase).map(PodState::Phase),
        ..PodMatch::default()
    });
    KubeletRules {
        pod_ready_after: kubelet.pod_ready_after.0,
        jobs: Completion { complete_after: kubelet.jobs.complete_after.0, exit_code: kubelet.jobs.exit_code },
        matches: matches.collect(),
        ..KubeletRules::default()
    }
}

/// A pod's phase by its name.
pub(crate) fn phase(name: &str) -> Option<PodPhase> {
    match name {
        "Pending" => Some(PodPhase::Pending),
        "Running" => Some(PodPhase::Running),
        "Succeeded" => Some(PodPhase::Succeeded),
        "Failed" => Some(PodPhase::Failed),
        _ => None,
    }
}

/// A path as it is now, for processes with another working directory.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|e| Error::file("find", path, e))
}
