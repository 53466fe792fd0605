//! Scenarios as trials: all that are chosen run in one session, side by side, on control planes that they share; each trial
//! waits for its own run. Under nextest, which starts a process for each trial, a session has one run.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use spiritlevel::{
    Suite, lacking,
    model::{plan::Plan, verdict::VerdictKind},
    plans, run_plans,
};
use spiritlevel_report::{Detail, Event, Look, block};
use std::{
    collections::BTreeMap,
    path::Path,
    process::ExitCode,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
};

/// Runs every scenario of these suites, each with what is to be added to its titles, so many at once.
pub(crate) fn run(suites: &[(Suite, &str)], jobs: usize) -> ExitCode {
    if let Some(code) = spiritlevel::intercept() {
        return code;
    }
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Paths in plans are relative, and read well.
    std::env::set_current_dir(&root).expect("the repository is there");
    let mut all = Vec::new();
    for (suite, at) in suites {
        match plans(suite) {
            Ok(plans) => all.extend(plans.into_iter().map(|plan| (format!("{}{at}", plan.title()), plan))),
            Err(error) => {
                eprintln!("failed to {error}: see `spiritlevel lint scenarios operators-under-test`");
                return ExitCode::FAILURE;
            }
        }
    }
    let mut places: BTreeMap<(&str, bool, Vec<String>), Option<String>> = BTreeMap::new();
    let session = Arc::new(Session::default());
    let (mut trials, mut chosen) = (Vec::new(), Vec::new());
    for (title, plan) in all {
        let cluster = &plan.suite.cluster;
        let place = (cluster.provider.name(), cluster.agent, cluster.images.clone());
        // Asked once for each place: without Docker, or without images, a trial is skipped with the reason.
        let lacks = places.entry(place).or_insert_with(|| lacking(&plan)).clone();
        let (session, key, skipped) = (session.clone(), plan.namespace.clone(), lacks.clone());
        let trial = Trial::ignorable_test(title, move || match skipped {
            Some(why) => Ok(Completion::ignored_with(why)),
            None => session.outcome(&key),
        });
        if lacks.is_none() && !arguments.is_filtered_out(&trial) && !arguments.is_ignored(&trial) {
            chosen.push(plan);
        }
        trials.push(trial);
    }
    let reports = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios");
    // Which paths matters for annotations only.
    session.prepare(chosen, Suite::at("scenarios").jobs(jobs).report_dir(reports));
    let conclusion = libtest_mimic::run(&arguments, trials);
    session.join();
    conclusion.exit_code()
}

/// The runs, which begin when the first trial asks for its own.
#[derive(Default)]
struct Session {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    prepared: Option<(Vec<Plan>, Suite)>,
    running: Option<JoinHandle<()>>,
    over: bool,
    outcomes: BTreeMap<String, Outcome>,
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

// === impl Session ===

impl Session {
    fn prepare(&self, plans: Vec<Plan>, suite: Suite) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).prepared = Some((plans, suite));
    }

    /// Waits for a run. The session ends every run by a deadline of its own.
    fn outcome(self: &Arc<Self>, key: &str) -> Result<Completion, Failed> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((plans, suite)) = state.prepared.take() {
            let session = self.clone();
            state.running = Some(std::thread::spawn(move || session.play(plans, &suite)));
        }
        loop {
            match state.outcomes.remove(key) {
                Some(Outcome::Passed) => return Ok(Completion::Completed),
                Some(Outcome::Failed(text)) => return Err(text.into()),
                Some(Outcome::Skipped(why)) => return Ok(Completion::ignored_with(why)),
                None => {}
            }
            if state.over {
                return Err("it was not run".into());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn play(self: Arc<Self>, plans: Vec<Plan>, suite: &Suite) {
        // However this ends, nobody waits for ever.
        let _over = Over(&self);
        let hears = self.clone();
        let listener = move |event| hears.hear(event);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any working machine");
        runtime.block_on(run_plans(plans, suite, listener));
    }

    fn hear(&self, event: Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::RunFinished(run) => {
                let outcome = match run.verdict.outcome() {
                    VerdictKind::Pass => Outcome::Passed,
                    _ => Outcome::Failed(format!("\n{}", block(&run, Detail::Brief, Look::Plain))),
                };
                state.outcomes.insert(run.key, outcome);
            }
            Event::RunSkipped(run) => _ = state.outcomes.insert(run.key, Outcome::Skipped(run.why)),
            _ => {}
        }
        self.changed.notify_all();
    }

    fn join(&self) {
        let running = self.state.lock().unwrap_or_else(PoisonError::into_inner).running.take();
        if let Some(running) = running {
            let _ = running.join();
        }
    }
}

/// Ends the waiting when it goes.
struct Over<'a>(&'a Session);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.0.changed.notify_all();
    }
}
