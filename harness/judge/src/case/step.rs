//! The scenario's operations as they were done.

use crate::wording;
use spiritlevel_model::{
    ObjectRef,
    history::{Event, Record, StepState},
    plan::Plan,
};

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct StepLife<'a> {
    /// `steps[1].try[0]`.
    pub(crate) path: &'a str,
    /// How findings call it: the step's name, else its path.
    pub(crate) called: String,
    /// `apply`, `delete`, …
    pub(crate) operation: &'a str,
    /// The object it is about.
    pub(crate) object: Option<&'a ObjectRef>,
    /// Place of its beginning.
    pub(crate) seq: u64,
    /// Its beginning, in milliseconds.
    pub(crate) at_ms: f64,
    /// Place, time and kind of its end.
    pub(crate) end: Option<(u64, f64, Ending<'a>)>,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending<'a> {
    /// Well.
    Done,
    /// Its assertion did not hold.
    Failed(&'a str),
    /// It waited in vain.
    TimedOut(&'a str),
    /// It could not be done.
    Broken(&'a str),
}

// === impl StepLife ===

impl StepLife<'_> {
    /// `restart (restartOperator) began at +4.21 s`.
    pub(crate) fn line(&self) -> String {
        format!("{} ({}) began at {}", self.called, self.operation, wording::at(self.at_ms))
    }

    /// Whether it only looks, waits, shows, or arms what fires later: nothing in the cluster follows from it by itself.
    pub(crate) fn only_looks(&self) -> bool {
        const LOOKS: [&str; 14] = [
            "assert",
            "error",
            "never",
            "always",
            "sleep",
            "wait",
            "await",
            "events",
            "podLogs",
            "describe",
            "get",
            "operatorLogs",
            "requestLog",
            "inject",
        ];
        LOOKS.contains(&self.operation)
    }
}

/// All operations, in order of their beginning.
pub(super) fn read<'a>(plan: &Plan, history: &'a [Record]) -> Vec<StepLife<'a>> {
    let mut all: Vec<StepLife<'a>> = Vec::new();
    for record in history {
        let Event::Step(step) = &record.event else { continue };
        let ending = match &step.state {
            StepState::Started => None,
            StepState::Done => Some(Ending::Done),
            StepState::Failed { message } => Some(Ending::Failed(message)),
            StepState::TimedOut { message } => Some(Ending::TimedOut(message)),
            StepState::Broken { message } => Some(Ending::Broken(message)),
        };
        let end = ending.map(|e| (record.seq, record.at_ms, e));
        let open = all.iter_mut().rev().find(|s| s.path == step.path && s.end.is_none());
        match (open, end) {
            (Some(begun), Some(end)) => {
                begun.end = Some(end);
                begun.object = begun.object.or(step.object.as_ref());
            }
            (_, end) => all.push(StepLife {
                path: &step.path,
                called: step.name.clone().or_else(|| name_in(plan, &step.path)).unwrap_or_else(|| step.path.clone()),
                operation: &step.operation,
                object: step.object.as_ref(),
                seq: record.seq,
                at_ms: record.at_ms,
                end,
            }),
        }
    }
    all
}

/// The name that the scenario gives to the step of `steps[1].try[0]`.
fn name_in(plan: &Plan, path: &str) -> Option<String> {
    let index = path.strip_prefix("steps[")?.split_once(']')?.0.parse::<usize>().ok()?;
    plan.scenario.steps.get(index)?.name.clone()
}
