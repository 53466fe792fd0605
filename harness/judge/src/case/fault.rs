//! The lives of the declared faults.

use spiritlevel_model::{
    RequestId,
    fault::{Action, At, CloseWatch, DisconnectAs, Fault, Legality},
    history::{Event, FaultEvent, Record},
    plan::Plan,
    verdict::FaultSummary,
};

/// A declared fault and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct FaultLife<'a> {
    /// As declared.
    pub(crate) declared: &'a Fault,
    /// When it was armed first.
    pub(crate) armed: Option<u64>,
    /// What matched.
    pub(crate) matched: u64,
    /// Every time it acted.
    pub(crate) firings: Vec<Firing>,
    /// What difference it made: place and words.
    pub(crate) effects: Vec<(u64, String)>,
    /// When it was lifted.
    pub(crate) healed: Option<u64>,
}

/// One time that a fault acted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Firing {
    /// Place.
    pub(crate) seq: u64,
    /// Time.
    pub(crate) at_ms: f64,
    /// On which request, or the one that opened the stream.
    pub(crate) request: Option<RequestId>,
    /// The point in the exchange.
    pub(crate) at: Option<At>,
    /// When what it held went on.
    pub(crate) released: Option<u64>,
    /// How legal it was to this very request, where that depends on it.
    legality: Option<Legality>,
}

/// The faults of the plan in their order.
pub(super) fn read<'a>(plan: &'a Plan, history: &[Record]) -> Vec<FaultLife<'a>> {
    plan.scenario.faults.iter().map(|declared| life(declared, history)).collect()
}

fn life<'a>(declared: &'a Fault, history: &[Record]) -> FaultLife<'a> {
    let mut life =
        FaultLife { declared, armed: None, matched: 0, firings: Vec::new(), effects: Vec::new(), healed: None };
    for record in history {
        let Event::Fault(fault) = &record.event else { continue };
        if fault.name != declared.name {
            continue;
        }
        match &fault.what {
            FaultEvent::Armed => life.armed = life.armed.or(Some(record.seq)),
            FaultEvent::Matched { .. } => life.matched += 1,
            FaultEvent::Fired { request, at, legality } => {
                let (seq, at_ms, legality) = (record.seq, record.at_ms, *legality);
                life.firings.push(Firing { seq, at_ms, request: *request, at: *at, released: None, legality });
            }
            FaultEvent::Effect { what } => life.effects.push((record.seq, what.clone())),
            FaultEvent::Released { request, .. } => {
                let of = |f: &&mut Firing| f.released.is_none() && (request.is_none() || f.request == *request);
                if let Some(firing) = life.firings.iter_mut().find(of) {
                    firing.released = Some(record.seq);
                }
            }
            FaultEvent::Healed => life.healed = Some(record.seq),
        }
    }
    if life.effects.is_empty() {
        life.effects.extend(overtaken(&life, history));
    }
    life
}

/// The effect of a delay or hold: something of the operator, or an object version, fell inside.
fn overtaken(life: &FaultLife<'_>, history: &[Record]) -> Option<(u64, String)> {
    let waits = matches!(
        life.declared.action,
        Action::Delay { .. } | Action::Hold { .. } | Action::HoldWatchStart { .. } | Action::DelayEvents { .. }
    );
    if !waits {
        return None;
    }
    life.firings.iter().find_map(|firing| {
        let until = firing.released.or(life.healed).unwrap_or(u64::MAX);
        let inside = history.iter().filter(|r| r.seq > firing.seq && r.seq < until);
        inside.clone().find_map(|r| {
            let what = match &r.event {
                Event::Request(x) if x.actor.is_operator() && Some(x.id) != firing.request => {
                    format!("request {} ({}) came meanwhile", x.id, x.info)
                }
                Event::Version(v) => {
                    let name = v.object["metadata"]["name"].as_str().unwrap_or_default();
                    format!("{} {name} changed meanwhile", v.resource)
                }
                _ => return None,
            };
            Some((r.seq, what))
        })
    })
}

// === impl FaultLife ===

impl FaultLife<'_> {
    /// How legal it is: as declared, and to every request that it acted on.
    pub(crate) fn legality(&self) -> Legality {
        let fired = self.firings.iter().filter_map(|f| f.legality);
        fired.fold(self.declared.legality(), Legality::max)
    }

    /// A name for a moment, without any effect.
    pub(crate) fn is_mark(&self) -> bool {
        matches!(self.declared.action, Action::Mark {})
    }

    /// Whether it acts on the process or on the whole way to the API server, not on one exchange.
    pub(crate) fn is_ambient(&self) -> bool {
        matches!(self.declared.action, Action::Crash { .. } | Action::Pause { .. } | Action::Partition { .. })
    }

    /// Whether it still acts just before `seq`: what it did is not over in a moment, and was neither let go nor lifted. An
    /// event that was dropped stays away for good.
    pub(crate) fn lasts_at(&self, seq: u64) -> bool {
        let momentary = match &self.declared.action {
            Action::Disconnect { how } => *how != DisconnectAs::Hang,
            Action::CloseWatch { how } => !matches!(how, CloseWatch::Stall | CloseWatch::StallConnection),
            Action::Reject { .. }
            | Action::Conflict {}
            | Action::Crash { .. }
            | Action::EmptyList {}
            | Action::Goaway {}
            | Action::DuplicateEvents { .. }
            | Action::ReplayFromOlder { .. }
            | Action::Mark {} => true,
            _ => false,
        };
        let mends = !matches!(self.declared.action, Action::DropEvents { .. });
        let over = |f: &Firing| mends && f.released.or(self.healed).is_some_and(|end| end > f.seq && end < seq);
        !momentary && self.firings.iter().any(|f| f.seq < seq && !over(f))
    }

    /// Whether violations under it fail the run.
    pub(crate) fn gates(&self, plan: &Plan) -> bool {
        let legality = self.legality();
        let gated = plan.scenario.gate.as_ref().map_or(legality != Legality::Never, |gate| gate.contains(&legality));
        self.declared.gate.unwrap_or(gated)
    }

    /// Its line in the verdict.
    pub(crate) fn summary(&self) -> FaultSummary {
        FaultSummary {
            name: self.declared.name.clone(),
            action: self.declared.action.name().into(),
            legality: self.legality(),
            armed: self.armed.is_some(),
            matched: self.matched,
            fired: self.firings.len() as u64,
            effect: self.effects.first().map(|(_, what)| what.clone()),
            first_request: self.firings.first().and_then(|f| f.request),
            first_at_ms: self.firings.first().map(|f| f.at_ms),
        }
    }
}
