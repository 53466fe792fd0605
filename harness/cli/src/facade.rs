//! For tests in Rust: suites as values, outcomes as values.

use crate::{
    Error,
    commands::scenario_files,
    invocation::{How, Planned, play},
    stop::Stop,
};
use spiritlevel_model::{
    Seed,
    plan::Plan,
    suite::{Provider, RunAs},
    verdict::VerdictKind,
};
use spiritlevel_report::{Detail, Event, Finished, Look, Skipped, Tally, block};
use spiritlevel_runner::project::{Selection, all_plans, find};
use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Scenarios to run: all below some paths, or a choice of them.
#[derive(Clone, Debug)]
pub struct Suite {
    paths: Vec<PathBuf>,
    selection: Selection,
    how: How,
    provider: Option<Provider>,
    agent: bool,
    inside: bool,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The runs, in order of their end.
    pub runs: Vec<Finished>,
    /// Title and reason of those that this provider cannot make.
    pub skipped: Vec<(String, String)>,
}

/// Runs all that is chosen, in one session. Nothing that was started is left when this returns.
///
/// Programs other than `spiritlevel` itself need its binary beside them or on PATH (cargo puts it there for the tests of
/// this package), or call [`crate::intercept`] first in their `main`.
///
/// # Errors
/// What keeps runs from being made at all. What happens in a run is part of its [`Outcome`].
pub async fn run(suite: Suite) -> Result<Outcome, Error> {
    let plans = plans(&suite)?;
    if plans.is_empty() {
        return Err(Error::usage("nothing is selected", "look at the filter, the variants and the paths"));
    }
    let outcome: Arc<Mutex<Outcome>> = Arc::default();
    let hears = outcome.clone();
    let listener = move |event| {
        let mut outcome = hears.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::RunFinished(run) => outcome.runs.push(*run),
            Event::RunSkipped(Skipped { title, why, .. }) => outcome.skipped.push((title, why)),
            _ => {}
        }
    };
    run_plans(plans, &suite, listener).await;
    let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *outcome))
}

/// The plans that [`run`] would run, without running any.
///
/// # Errors
/// Paths that lead to nothing, and mistakes in files.
pub fn plans(suite: &Suite) -> Result<Vec<Plan>, Error> {
    let suites = find(&suite.paths).map_err(Error::Find)?;
    let mut plans = all_plans(&suites, &suite.selection).map_err(|problems| Error::Problems { problems })?;
    for plan in &mut plans {
        if let Some(provider) = suite.provider {
            plan.suite.cluster.provider = provider;
        }
        plan.suite.cluster.agent &= suite.agent;
        if suite.inside && plan.suite.operator.deployment.is_some() {
            plan.suite.operator.run = Some(RunAs::Deployment);
        }
    }
    Ok(plans)
}

/// Why the control plane that a plan asks for cannot be made here, as things are: no Docker, no image. A test may then
/// rather be skipped.
pub fn lacking(plan: &Plan) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(spiritlevel_runner::place::lacking(plan)),
        Err(e) => Some(e.to_string()),
    }
}

/// Runs some plans as `suite` says, and tells all that happens while it happens.
pub async fn run_plans(plans: Vec<Plan>, suite: &Suite, tell: impl FnMut(Event) + Send + 'static) {
    let files = find(&suite.paths).map(|suites| scenario_files(&suites)).unwrap_or_default();
    let file = |plan: &Plan| files.get(&(plan.suite_dir.clone(), plan.scenario_name.clone())).cloned();
    let planned = plans.into_iter().map(|plan| Planned { file: file(&plan), plan }).collect();
    play(planned, &suite.how, &Stop::default(), Box::new(tell)).await;
}

// === impl Suite ===

impl Suite {
    /// A scenario's file, a suite's folder, or a folder of suites.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let nonce = std::process::id().into();
        Self {
            paths: vec![path.into()],
            selection: Selection { repeat: 1, nonce, ..Selection::default() },
            how: How { jobs: 4, report_dir: "reports".into(), fail_fast: false, keep: false },
            provider: None,
            agent: true,
            inside: false,
        }
    }

    /// A further path.
    #[must_use]
    pub fn and(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Another provider than the suites name.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        // Runs of one scenario in two places have namespaces of their own.
        self.selection.nonce += (1 + provider as u64) << 32;
        self.provider = Some(provider);
        self
    }

    /// k3s without a node: a control plane only, with the kubelet stub.
    #[must_use]
    pub fn without_agent(mut self) -> Self {
        self.selection.nonce += 1 << 41;
        self.agent = false;
        self
    }

    /// The operator runs as a Deployment inside the cluster, where its suite says how.
    #[must_use]
    pub fn operator_inside(mut self) -> Self {
        self.selection.nonce += 1 << 40;
        self.inside = true;
        self
    }

    /// Only runs whose title contains this, or matches it as a glob.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.selection.filter = Some(filter.into());
        self
    }

    /// Only this variant; call again for a further one.
    #[must_use]
    pub fn variant(mut self, name: impl Into<String>) -> Self {
        self.selection.variants.push(name.into());
        self
    }

    /// Instead of the scenarios' seeds.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.selection.seed = Some(Seed(seed));
        self
    }

    /// Runs at once; default 4.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.how.jobs = jobs.max(1);
        self
    }

    /// Where each run's files go; default `reports`.
    #[must_use]
    pub fn report_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.how.report_dir = dir.into();
        self
    }
}

// === impl Outcome ===

impl Outcome {
    /// The worst outcome: fail, then error, then inconclusive, then pass.
    pub fn worst(&self) -> VerdictKind {
        let mut tally = Tally::default();
        self.runs.iter().for_each(|run| tally.add(run.verdict.outcome()));
        tally.worst()
    }

    /// Whether every run is as it should be.
    pub fn passed(&self) -> bool {
        self.worst() == VerdictKind::Pass
    }

    /// Panics with the reasons, as on a terminal, unless every run is as it should be.
    ///
    /// # Panics
    /// That is what it is for.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "\n{self}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runs.iter().try_for_each(|run| f.write_str(&block(run, Detail::Brief, Look::Plain)))
    }
}
