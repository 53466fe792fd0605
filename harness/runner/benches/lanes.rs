//! What a control plane and a run without faults cost: medians over five, as a table. Says numbers, asserts nothing.
//!
//! `cargo bench -p spiritlevel-runner --bench lanes`. The run is the baseline of specimen N1, which is built first.

use spiritlevel_cluster::Quiet;
use spiritlevel_model::history::Phase;
use spiritlevel_runner::{
    Error,
    lane::Lane,
    place::Place,
    project::{Selection, all_plans, find},
    session::{SessionEvent, SessionOptions, session},
};
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// How often each is measured.
const TIMES: u32 = 5;

/// Rows of the table: what, and how long each time, in order of their first appearance.
#[derive(Default)]
struct Table(Vec<(String, Vec<Duration>)>);

/// Where a session is.
struct Clock {
    table: Table,
    since: Instant,
    now: Option<String>,
    run: Instant,
}

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept().or_else(spiritlevel_operator::intercept) {
        return code;
    }
    // `cargo test --all-targets` runs benchmarks as well, without this.
    if !std::env::args().any(|a| a == "--bench") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    match runtime.block_on(measure()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed to measure: {}", error.chain());
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<(), Error> {
    let mut cold = Table::default();
    for _ in 0..TIMES {
        let begun = Instant::now();
        let lane = Lane::start(&Place::default(), Vec::new(), &Quiet).await?;
        cold.add("start until garbage collection is proven", begun.elapsed());
        cold.add("of that, proving collection", lane.times().collection);
        let begun = Instant::now();
        lane.stop().await?;
        cold.add("stop", begun.elapsed());
    }
    println!("a lane, cold");
    cold.print();
    println!("a run without faults, on a lane that is there (each settle contains a quiet window)");
    runs().await?.print();
    Ok(())
}

async fn runs() -> Result<Table, Error> {
    let specimen =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../operators-under-test/specimens/n1/baseline.yaml");
    let suites = find(&[specimen])?;
    let selection = Selection { repeat: TIMES, nonce: std::process::id().into(), ..Selection::default() };
    let plans = all_plans(&suites, &selection).map_err(|problems| {
        Error::Input(problems.iter().map(spiritlevel_model::problem::Problem::to_line).collect::<Vec<_>>().join("; "))
    })?;
    let reports = tempfile::tempdir().map_err(|e| Error::file("create", &std::env::temp_dir(), e))?;
    let options = SessionOptions { jobs: 1, report_dir: reports.path().into(), fail_fast: false, keep: false };
    let start = Instant::now();
    let clock = Arc::new(Mutex::new(Clock { table: Table::default(), since: start, now: None, run: start }));
    let hears = clock.clone();
    let listener = Arc::new(move |event| hears.lock().unwrap_or_else(PoisonError::into_inner).hear(&event));
    session(plans, options, listener, CancellationToken::new()).await?;
    let mut clock = clock.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut clock.table))
}

// === impl Clock ===

impl Clock {
    fn hear(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::RunPhase(_, phase) => {
                self.next(Some(format!("{phase:?}")));
                if *phase == Phase::Arrange {
                    self.run = self.since;
                }
            }
            SessionEvent::RunFinished(output) => {
                self.next(Some("reset until the next run".into()));
                self.table.add("all of it", self.since - self.run);
                println!("{}: {}", output.plan.title(), output.verdict.verdict);
            }
            // What came before belongs to the lane.
            SessionEvent::LaneReady(..) => self.now = None,
            _ => {}
        }
    }

    fn next(&mut self, phase: Option<String>) {
        let now = Instant::now();
        if let Some(phase) = std::mem::replace(&mut self.now, phase) {
            self.table.add(&phase, now - self.since);
        }
        self.since = now;
    }
}

// === impl Table ===

impl Table {
    fn add(&mut self, what: &str, took: Duration) {
        match self.0.iter_mut().find(|(known, _)| known == what) {
            Some((_, all)) => all.push(took),
            None => self.0.push((what.into(), vec![took])),
        }
    }

    fn print(&self) {
        println!("  {:<42} {:>9} {:>9} {:>9}", "", "median", "least", "most");
        for (what, all) in &self.0 {
            let mut all = all.clone();
            all.sort_unstable();
            let ms =
                |d: Option<&Duration>| d.map_or_else(String::new, |d| format!("{:.0} ms", d.as_secs_f64() * 1000.0));
            let (median, least, most) = (ms(all.get(all.len() / 2)), ms(all.first()), ms(all.last()));
            println!("  {what:<42} {median:>9} {least:>9} {most:>9}");
        }
    }
}
