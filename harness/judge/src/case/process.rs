//! The operator's processes over time.

use spiritlevel_model::{
    Actor,
    history::{Event, ProcessEvent, Record},
};
use std::collections::BTreeMap;

/// Starts and ends of every replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    lives: BTreeMap<Actor, Vec<ProcessLife>>,
    /// Ends that were not ours, in order.
    pub(crate) ends: Vec<End>,
}

/// One process from its start to its end, each with place and time.
#[derive(Clone, Debug)]
struct ProcessLife {
    started: (u64, f64),
    /// The step or fault that started it.
    started_by: Option<String>,
    /// When it was first told to end, and by which step or fault.
    told: Option<((u64, f64), Option<String>)>,
    ended: Option<(u64, f64)>,
}

/// A replica whose process ended and was started again.
#[derive(Clone, Debug)]
pub(crate) struct Restart {
    /// Which replica.
    pub(crate) actor: Actor,
    /// Place and time when it was told to end, or ended by itself.
    pub(crate) down: (u64, f64),
    /// Where it had ended.
    pub(crate) dead: u64,
    /// Place and time of its new start.
    pub(crate) up: (u64, f64),
    /// The step or fault that ended it.
    pub(crate) ended_by: Option<String>,
    /// The step or fault that started it.
    pub(crate) started_by: Option<String>,
}

/// A process that ended by itself.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Which replica.
    pub(crate) actor: Actor,
    /// Place.
    pub(crate) seq: u64,
    /// Time.
    pub(crate) at_ms: f64,
    /// Exit code.
    pub(crate) code: Option<i32>,
    /// Signal.
    pub(crate) signal: Option<i32>,
    /// Its last words.
    pub(crate) last_lines: Vec<String>,
}

// === impl Processes ===

impl Processes {
    pub(super) fn read(history: &[Record]) -> Self {
        let mut all = Self::default();
        for record in history {
            let Event::Process(process) = &record.event else { continue };
            let lives = all.lives.entry(process.actor.clone()).or_default();
            let (moment, cause) = ((record.seq, record.at_ms), process.cause.clone());
            let open = lives.last_mut().filter(|l| l.ended.is_none());
            match &process.what {
                ProcessEvent::Started { .. } => {
                    lives.push(ProcessLife { started: moment, started_by: cause, told: None, ended: None });
                }
                // A process that is stopped goes on.
                ProcessEvent::Signalled { signal } if signal == "STOP" || signal == "CONT" => {}
                ProcessEvent::Signalled { .. } => {
                    if let Some(life) = open {
                        life.told.get_or_insert((moment, cause));
                    }
                }
                ProcessEvent::Exited { code, signal, expected, last_lines } => {
                    if let Some(life) = open {
                        life.ended = Some(moment);
                    }
                    if !expected {
                        all.ends.push(End {
                            actor: process.actor.clone(),
                            seq: record.seq,
                            at_ms: record.at_ms,
                            code: *code,
                            signal: *signal,
                            last_lines: last_lines.clone(),
                        });
                    }
                }
            }
        }
        all
    }

    /// Whether any replica runs just before `seq`. A history that tells nothing of processes has one that always runs.
    pub(crate) fn alive_at(&self, seq: u64) -> bool {
        let runs = |lives: &Vec<ProcessLife>| {
            let last = lives.iter().take_while(|l| l.started.0 < seq).last();
            last.is_some_and(|l| l.ended.is_none_or(|(ended, _)| ended >= seq))
        };
        self.lives.is_empty() || self.lives.values().any(runs)
    }

    /// Place and time of every end, whether the replica came back or not.
    pub(crate) fn downs(&self) -> impl Iterator<Item = (u64, f64)> {
        self.lives.values().flatten().filter_map(ProcessLife::down)
    }

    /// Every end after which the replica was started again, in order.
    pub(crate) fn restarts(&self) -> Vec<Restart> {
        let restart = |actor: &Actor, pair: &[ProcessLife]| {
            let (life, next) = (&pair[0], &pair[1]);
            Some(Restart {
                actor: actor.clone(),
                down: life.down()?,
                dead: life.ended?.0,
                up: next.started,
                ended_by: life.told.as_ref().and_then(|(_, cause)| cause.clone()),
                started_by: next.started_by.clone(),
            })
        };
        let of = |(actor, lives): (&Actor, &Vec<ProcessLife>)| {
            lives.windows(2).filter_map(|pair| restart(actor, pair)).collect::<Vec<_>>()
        };
        let mut all: Vec<Restart> = self.lives.iter().flat_map(of).collect();
        all.sort_by_key(|r| r.down.0);
        all
    }
}

// === impl ProcessLife ===

impl ProcessLife {
    fn down(&self) -> Option<(u64, f64)> {
        let ended = self.ended?;
        Some(self.told.as_ref().map_or(ended, |(told, _)| *told))
    }
}
