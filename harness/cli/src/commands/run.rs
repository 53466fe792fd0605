//! `spiritlevel run`.

use super::lint;
use crate::{
    Error, Exit,
    args::{Form, OperatorAs, Place, Playing, Provider, Run, Selection},
    invocation::{How, Planned, play},
    stop::{Cause, Stop},
    stretch::stretch,
    voice::aside,
};
use spiritlevel_report::{Detail, Output, Reporter, Settings, Surroundings};
use spiritlevel_runner::project::{self, SuiteFiles, all_plans, find};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// Runs scenarios and judges them.
pub(super) async fn run(args: Run, stop: &Stop) -> Result<Exit, Error> {
    let mut planned = planned(&args)?;
    for one in &mut planned {
        stretch(&mut one.plan, args.playing.timeout_scale);
        args.place.apply(&mut one.plan);
    }
    perform(planned, &args.playing, args.place.keep, stop).await
}

/// Plays plans and reports.
pub(super) async fn perform(planned: Vec<Planned>, playing: &Playing, keep: bool, stop: &Stop) -> Result<Exit, Error> {
    let begun = Instant::now();
    let suites: BTreeSet<&str> = planned.iter().map(|p| p.plan.suite_name.as_str()).collect();
    let settings = Settings {
        output: match playing.output {
            Form::Text => Output::Text,
            Form::Json => Output::Json,
        },
        detail: if playing.verbose { Detail::Verbose } else { Detail::Brief },
        surroundings: Surroundings::look(),
        harness: env!("CARGO_PKG_VERSION").into(),
        suite: suites.first().filter(|_| suites.len() == 1).map(|s| (*s).to_owned()),
    };
    // Before anything is started: a report that cannot be written makes runs worthless.
    std::fs::create_dir_all(&playing.report_dir)
        .map_err(|source| spiritlevel_report::Error::File { path: playing.report_dir.clone(), source })?;
    let reporter = Arc::new(Mutex::new(Some(Reporter::new(settings))));
    let hears = reporter.clone();
    let tell = Box::new(move |event| {
        if let Some(reporter) = hears.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            reporter.hear(event);
        }
    });
    let how = How { jobs: playing.jobs, report_dir: playing.report_dir.clone(), fail_fast: playing.fail_fast, keep };
    let deadline = playing.deadline.map(|deadline| tokio::spawn(stop.clone().at(deadline.0)));
    play(planned, &how, stop, tell).await;
    if let Some(deadline) = deadline {
        deadline.abort();
    }
    let reporter = reporter.lock().unwrap_or_else(PoisonError::into_inner).take();
    let reporter = reporter.expect("taken here only, and once");
    let tally = reporter.finish(&playing.report_dir, begun.elapsed())?;
    Ok(match stop.cause() {
        Some(cause @ (Cause::Interrupt | Cause::Terminate)) => cause.exit(),
        _ => Exit::from(tally.worst()),
    })
}

impl Place {
    /// The command line comes before the suite.
    fn apply(&self, plan: &mut spiritlevel_model::plan::Plan) {
        use spiritlevel_model::suite;
        let cluster = &mut plan.suite.cluster;
        if let Some(provider) = self.provider {
            let provider = match provider {
                Provider::Local => suite::Provider::Local,
                Provider::K3s => suite::Provider::K3s,
                Provider::Kind => suite::Provider::Kind,
            };
            // An image of the suite's is for its own provider.
            if provider != cluster.provider {
                cluster.image = None;
            }
            cluster.provider = provider;
        }
        if self.cluster_image.is_some() {
            cluster.image.clone_from(&self.cluster_image);
        }
        cluster.agent &= !self.no_agent;
        let operator = &mut plan.suite.operator;
        match self.operator {
            Some(OperatorAs::Process) => operator.run = Some(suite::RunAs::Process),
            // A suite without a Deployment runs as it can.
            Some(OperatorAs::Deployment) if operator.deployment.is_some() => {
                operator.run = Some(suite::RunAs::Deployment);
            }
            _ => {}
        }
    }
}

fn planned(args: &Run) -> Result<Vec<Planned>, Error> {
    let suites = find(&args.paths).map_err(Error::Find)?;
    let paths: Vec<String> = args.paths.iter().map(|p| p.display().to_string()).collect();
    let paths = paths.join(" ");
    if suites.iter().all(|s| s.scenarios.is_empty()) {
        return Err(no_scenarios(&paths));
    }
    let (problems, warnings): (Vec<_>, Vec<_>) =
        lint::problems(&suites).into_iter().partition(spiritlevel_model::problem::Problem::is_error);
    if !problems.is_empty() {
        return Err(Error::Problems { problems });
    }
    if !warnings.is_empty() {
        aside(&format!(
            "note: {} in the files; `spiritlevel lint {paths}` tells\n",
            lint::counted(warnings.len(), "warning")
        ));
    }
    let selection = chosen(&args.selection);
    let plans = all_plans(&suites, &selection).map_err(|problems| Error::Problems { problems })?;
    let files = scenario_files(&suites);
    if plans.is_empty() {
        return Err(nothing_selected(&args.selection, &suites)?);
    }
    let file = |plan: &spiritlevel_model::plan::Plan| {
        files.get(&(plan.suite_dir.clone(), plan.scenario_name.clone())).cloned()
    };
    Ok(plans.into_iter().map(|plan| Planned { file: file(&plan), plan }).collect())
}

pub(super) fn no_scenarios(paths: &str) -> Error {
    Error::usage(
        format!("there is no scenario in {paths}"),
        "a scenario is a YAML file with `apiVersion: spiritlevel/v1alpha1` and `kind: Scenario`, beside or below a spiritlevel.yaml",
    )
}

fn chosen(args: &Selection) -> project::Selection {
    project::Selection {
        seed: args.seed,
        variants: args.variant.clone(),
        repeat: args.repeat,
        filter: args.filter.clone(),
        shard: args.shard,
        nonce: std::process::id().into(),
    }
}

/// Nothing was selected: what there is to choose from.
fn nothing_selected(args: &Selection, suites: &[SuiteFiles]) -> Result<Error, Error> {
    let all = all_plans(suites, &project::Selection { repeat: 1, ..project::Selection::default() })
        .map_err(|problems| Error::Problems { problems })?;
    let mut asked = Vec::new();
    asked.extend(args.filter.iter().map(|f| format!("--filter {f}")));
    asked.extend(args.variant.iter().map(|v| format!("--variant {v}")));
    asked.extend(args.shard.iter().map(|(i, n)| format!("--shard {i}/{n}")));
    let titles: BTreeSet<String> = all.iter().map(spiritlevel_model::plan::Plan::title).collect();
    let most = 20;
    let mut help = String::from("there are:\n");
    help += &titles.iter().take(most).cloned().collect::<Vec<_>>().join("\n");
    if titles.len() > most {
        help += &format!("\n… and {} more", titles.len() - most);
    }
    Ok(Error::usage(format!("nothing is selected by {}", asked.join(" ")), help))
}

/// Where each scenario stands, for annotations.
pub(crate) fn scenario_files(suites: &[SuiteFiles]) -> BTreeMap<(String, String), String> {
    let mut files = BTreeMap::new();
    for suite in suites {
        for scenario in &suite.scenarios {
            if let Some(value) = &scenario.scenario.value {
                let key = (suite.dir.display().to_string(), value.metadata.name.clone());
                files.insert(key, scenario.scenario.source.file.clone());
            }
        }
    }
    files
}
