//! Lines that are drawn anew while something runs, at a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use spiritlevel_model::history::Phase;
use std::{collections::BTreeMap, time::Duration};

const TICK: Duration = Duration::from_millis(120);

/// A line for what takes long, and one for each run.
pub(crate) struct Progress {
    all: MultiProgress,
    work: Option<ProgressBar>,
    runs: BTreeMap<String, ProgressBar>,
}

// === impl Progress ===

impl Progress {
    pub(crate) fn new() -> Self {
        Self { all: MultiProgress::new(), work: None, runs: BTreeMap::new() }
    }

    /// What is being done; takes the place of what was told before.
    pub(crate) fn work(&mut self, text: &str) {
        let all = &self.all;
        let bar =
            self.work.get_or_insert_with(|| bar(all, " {spinner:.cyan} {msg:.dim} {elapsed:>6.dim}", Place::First));
        bar.set_message(text.to_owned());
    }

    pub(crate) fn work_done(&mut self) {
        if let Some(bar) = self.work.take() {
            bar.finish_and_clear();
        }
    }

    pub(crate) fn started(&mut self, key: &str, title: &str) {
        let bar = bar(&self.all, " {spinner:.cyan} {prefix:58} {elapsed:>9.dim}   {msg:.dim}", Place::Last);
        bar.set_prefix(title.to_owned());
        bar.set_message("waits for a control plane");
        self.runs.insert(key.into(), bar);
    }

    pub(crate) fn phase(&mut self, key: &str, phase: Phase) {
        self.work_done();
        if let Some(bar) = self.runs.get(key) {
            bar.set_message(doing(phase));
        }
    }

    /// How far a step is.
    pub(crate) fn step(&mut self, key: &str, text: String) {
        if let Some(bar) = self.runs.get(key) {
            bar.set_message(text);
        }
    }

    pub(crate) fn ended(&mut self, key: &str) {
        if let Some(bar) = self.runs.remove(key) {
            bar.finish_and_clear();
        }
    }

    /// Writes lines that stay, above those that are drawn anew.
    pub(crate) fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        self.all.suspend(write)
    }

    /// Nothing is drawn any more.
    pub(crate) fn close(&mut self) {
        self.work_done();
        for bar in std::mem::take(&mut self.runs).into_values() {
            bar.finish_and_clear();
        }
    }
}

/// Among the lines that are drawn anew.
#[derive(Clone, Copy)]
enum Place {
    First,
    Last,
}

fn bar(all: &MultiProgress, template: &str, place: Place) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the templates above are well-formed");
    let bar = ProgressBar::new_spinner().with_style(style);
    let bar = match place {
        Place::First => all.insert(0, bar),
        Place::Last => all.add(bar),
    };
    bar.enable_steady_tick(TICK);
    bar
}

/// What a run is doing.
fn doing(phase: Phase) -> &'static str {
    match phase {
        Phase::Arrange => "arrange: namespaces, permissions, the operator comes up",
        Phase::Steps => "steps",
        Phase::Heal => "heal: every fault is lifted",
        Phase::Settle => "settle",
        Phase::Probe => "probe: the second round",
        Phase::SettleProbe => "settle after the probe",
        Phase::Teardown => "teardown: subjects are deleted",
        Phase::SettleTeardown => "settle after the teardown",
        Phase::End => "judge",
    }
}
