//! How messages speak of times, uids and lists.

use spiritlevel_model::{
    Actor, RequestId, Uid,
    history::{Epoch, Phase},
};

/// `+2.31 s`.
pub(crate) fn at(ms: f64) -> String {
    let seconds = ms / 1000.0;
    // No negative zero.
    let seconds = if seconds.abs() < 0.005 { 0.0 } else { seconds };
    format!("{seconds:+.2} s")
}

/// `2.3 s`, `150 ms`.
pub(crate) fn lasting(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.0} ms") } else { format!("{:.1} s", ms / 1000.0) }
}

/// `3f0c…`: enough to tell namesakes apart; the finding holds the whole.
pub(crate) fn uid(uid: &Uid) -> String {
    match uid.0.char_indices().nth(4) {
        Some((cut, _)) if uid.0.chars().count() > 8 => format!("{}…", &uid.0[..cut]),
        _ => uid.0.clone(),
    }
}

/// `operator/0 at +2.31 s, request 41`.
pub(crate) fn by(actor: &Actor, ms: f64, request: RequestId) -> String {
    format!("{actor} at {}, request {request}", at(ms))
}

/// `1 time`, `3 times`.
pub(crate) fn times(n: usize) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

/// `request 4`, `requests 4, 5, 6, … 90`.
pub(crate) fn requests(ids: &[RequestId]) -> String {
    let text = |ids: &[RequestId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match ids {
        [] => "no request".into(),
        [one] => format!("request {one}"),
        few if few.len() <= 6 => format!("requests {}", text(few)),
        many => format!("requests {}, … {}", text(&many[..5]), many[many.len() - 1]),
    }
}

/// `a, b and 3 more`.
pub(crate) fn list(items: &[String], most: usize) -> String {
    if items.len() <= most {
        return items.join(", ");
    }
    format!("{} and {} more", items[..most].join(", "), items.len() - most)
}

/// `steps[1].try[0] put the store back from revision 4211 to 3920 (never legal)`.
pub(crate) fn restore(epoch: &Epoch) -> String {
    let Epoch { step, before, now, legality } = epoch;
    format!("{step} put the store back from revision {before} to {now} ({legality})")
}

/// A phase in a sentence.
pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Arrange => "the arrangement",
        Phase::Steps => "the steps",
        Phase::Heal => "the healing",
        Phase::Settle => "the settling",
        Phase::Probe => "the probe",
        Phase::SettleProbe => "the settling after the probe",
        Phase::Teardown => "the teardown",
        Phase::SettleTeardown => "the settling after the teardown",
        Phase::End => "the end",
    }
}
