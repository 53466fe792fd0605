//! One invocation: builds operators, starts lanes, runs plans side by side, and tells a reporter.

use crate::{
    Error, files,
    lane::{Lane, LaneTimes},
    run::{Cleanup, RunInput, RunOutput, broken, report_dir, run},
};
use serde_json::Value;
use spiritlevel_cluster::Progress;
use spiritlevel_model::{
    bindings::Bindings,
    history::Phase,
    plan::Plan,
    suite::{Build, OperatorScope},
};
use spiritlevel_operator::Isolation;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// Control planes at once, whatever `--jobs` says: each takes 400 MB and a start of 5 s.
const MOST_LANES: usize = 4;
/// Until namespaces must be gone after the last run; the control plane ends then anyway.
const LAST_CLEANUPS: Duration = Duration::from_secs(3);

/// What a session does.
pub struct SessionOptions {
    /// Runs at once.
    pub jobs: usize,
    /// Where reports go.
    pub report_dir: PathBuf,
    /// Stops after the first run that does not pass.
    pub fail_fast: bool,
}

/// What happens in a session.
pub enum SessionEvent {
    /// A line about what is being done.
    Say(String),
    /// What a reader should know.
    Notice(String),
    /// A control plane is ready.
    LaneReady(LaneTimes),
    /// A run begins.
    RunStarted(Box<Plan>),
    /// A run is in another phase. Runs are told apart by their namespace: repetitions share a title.
    RunPhase(String, Phase),
    /// A run was judged.
    RunFinished(Box<RunOutput>),
    /// A run that this provider cannot do.
    RunSkipped(Box<Plan>, String),
    /// Clearing up after a run failed.
    CleanupFailed(String, String),
}

/// Hears of everything.
pub type Listener = Arc<dyn Fn(SessionEvent) + Send + Sync>;

/// What was made for a suite's operator.
#[derive(Clone, Default)]
struct Built {
    binary: Option<PathBuf>,
    module: Option<PathBuf>,
}

struct Says(Listener);

impl Progress for Says {
    fn say(&self, text: &str) {
        (self.0)(SessionEvent::Say(text.into()));
    }
}

/// A lane that is started when the first run needs it.
struct Slot {
    lane: OnceCell<Result<Arc<Lane>, String>>,
    crds: Vec<Value>,
    api_server_args: Vec<String>,
    /// One run at a time for operators that look at all namespaces.
    turns: Semaphore,
}

/// Runs plans. Returns when all are done, or when `cancel` is; every process has ended then.
pub async fn session(
    plans: Vec<Plan>,
    options: SessionOptions,
    tell: Listener,
    cancel: CancellationToken,
) -> Result<(), Error> {
    let (plans, skipped): (Vec<_>, Vec<_>) = plans.into_iter().partition(|p| cannot(p).is_none());
    for plan in skipped {
        let why = cannot(&plan).unwrap_or_default();
        tell(SessionEvent::RunSkipped(Box::new(plan), why));
    }
    if plans.is_empty() {
        return Ok(());
    }
    let isolation = spiritlevel_operator::probe().await?;
    if let Isolation::Host { why } = &isolation {
        tell(SessionEvent::Notice(format!(
            "operators run in this machine's network, with ports of their own and a kubeconfig: {why}"
        )));
    }
    let built = tokio::select! {
        built = build_all(&plans, &tell) => built,
        () = cancel.cancelled() => return Err(Error::Cancelled),
    };
    let mut slots = Slots::default();
    let mut work = Vec::new();
    for plan in plans {
        let prepared = match built.get(&build_key(&plan)) {
            Some(Err(why)) => Err(why.clone()),
            Some(Ok(built)) => crds(&plan, built).map(|crds| (built.clone(), crds)).map_err(|e| e.chain()),
            None => Ok((Built::default(), Vec::new())),
        };
        let (built, crds) = match prepared {
            Ok(prepared) => prepared,
            // Another suite may still be fine.
            Err(why) => {
                let verdict = broken(&plan, vec![why]);
                let dir = report_dir(&options.report_dir, &plan);
                tell(SessionEvent::RunFinished(Box::new(RunOutput { plan, verdict, dir, cleanup: None })));
                continue;
            }
        };
        let slot = slots.assign(&plan, crds, options.jobs);
        work.push((plan, built, slot));
    }
    let slots: Vec<Arc<Slot>> = slots.list.into_iter().map(Slots::made).collect();
    let cleanups: Arc<Mutex<JoinSet<()>>> = Arc::default();
    let result = all(work, &slots, &options, &isolation, &tell, &cleanups, &cancel).await;
    let mut left = std::mem::take(&mut *cleanups.lock().unwrap_or_else(PoisonError::into_inner));
    if result.is_ok() {
        let _ = tokio::time::timeout(LAST_CLEANUPS, async { while left.join_next().await.is_some() {} }).await;
    }
    left.shutdown().await;
    let mut stopping = JoinSet::new();
    for slot in slots {
        let lane = Arc::into_inner(slot).and_then(|slot| slot.lane.into_inner()).and_then(Result::ok);
        stopping.extend(lane.map(|lane| stop(lane, tell.clone())));
    }
    while stopping.join_next().await.is_some() {}
    result
}

/// Ends a control plane. Every run on it is over, so that this is its last handle.
async fn stop(lane: Arc<Lane>, tell: Listener) {
    let Some(lane) = Arc::into_inner(lane) else { return };
    if let Err(e) = lane.stop().await {
        tell(SessionEvent::CleanupFailed("the control plane".into(), e.chain()));
    }
}

/// Returns when no task of a run is left: cancelled ones are waited for, since they hold their control plane.
async fn all(
    work: Vec<(Plan, Built, usize)>,
    slots: &[Arc<Slot>],
    options: &SessionOptions,
    isolation: &Isolation,
    tell: &Listener,
    cleanups: &Arc<Mutex<JoinSet<()>>>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let places = Arc::new(Semaphore::new(options.jobs.max(1)));
    let failed = CancellationToken::new();
    let mut running = JoinSet::new();
    for (plan, built, slot) in work {
        let slot = slots[slot].clone();
        let (places, tell, failed, cancel) = (places.clone(), tell.clone(), failed.clone(), cancel.clone());
        let (root, isolation, fail_fast) = (options.report_dir.clone(), isolation.clone(), options.fail_fast);
        let cleanups = cleanups.clone();
        running.spawn(async move {
            // The lane's turn first: who waits for it must not keep a place from others.
            let Ok(_turn) = slot.turns.acquire().await else { return };
            let Ok(_place) = places.acquire().await else { return };
            if failed.is_cancelled() || cancel.is_cancelled() {
                return;
            }
            let dir = report_dir(&root, &plan);
            tell(SessionEvent::RunStarted(Box::new(plan.clone())));
            let output = match slot.lane(&tell).await {
                Ok(lane) => {
                    let (run_namespace, hears) = (plan.namespace.clone(), tell.clone());
                    let on_phase = Arc::new(move |phase| hears(SessionEvent::RunPhase(run_namespace.clone(), phase)));
                    let begun = tokio::time::Instant::now();
                    let input = RunInput {
                        plan,
                        lane,
                        report_dir: dir,
                        isolation,
                        binary: built.binary,
                        module: built.module,
                        on_phase,
                    };
                    let mut output = Box::pin(run(input)).await;
                    output.verdict.duration_ms = (begun.elapsed().as_secs_f64() * 1000.0).round();
                    output
                }
                Err(why) => RunOutput { verdict: broken(&plan, vec![why]), plan, dir, cleanup: None },
            };
            finish(output, &tell, &cleanups, fail_fast.then_some(&failed));
        });
    }
    loop {
        tokio::select! {
            done = running.join_next() => if done.is_none() { return Ok(()) },
            () = cancel.cancelled() => {
                running.shutdown().await;
                return Err(Error::Cancelled);
            }
        }
    }
}

fn finish(mut output: RunOutput, tell: &Listener, cleanups: &Mutex<JoinSet<()>>, failed: Option<&CancellationToken>) {
    if let Some(cleanup) = output.cleanup.take() {
        let (title, tell) = (output.plan.title(), tell.clone());
        let mut cleanups = cleanups.lock().unwrap_or_else(PoisonError::into_inner);
        cleanups.spawn(async move {
            if let Err(e) = Cleanup::finish(cleanup).await {
                tell(SessionEvent::CleanupFailed(title, e.chain()));
            }
        });
        while cleanups.try_join_next().is_some() {}
    }
    let passed = output.verdict.outcome() == spiritlevel_model::verdict::VerdictKind::Pass;
    tell(SessionEvent::RunFinished(Box::new(output)));
    if let Some(failed) = failed.filter(|_| !passed) {
        failed.cancel();
    }
}

impl Slot {
    async fn lane(&self, tell: &Listener) -> Result<Arc<Lane>, String> {
        let start = async || {
            let says = Says(tell.clone());
            let lane =
                Lane::start(self.crds.clone(), self.api_server_args.clone(), &says).await.map_err(|e| e.chain())?;
            tell(SessionEvent::LaneReady(lane.times()));
            Ok(Arc::new(lane))
        };
        self.lane.get_or_init(start).await.clone()
    }
}

/// Which control planes there will be: runs share one if their CRDs agree and their operators keep to their namespace.
#[derive(Default)]
struct Slots {
    list: Vec<Wanted>,
}

struct Wanted {
    crds: BTreeMap<String, Value>,
    api_server_args: Vec<String>,
    exclusive: bool,
    runs: usize,
    /// The suite and variant whose operator it is for, where it is exclusive.
    owner: String,
}

impl Slots {
    fn assign(&mut self, plan: &Plan, crds: Vec<Value>, jobs: usize) -> usize {
        let exclusive = plan.suite.operator.scope == OperatorScope::Cluster;
        let owner = if exclusive { build_key(plan) } else { String::new() };
        let name = |crd: &Value| crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let crds: BTreeMap<String, Value> = crds.into_iter().map(|c| (name(&c), c)).collect();
        let args = &plan.suite.cluster.apiserver_args;
        let fits = |w: &Wanted| {
            let agree = crds.iter().all(|(n, c)| w.crds.get(n).is_none_or(|known| known == c));
            w.exclusive == exclusive && w.owner == owner && w.api_server_args == *args && agree
        };
        let fitting: Vec<usize> = (0..self.list.len()).filter(|i| fits(&self.list[*i])).collect();
        let may_add =
            exclusive && fitting.len() < jobs.min(MOST_LANES) && fitting.iter().all(|i| self.list[*i].runs >= 2);
        let chosen = fitting.into_iter().min_by_key(|i| self.list[*i].runs).filter(|_| !may_add);
        let index = chosen.unwrap_or_else(|| {
            let wanted = Wanted { crds: BTreeMap::new(), api_server_args: args.clone(), exclusive, runs: 0, owner };
            self.list.push(wanted);
            self.list.len() - 1
        });
        self.list[index].crds.extend(crds);
        self.list[index].runs += 1;
        index
    }

    fn made(wanted: Wanted) -> Arc<Slot> {
        Arc::new(Slot {
            lane: OnceCell::new(),
            crds: wanted.crds.into_values().collect(),
            api_server_args: wanted.api_server_args,
            turns: Semaphore::new(if wanted.exclusive { 1 } else { Semaphore::MAX_PERMITS }),
        })
    }
}

/// What this provider cannot do for a scenario.
fn cannot(plan: &Plan) -> Option<String> {
    let requires = plan.scenario.requires?;
    if requires.real_pods {
        return Some("needs pods that run (requires.realPods); provider local has a kubelet stub".into());
    }
    let nodes = requires.nodes.filter(|n| *n > 1)?;
    Some(format!("needs {nodes} nodes; provider local has one"))
}

fn crds(plan: &Plan, built: &Built) -> Result<Vec<Value>, Error> {
    let mut known = Bindings::new();
    if let Some(module) = &built.module {
        known.insert("module".into(), Value::from(module.to_string_lossy().into_owned()));
    }
    let mut crds = Vec::new();
    for name in &plan.suite.crds {
        let name = crate::arrange::text(name, &known)?;
        let found = files::foreign_manifests(Path::new(&plan.suite_dir), &name)?;
        crds.extend(found.into_iter().filter(|o| o["kind"] == "CustomResourceDefinition"));
    }
    Ok(crds)
}

/// The same for plans that share a program.
fn build_key(plan: &Plan) -> String {
    serde_json::to_string(&(&plan.suite_dir, &plan.suite.operator.build)).unwrap_or_default()
}

/// What became of each build: one that fails is an error of its own runs only.
async fn build_all(plans: &[Plan], tell: &Listener) -> BTreeMap<String, Result<Built, String>> {
    let mut all = BTreeMap::new();
    for plan in plans {
        let key = build_key(plan);
        if all.contains_key(&key) {
            continue;
        }
        let built = match &plan.suite.operator.build {
            Some(spec) => build(spec, plan, tell).await.map_err(|e| e.chain()),
            None => Ok(Built::default()),
        };
        all.insert(key, built);
    }
    all
}

async fn build(spec: &Build, plan: &Plan, tell: &Listener) -> Result<Built, Error> {
    use spiritlevel_operator::{BuildSpec, CommandBuild, GoModule, build, cache_dir, module_dir};
    let dir = crate::arrange::absolute(Path::new(&plan.suite_dir))?;
    let say = |line: &str| tell(SessionEvent::Say(format!("{}: {line}", plan.suite_name)));
    let mut built = Built::default();
    let spec = match (&spec.command, &spec.go_module) {
        (Some(command), _) => BuildSpec::Command(CommandBuild {
            command: command.clone(),
            dir: dir.clone(),
            produces: dir.join(spec.produces.clone().unwrap_or_default()),
        }),
        (None, Some(module)) => {
            built.module = Some(module_dir(&module.module, &module.version, &say).await?);
            BuildSpec::GoModule(GoModule {
                module: module.module.clone(),
                version: module.version.clone(),
                package: module.package.clone(),
                replace: BTreeMap::new(),
            })
        }
        (None, None) => return Ok(built),
    };
    built.binary = Some(build(&spec, &cache_dir(), &say).await?);
    Ok(built)
}
