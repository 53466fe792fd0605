//! Phases of a run and how settling ended.

use spiritlevel_model::history::{Event, Phase, Record, Settled};

/// When phases began, and how the settle phases ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    begun: Vec<(Phase, u64, f64)>,
    settled: Vec<(u64, f64, Settled)>,
}

// === impl Phases ===

impl Phases {
    pub(super) fn read(history: &[Record]) -> Self {
        let mut phases = Self::default();
        for record in history {
            match &record.event {
                Event::Phase(phase) => phases.begun.push((*phase, record.seq, record.at_ms)),
                Event::Settled(settled) => phases.settled.push((record.seq, record.at_ms, settled.clone())),
                _ => {}
            }
        }
        phases
    }

    /// Place and time of the beginning of a phase.
    pub(crate) fn begin(&self, phase: Phase) -> Option<(u64, f64)> {
        self.begun.iter().find(|(p, ..)| *p == phase).map(|(_, seq, at)| (*seq, *at))
    }

    /// How the settling of a phase ended.
    pub(crate) fn settled(&self, phase: Phase) -> Option<&(u64, f64, Settled)> {
        self.settled.iter().rev().find(|(_, _, s)| s.phase == phase)
    }

    /// Every settling, in order: place, time, how it ended.
    pub(crate) fn settlings(&self) -> &[(u64, f64, Settled)] {
        &self.settled
    }

    /// Where a phase ended: its `Settled`, else the beginning of the next one; none for one that never began or was
    /// broken off.
    pub(crate) fn end_of(&self, phase: Phase) -> Option<(u64, f64)> {
        let (begin, _) = self.begin(phase)?;
        if let Some((seq, at, _)) = self.settled(phase) {
            return Some((*seq, *at));
        }
        self.begun.iter().find(|(_, seq, _)| *seq > begin).map(|(_, seq, at)| (*seq, *at))
    }

    /// The phase that a record lies in.
    pub(crate) fn at(&self, seq: u64) -> Option<Phase> {
        self.begun.iter().take_while(|(_, begun, _)| *begun <= seq).last().map(|(p, ..)| *p)
    }
}
