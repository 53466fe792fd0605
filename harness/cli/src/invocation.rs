//! Plays plans in one session and tells of each exactly once, whatever happens on the way.

use crate::{
    bug,
    stop::{Cause, Stop},
};
use spiritlevel_model::{plan::Plan, verdict::VerdictKind};
use spiritlevel_report::{ControlPlane, Event, Finished, Skipped};
use spiritlevel_runner::{
    Error,
    run::{broken, report_dir, write_verdict},
    session::{SessionEvent, SessionOptions, session},
};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// A plan and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// The scenario's file, where it is known.
    pub(crate) file: Option<String>,
}

/// How plans are played.
#[derive(Clone, Debug)]
pub(crate) struct How {
    pub(crate) jobs: usize,
    pub(crate) report_dir: PathBuf,
    pub(crate) fail_fast: bool,
    pub(crate) keep: bool,
}

/// Hears what happens, in one order.
pub(crate) type Tell = Box<dyn FnMut(Event) + Send>;

/// Plays all, until they are done or `stop` says so. Everything that was started has ended when this returns.
pub(crate) async fn play(planned: Vec<Planned>, how: &How, stop: &Stop, tell: Tell) {
    let plans: Vec<Plan> = planned.iter().map(|p| p.plan.clone()).collect();
    let open = planned.into_iter().map(|p| (p.plan.namespace.clone(), p)).collect();
    let bridge = Arc::new(Mutex::new(Bridge { open, report_dir: how.report_dir.clone(), tell }));
    let hears = bridge.clone();
    let listener = Arc::new(move |event| hears.lock().unwrap_or_else(PoisonError::into_inner).hear(event));
    let (report_dir, keep) = (how.report_dir.clone(), how.keep);
    let options = SessionOptions { jobs: how.jobs, report_dir, fail_fast: how.fail_fast, keep };
    let ended = session(plans, options, listener, stop.token.clone()).await;
    let mut bridge = bridge.lock().unwrap_or_else(PoisonError::into_inner);
    match (ended, stop.cause()) {
        (_, Some(Cause::Deadline(deadline))) => bridge.close(VerdictKind::Inconclusive, &|| {
            format!("not done when the deadline of {} was over (--deadline)", spiritlevel_model::Period(deadline))
        }),
        (_, Some(Cause::Interrupt | Cause::Terminate)) => bridge.leave("cancelled"),
        (Err(error), None) if !matches!(error, Error::Cancelled) => bridge.close(VerdictKind::Error, &|| error.chain()),
        _ if bug::seen() => bridge.close(VerdictKind::Error, &|| "spiritlevel has a bug, see above".into()),
        _ => bridge.leave("not run: an earlier one did not pass (--fail-fast)"),
    }
}

/// From what the runner tells to what the reporter hears.
struct Bridge {
    /// Runs that nothing final has been told of, by namespace.
    open: BTreeMap<String, Planned>,
    report_dir: PathBuf,
    tell: Tell,
}

// === impl Bridge ===

impl Bridge {
    fn hear(&mut self, event: SessionEvent) {
        let event = match event {
            SessionEvent::Say(text) => Event::Progress(text),
            SessionEvent::Notice(text) => Event::Notice(text),
            SessionEvent::LaneReady(provider, version, times) => {
                Event::ControlPlaneReady(ControlPlane { provider: provider.into(), version, took: times.total })
            }
            SessionEvent::RunStarted(plan) => Event::RunStarted { title: plan.title(), key: plan.namespace },
            SessionEvent::RunPhase(key, phase) => Event::RunPhase { key, phase },
            SessionEvent::RunProgress(key, text) => Event::RunProgress { key, text },
            SessionEvent::RunFinished(output) => {
                let file = self.open.remove(&output.plan.namespace).and_then(|p| p.file);
                let (key, title) = (output.plan.namespace.clone(), output.plan.title());
                let run = Finished { key, title, verdict: output.verdict, dir: output.dir, file };
                return self.finished(run);
            }
            SessionEvent::RunSkipped(plan, why) => {
                self.open.remove(&plan.namespace);
                Event::RunSkipped(Skipped { title: plan.title(), seed: plan.seed, key: plan.namespace, why })
            }
            SessionEvent::CleanupFailed(of, why) => Event::CleanupFailed { of, why },
        };
        (self.tell)(event);
    }

    fn finished(&mut self, run: Finished) {
        if !matches!(run.verdict.verdict, VerdictKind::Pass | VerdictKind::Fail) {
            // A run that broke early has no verdict on disk, or one of an earlier run.
            let written = std::fs::create_dir_all(&run.dir).map_err(|e| Error::file("create", &run.dir, e));
            if let Err(error) = written.and_then(|()| write_verdict(&run.verdict, &run.dir)) {
                (self.tell)(Event::Notice(error.chain()));
            }
        }
        (self.tell)(Event::RunFinished(Box::new(run)));
    }

    /// What is still open gets this verdict.
    fn close(&mut self, kind: VerdictKind, why: &dyn Fn() -> String) {
        for (key, Planned { plan, file }) in std::mem::take(&mut self.open) {
            let mut verdict = broken(&plan, vec![why()]);
            verdict.verdict = kind;
            let dir = report_dir(&self.report_dir, &plan);
            self.finished(Finished { key, title: plan.title(), verdict, dir, file });
        }
    }

    /// What is still open was not run.
    fn leave(&mut self, why: &str) {
        for planned in std::mem::take(&mut self.open).into_values() {
            let plan = planned.plan;
            let (title, seed) = (plan.title(), plan.seed);
            (self.tell)(Event::RunSkipped(Skipped { key: plan.namespace, title, seed, why: why.into() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bridge, Planned};
    use crate::recorded::tests::orphan;
    use spiritlevel_model::verdict::VerdictKind;
    use spiritlevel_report::Event;
    use spiritlevel_runner::{run::RunOutput, run::broken, session::SessionEvent};
    use std::sync::{Arc, Mutex};

    /// Three runs, of which one has ended.
    fn bridge(root: &std::path::Path) -> (Bridge, Arc<Mutex<Vec<String>>>) {
        let planned = ["a-1", "a-2", "a-3"].map(|namespace| {
            let mut plan = orphan();
            plan.namespace = namespace.into();
            Planned { plan, file: None }
        });
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = told.clone();
        let tell = Box::new(move |event| {
            let line = match event {
                Event::RunFinished(run) => format!("{} {}", run.key, run.verdict.verdict),
                Event::RunSkipped(run) => format!("{} {}", run.key, run.why),
                other => format!("{other:?}"),
            };
            hears.lock().expect("no test panics with it").push(line);
        });
        let open = planned.iter().map(|p| (p.plan.namespace.clone(), p.clone())).collect();
        let mut bridge = Bridge { open, report_dir: root.into(), tell };
        let plan = planned[1].plan.clone();
        let verdict = broken(&plan, vec!["no disk".into()]);
        let output = RunOutput { plan, verdict, dir: root.join("done"), cleanup: None };
        bridge.hear(SessionEvent::RunFinished(Box::new(output)));
        (bridge, told)
    }

    #[test]
    fn every_run_is_told_of_once_and_has_a_verdict_on_disk() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (mut bridge, told) = bridge(root.path());
        bridge.close(VerdictKind::Inconclusive, &|| "too late".into());
        bridge.leave("never");
        assert_eq!(*told.lock().expect("nobody panicked"), ["a-2 error", "a-1 inconclusive", "a-3 inconclusive"]);
        let of = |dir: &str| std::fs::read_to_string(root.path().join(dir).join("verdict.json")).expect("a verdict");
        assert!(of("done").contains("no disk"));
        assert!(of("s01/baseline.bug/2343061866").contains("too late"));
    }

    #[test]
    fn what_was_not_run_is_skipped_with_the_reason() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (mut bridge, told) = bridge(root.path());
        bridge.leave("cancelled");
        assert_eq!(*told.lock().expect("nobody panicked"), ["a-2 error", "a-1 cancelled", "a-3 cancelled"]);
    }
}
