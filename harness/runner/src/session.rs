//! One invocation: builds operators, starts lanes, runs plans side by side, and tells a reporter.

use crate::{
    Error,
    builds::{Built, build_all, build_key, crds},
    lane::{Lane, LaneTimes},
    place::{Place, cannot, place},
    run::{Cleanup, RunInput, RunOutput, broken, report_dir, run},
};
use futures::future::OptionFuture;
use serde_json::Value;
use spiritlevel_cluster::Progress;
use spiritlevel_model::{
    history::Phase,
    plan::Plan,
    suite::{OperatorScope, Provider},
};
use spiritlevel_operator::Isolation;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

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
    /// Leaves clusters of containers, and the runs' namespaces on them, where they are.
    pub keep: bool,
}

/// What happens in a session.
pub enum SessionEvent {
    /// A line about what is being done.
    Say(String),
    /// What a reader should know.
    Notice(String),
    /// A control plane is ready: its provider, its version, and how long it took.
    LaneReady(&'static str, String, LaneTimes),
    /// A run begins.
    RunStarted(Box<Plan>),
    /// A run is in another phase. Runs are told apart by their namespace: repetitions share a title.
    RunPhase(String, Phase),
    /// How far a step of a run is.
    RunProgress(String, String),
    /// A run was judged.
    RunFinished(Box<RunOutput>),
    /// A run that this provider cannot do.
    RunSkipped(Box<Plan>, String),
    /// Clearing up after a run failed.
    CleanupFailed(String, String),
}

/// Hears of everything.
pub type Listener = Arc<dyn Fn(SessionEvent) + Send + Sync>;

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
    place: Place,
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
        let slot = match place(&plan, options.keep) {
            Ok(place) => slots.assign(&plan, place, crds, options.jobs),
            Err(why) => {
                let verdict = broken(&plan, vec![why.chain()]);
                let dir = report_dir(&options.report_dir, &plan);
                tell(SessionEvent::RunFinished(Box::new(RunOutput { plan, verdict, dir, cleanup: None })));
                continue;
            }
        };
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
        let keep = options.keep && plan.suite.cluster.provider != Provider::Local;
        let cleanups = cleanups.clone();
        running.spawn(async move {
            // The lane's turn first: who waits for it must not keep a place from others.
            let Ok(_turn) = slot.turns.acquire().await else { return };
            let Ok(place) = places.acquire().await else { return };
            if failed.is_cancelled() || cancel.is_cancelled() {
                return;
            }
            let dir = report_dir(&root, &plan);
            tell(SessionEvent::RunStarted(Box::new(plan.clone())));
            let mut output = match slot.lane(&tell).await {
                Ok(lane) => {
                    let (run_namespace, hears) = (plan.namespace.clone(), tell.clone());
                    let on_phase = Arc::new(move |phase| hears(SessionEvent::RunPhase(run_namespace.clone(), phase)));
                    let (run_namespace, hears) = (plan.namespace.clone(), tell.clone());
                    let on_progress =
                        Arc::new(move |text| hears(SessionEvent::RunProgress(run_namespace.clone(), text)));
                    let begun = tokio::time::Instant::now();
                    let input = RunInput {
                        plan,
                        lane,
                        report_dir: dir,
                        isolation,
                        binary: built.binary,
                        module: built.module,
                        on_phase,
                        on_progress,
                    };
                    let mut output = Box::pin(run(input)).await;
                    output.verdict.duration_ms = (begun.elapsed().as_secs_f64() * 1000.0).round();
                    output
                }
                Err(why) => RunOutput { verdict: broken(&plan, vec![why]), plan, dir, cleanup: None },
            };
            if keep {
                output.cleanup = None;
            }
            let failed = fail_fast.then_some(&failed);
            if !output.plan.scenario.disturbs_control_plane() {
                finish(output, &tell, &cleanups, failed);
                return;
            }
            // The next run on this control plane takes it away under whatever still goes on.
            drop(place);
            let (title, cleanup) = (output.plan.title(), output.cleanup.take());
            finish(output, &tell, &cleanups, failed);
            if let Some(Err(e)) = OptionFuture::from(cleanup.map(Cleanup::finish)).await {
                tell(SessionEvent::CleanupFailed(title, e.chain()));
            }
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
            let lane = Lane::start(&self.place, self.crds.clone(), &says).await.map_err(|e| e.chain())?;
            tell(SessionEvent::LaneReady(lane.cluster().provider(), lane.version().into(), lane.times()));
            if self.place.keep {
                tell(SessionEvent::Notice(match lane.cluster().kept() {
                    Some(how) => how,
                    None => "--keep: nothing is kept of provider local, whose processes end with spiritlevel".into(),
                }));
            }
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
    place: Place,
    exclusive: bool,
    runs: usize,
    /// The suite and variant whose operator it is for, where it is exclusive.
    owner: String,
}

impl Slots {
    fn assign(&mut self, plan: &Plan, place: Place, crds: Vec<Value>, jobs: usize) -> usize {
        let disturbs = plan.scenario.disturbs_control_plane();
        let exclusive = disturbs || plan.suite.operator.scope == OperatorScope::Cluster;
        // Those that disturb it take turns on one that they have for themselves.
        let owner = if exclusive { format!("{}{disturbs}", build_key(plan)) } else { String::new() };
        let name = |crd: &Value| crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let crds: BTreeMap<String, Value> = crds.into_iter().map(|c| (name(&c), c)).collect();
        let fits = |w: &Wanted| {
            let agree = crds.iter().all(|(n, c)| w.crds.get(n).is_none_or(|known| known == c));
            w.exclusive == exclusive && w.owner == owner && w.place.serves(&place) && agree
        };
        let fitting: Vec<usize> = (0..self.list.len()).filter(|i| fits(&self.list[*i])).collect();
        let may_add =
            exclusive && fitting.len() < jobs.min(place.most()) && fitting.iter().all(|i| self.list[*i].runs >= 2);
        let chosen = fitting.into_iter().min_by_key(|i| self.list[*i].runs).filter(|_| !may_add);
        let index = chosen.unwrap_or_else(|| {
            let wanted = Wanted { crds: BTreeMap::new(), place: place.clone(), exclusive, runs: 0, owner };
            self.list.push(wanted);
            self.list.len() - 1
        });
        self.list[index].crds.extend(crds);
        let images = &mut self.list[index].place.images;
        images.extend(place.images.into_iter().filter(|i| !images.contains(i)).collect::<Vec<_>>());
        self.list[index].runs += 1;
        index
    }

    fn made(wanted: Wanted) -> Arc<Slot> {
        Arc::new(Slot {
            lane: OnceCell::new(),
            crds: wanted.crds.into_values().collect(),
            place: wanted.place,
            turns: Semaphore::new(if wanted.exclusive { 1 } else { Semaphore::MAX_PERMITS }),
        })
    }
}
