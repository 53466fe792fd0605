//! One run, phase by phase: arrange, steps, heal, settle, probe, teardown, and the judging of what happened.

use crate::{
    Error,
    api::Objects,
    arrange::{Surroundings, absolute, arrange, retract},
    harness_writes::HarnessWrites,
    hub::Guest,
    lane::Lane,
    probe::{SECOND, probe},
    reconnect::reconnected,
    recorder::{Live, Recorder},
    settle::{Goal, not_converged, settle},
    stage::Stage,
    steps::{Failure, Play},
};
use serde_json::Value;
use spiritlevel_model::{
    Meta, Period, Seed,
    fault::Action,
    history::{Event, FaultEvent, HISTORY_VERSION, Header, Phase, Record},
    plan::Plan,
    suite::Provider,
    verdict::{VERDICT_VERSION, Verdict, VerdictKind, Writes},
};
use spiritlevel_operator::Isolation;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// T when `converges` or `deletes` is switched off.
const DEFAULT_LIMIT: Period = Period::secs(90);
/// How still the world must be before faults that would last for ever are healed.
const STILL: Duration = Duration::from_millis(700);

/// What a run needs.
pub struct RunInput {
    /// What is done.
    pub plan: Plan,
    /// Where.
    pub lane: Arc<Lane>,
    /// The run's own folder in the reports.
    pub report_dir: PathBuf,
    /// What this machine allows.
    pub isolation: Isolation,
    /// The operator's program, when it was built from a module.
    pub binary: Option<PathBuf>,
    /// That module's folder.
    pub module: Option<PathBuf>,
    /// Hears of each phase.
    pub on_phase: Arc<dyn Fn(Phase) + Send + Sync>,
}

/// What a run was.
pub struct RunOutput {
    /// What was to be done.
    pub plan: Plan,
    /// The verdict.
    pub verdict: Verdict,
    /// Where its files are.
    pub dir: PathBuf,
    /// The deletion of its namespaces, which goes on outside its slot.
    pub cleanup: Option<Cleanup>,
}

/// What is left to do for a run that has been judged.
pub struct Cleanup {
    stage: Arc<Stage>,
    lane: Arc<Lane>,
    suite_dir: PathBuf,
    private: tempfile::TempDir,
    bindings: spiritlevel_model::bindings::Bindings,
    isolation: Isolation,
}

impl Cleanup {
    /// Deletes namespaces and cluster-scoped leftovers. An error is a line of its own, never a verdict.
    pub async fn finish(self) -> Result<(), Error> {
        let around = Surroundings {
            lane: &self.lane,
            suite_dir: self.suite_dir.clone(),
            private: self.private.path().into(),
            report_dir: PathBuf::new(),
            isolation: self.isolation.clone(),
            bindings: self.bindings.clone(),
        };
        let done = retract(&self.stage, &around).await;
        let guest: Arc<dyn Guest> = self.stage.clone();
        self.lane.hub().leave(&guest);
        done
    }
}

/// Runs a plan and judges it.
pub async fn run(input: RunInput) -> RunOutput {
    let (plan, dir) = (input.plan.clone(), input.report_dir.clone());
    match perform(input).await {
        Ok(output) => output,
        Err(e) => RunOutput { verdict: broken(&plan, vec![e.chain()]), plan, dir, cleanup: None },
    }
}

/// The verdict of a run that could not be done.
pub fn broken(plan: &Plan, reasons: Vec<String>) -> Verdict {
    Verdict {
        schema_version: VERDICT_VERSION,
        scenario: plan.scenario_name.clone(),
        suite: plan.suite_name.clone(),
        variant: plan.variant.clone(),
        matrix: plan.matrix_text(),
        provider: plan.suite.cluster.provider.name().into(),
        seed: plan.seed,
        verdict: VerdictKind::Error,
        reasons,
        duration_ms: 0.0,
        faults: Vec::new(),
        findings: Vec::new(),
        settle: Vec::new(),
        writes: Writes::default(),
        expected: None,
    }
}

async fn perform(input: RunInput) -> Result<RunOutput, Error> {
    let dir = &input.report_dir;
    std::fs::create_dir_all(dir).map_err(|e| Error::file("create", dir, e))?;
    write_plan(&input.plan, dir)?;
    let plan = Arc::new(input.plan.clone());
    let lane = &input.lane;
    let recorder = Arc::new(Recorder::create(&dir.join("history.jsonl"), lane.hub().kinds())?);
    recorder.record(Event::Header(Header {
        schema_version: HISTORY_VERSION,
        started: jiff::Timestamp::now().to_string(),
        harness: env!("CARGO_PKG_VERSION").into(),
        kubernetes: lane.version().into(),
    }));
    let clients = lane.clients();
    let writes = HarnessWrites::new(clients.conflict.clone(), clients.lease.clone(), &dir.join("undo.jsonl"));
    let stage = Stage::new(plan.clone(), recorder.clone(), writes).map_err(Error::Input)?;
    let private = tempfile::Builder::new()
        .prefix("spiritlevel-run-")
        .tempdir()
        .map_err(|e| Error::file("create", Path::new("a temporary folder"), e))?;
    let mut bindings = plan.bindings.clone();
    let bind = |path: &Option<PathBuf>| path.as_ref().map(|p| Value::from(p.to_string_lossy().into_owned()));
    bindings.extend(bind(&input.binary).map(|v| ("binary".to_owned(), v)));
    bindings.extend(bind(&input.module).map(|v| ("module".to_owned(), v)));
    let suite_dir = absolute(Path::new(&plan.suite_dir))?;
    let around = Surroundings {
        lane,
        suite_dir: suite_dir.clone(),
        private: private.path().into(),
        report_dir: absolute(dir)?,
        isolation: input.isolation.clone(),
        bindings: bindings.clone(),
    };
    let guest: Arc<dyn Guest> = stage.clone();
    lane.hub().join(guest);

    let phase = |phase: Phase| {
        recorder.record(Event::Phase(phase));
        (input.on_phase)(phase);
    };
    let outcome = phases(&stage, &around, &phase).await;
    phase(Phase::End);
    for replica in stage.replicas() {
        replica.stop(spiritlevel_model::fault::Signal::Kill, "the end of the run").await;
        replica.close().await;
    }
    stage.close().await;
    stage.drop_replicas();
    let records = recorder.finish()?;
    let mut verdict = judged(&plan, &records);
    if let Err(e) = &outcome {
        verdict.verdict = VerdictKind::Error;
        // Whatever the judge missed in what was recorded follows from this.
        verdict.reasons = vec![e.chain()];
    }
    if let Some(why) = lane.failure() {
        verdict.verdict = VerdictKind::Error;
        verdict.reasons.insert(0, format!("the control plane died: {why}"));
    }
    if recorder.live().overflow {
        verdict.verdict = VerdictKind::Inconclusive;
        verdict.reasons.push("the history grew beyond 256 MB and was cut".into());
    }
    write_verdict(&verdict, dir)?;
    let cleanup = Cleanup { stage, lane: lane.clone(), suite_dir, private, bindings, isolation: input.isolation };
    Ok(RunOutput { plan: input.plan, verdict, dir: input.report_dir, cleanup: Some(cleanup) })
}

/// The verdict of a history, compared with what the plan expects.
pub fn judged(plan: &Plan, records: &[Record]) -> Verdict {
    let mut verdict = spiritlevel_judge::judge(plan, records).verdict;
    if let Some(expect) = &plan.expect {
        verdict.expected = Some(spiritlevel_model::expectation::compare(expect, &verdict, &plan.bindings));
    }
    verdict
}

async fn phases(stage: &Arc<Stage>, around: &Surroundings<'_>, phase: &impl Fn(Phase)) -> Result<(), Error> {
    let (plan, lane) = (&stage.plan, around.lane);
    phase(Phase::Arrange);
    arrange(stage, around).await?;
    stage.recorder.first_step();
    phase(Phase::Steps);
    stage.arm_all();
    let play = Play::new(stage, around, absolute(Path::new(&plan.scenario_dir))?);
    let played = play.all().await;
    if let Err(Failure::Broken(_)) = played {
        // The history says which step; nothing that follows would mean anything.
        stage.heal_all();
        return Ok(());
    }
    if played.is_ok() {
        run_out(stage).await;
    }
    phase(Phase::Heal);
    stage.heal_all();
    thaw(stage, lane).await;
    let (t, quiet) = (plan.invariants.converges.unwrap_or(DEFAULT_LIMIT).0, plan.invariants.quiet.map(|q| q.window));
    reconnected(stage, plan.invariants.process_health.unwrap_or(DEFAULT_LIMIT).0.min(t)).await;
    phase(Phase::Settle);
    let settled = settle(stage, lane, Phase::Settle, Goal::Ready, t, quiet).await;
    if played.is_ok() && settled.converged && settled.settled {
        phase(Phase::Probe);
        if probe(stage, lane, &play.applied()).await? {
            phase(Phase::SettleProbe);
            settle(stage, lane, Phase::SettleProbe, Goal::Ready, t, quiet).await;
        }
    }
    phase(Phase::Teardown);
    let limit = plan.invariants.deletes.unwrap_or(DEFAULT_LIMIT).0;
    teardown(stage, around, limit).await?;
    phase(Phase::SettleTeardown);
    settle(stage, lane, Phase::SettleTeardown, Goal::Gone, limit, quiet).await;
    play.keep_promises();
    Ok(())
}

/// Lets containers go on that steps have frozen.
async fn thaw(stage: &Stage, lane: &Lane) {
    let frozen = std::mem::take(&mut *stage.frozen());
    for (node, container) in frozen {
        let Some(nodes) = lane.nodes() else { return };
        if let Err(e) = nodes.resume_container(&node, &container).await {
            // It may be gone, as what is frozen can be killed.
            let text = format!("container {container} on {node} was not resumed: {}", Error::from(e).chain());
            stage.recorder.record(Event::Note { text });
        }
    }
}

/// Lets the declared faults do their work: until each that is armed has fired, or the world is at rest without; until those
/// with an end have ended; and for those without one, until nothing more happens under them.
async fn run_out(stage: &Arc<Stage>) {
    let t = stage.plan.invariants.converges.unwrap_or(DEFAULT_LIMIT).0;
    let quiet = stage.plan.invariants.quiet.map_or(Duration::from_secs(2), |q| q.window.0);
    let deadline = tokio::time::Instant::now() + t;
    loop {
        let (unfired, lasting, endless) = open_faults(stage);
        let still = stillness(stage);
        let at_rest = {
            let live = stage.recorder.live();
            still >= quiet && not_converged(stage, &live, Goal::Ready, None).is_empty()
        };
        let done = match (unfired, lasting, endless) {
            (0, 0, 0) => true,
            (_, 0, _) if at_rest => true,
            (0, 0, _) => still >= STILL,
            _ => false,
        };
        if done || tokio::time::Instant::now() >= deadline {
            return;
        }
        // Both time and records count: a short look now and then is enough.
        let mut changes = stage.recorder.changes();
        let _ = tokio::time::timeout(Duration::from_millis(50), changes.changed()).await;
    }
}

/// How many armed faults have not fired, last for a given time, or last until heal.
fn open_faults(stage: &Stage) -> (usize, usize, usize) {
    let live = stage.recorder.live();
    let (mut armed, mut fired, mut over, mut held) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for record in &live.records {
        let Event::Fault(f) = &record.event else { continue };
        match f.what {
            FaultEvent::Armed => {
                armed.insert(f.name.as_str());
                over.remove(f.name.as_str());
            }
            FaultEvent::Fired { .. } => {
                fired.insert(f.name.as_str());
                held.insert(f.name.as_str());
            }
            FaultEvent::Healed => {
                over.insert(f.name.as_str());
            }
            FaultEvent::Released { .. } => {
                held.remove(f.name.as_str());
            }
            _ => {}
        }
    }
    let (mut unfired, mut lasting, mut endless) = (0, 0, 0);
    for fault in
        stage.plan.scenario.faults.iter().filter(|f| armed.contains(f.name.as_str()) && !over.contains(f.name.as_str()))
    {
        let name = fault.name.as_str();
        if !fired.contains(name) {
            unfired += 1;
        } else if fault.lasts.is_some()
            || (matches!(fault.action, Action::Hold { .. } | Action::HoldWatchStart { .. } | Action::Delay { .. })
                && held.contains(name))
        {
            lasting += 1;
        } else if fault.action.lasts() || matches!(fault.action, Action::Partition { .. }) {
            endless += 1;
        }
    }
    (unfired, lasting, endless)
}

fn stillness(stage: &Stage) -> Duration {
    let live = stage.recorder.live();
    let last = live.last_change_ms.max(live.last_cause_ms);
    drop(live);
    Duration::from_secs_f64(((stage.recorder.now_ms() - last) / 1000.0).max(0.0))
}

/// Deletes the subjects with the operator alive: the second one of the probe first, while its first still lives.
async fn teardown(stage: &Stage, around: &Surroundings<'_>, limit: Duration) -> Result<(), Error> {
    let subject = &stage.plan.suite.subject;
    let kinds = around.lane.hub().kinds();
    let objects = Objects { client: &around.lane.clients().user, kinds: &kinds, namespace: &stage.plan.namespace };
    let of_kind = |live: &Live| -> Vec<Value> {
        let all = live.world.of_kind(&subject.api_version, &subject.kind).map(|l| l.object.clone());
        all.filter(|o| o.namespace().is_some_and(|n| stage.namespaces().iter().any(|own| own == n))).collect()
    };
    let subjects = of_kind(&stage.recorder.live());
    let is_second = |o: &&Value| o.name().is_some_and(|n| n.ends_with(&format!("-{SECOND}")));
    for object in subjects.iter().filter(is_second) {
        let url = objects.url(&subject.api_version, &subject.kind, object.namespace(), object.name())?;
        objects.delete(&url, None).await?;
        let uid = object.uid();
        let gone = |live: &Live| {
            let there = uid.as_ref().is_some_and(|u| live.world.by_uid(u).is_some());
            (!there && live.world.predicted_collections().is_empty()).then_some(())
        };
        stage.recorder.wait_for(limit, gone).await;
    }
    for object in subjects.iter().filter(|o| !is_second(o)) {
        let url = objects.url(&subject.api_version, &subject.kind, object.namespace(), object.name())?;
        objects.delete(&url, None).await?;
    }
    Ok(())
}

fn write_plan(plan: &Plan, dir: &Path) -> Result<(), Error> {
    let path = dir.join("plan.yaml");
    let text =
        spiritlevel_model::yaml::to_yaml(plan).map_err(|e| Error::Input(format!("the plan cannot be written: {e}")))?;
    std::fs::write(&path, text).map_err(|e| Error::file("write", &path, e))
}

/// Writes `verdict.json`.
pub fn write_verdict(verdict: &Verdict, dir: &Path) -> Result<(), Error> {
    let path = dir.join("verdict.json");
    let mut text =
        serde_json::to_string_pretty(verdict).map_err(|e| Error::file("write", &path, std::io::Error::other(e)))?;
    text.push('\n');
    std::fs::write(&path, text).map_err(|e| Error::file("write", &path, e))
}

/// Where a run's files go: `<root>/<suite>/<scenario>[.variant][.matrix][.provider][.inside]/<seed>`.
pub fn report_dir(root: &Path, plan: &Plan) -> PathBuf {
    let mut scenario = plan.scenario_name.clone();
    for part in plan.variant.iter().cloned().chain(plan.matrix_text().map(|m| m.replace([' ', '/'], ""))) {
        scenario.push('.');
        scenario.push_str(&part);
    }
    // The same scenario elsewhere is another run.
    if plan.suite.cluster.provider != Provider::Local {
        scenario.push('.');
        scenario.push_str(plan.suite.cluster.provider.name());
    }
    if plan.suite.operator.is_inside() {
        scenario.push_str(".inside");
    }
    let Seed(seed) = plan.seed;
    let last = if plan.repetition == 0 { seed.to_string() } else { format!("{seed}.{}", plan.repetition + 1) };
    root.join(&plan.suite_name).join(scenario).join(last)
}
