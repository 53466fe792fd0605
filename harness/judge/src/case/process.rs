//! The operator's processes over time.

use spiritlevel_model::{
    Actor,
    history::{Event, ProcessEvent, Record},
};
use std::collections::BTreeMap;

/// Starts and ends of every replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    events: BTreeMap<Actor, Vec<(u64, bool)>>,
    /// Ends that were not ours, in order.
    pub(crate) ends: Vec<End>,
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
            let events = all.events.entry(process.actor.clone()).or_default();
            match &process.what {
                ProcessEvent::Started { .. } => events.push((record.seq, true)),
                ProcessEvent::Signalled { .. } => {}
                ProcessEvent::Exited { code, signal, expected, last_lines } => {
                    events.push((record.seq, false));
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
        self.events.is_empty() || self.events.values().any(|events| runs(events, seq))
    }
}

fn runs(events: &[(u64, bool)], seq: u64) -> bool {
    events.iter().take_while(|(at, _)| *at < seq).last().is_some_and(|(_, running)| *running)
}
