//! After heal a client opens the watches that a fault has cut, each after a back-off of its own: half a minute for client-go.
//! Until then it is blind, and a second round or a deletion would only show that.

use crate::stage::Stage;
use spiritlevel_model::{
    Actor, ResourceKey, StreamId,
    history::{ClosedBy, Event, ProcessEvent},
};
use std::{collections::BTreeMap, time::Duration};

/// Who watches what, and where.
type Watch = (Actor, ResourceKey, Option<String>);

/// The watches that faults have cut and that are not open again: how many, since some clients have several of a kind.
#[derive(Default)]
struct Cut {
    open: BTreeMap<StreamId, Watch>,
    cut: BTreeMap<Watch, usize>,
}

impl Cut {
    fn read(&mut self, event: &Event) {
        match event {
            Event::StreamOpened(s) if s.actor.is_operator() => {
                let watch = (s.actor.clone(), s.resource.clone(), s.namespace.clone());
                if let Some(left) = self.cut.remove(&watch).filter(|n| *n > 1) {
                    self.cut.insert(watch.clone(), left - 1);
                }
                self.open.insert(s.stream, watch);
            }
            Event::StreamClosed(s) => {
                let closed = self.open.remove(&s.stream);
                if let Some(watch) = closed.filter(|_| s.by == ClosedBy::Fault) {
                    *self.cut.entry(watch).or_default() += 1;
                }
            }
            // A new process has watches of its own.
            Event::Process(p) if matches!(p.what, ProcessEvent::Started { .. } | ProcessEvent::Exited { .. }) => {
                self.open.retain(|_, (actor, ..)| *actor != p.actor);
                self.cut.retain(|(actor, ..), _| *actor != p.actor);
            }
            _ => {}
        }
    }
}

/// Waits until every watch that a fault has cut is open again, or `limit` is over: that a watch stays away is for the judge
/// to say.
pub(crate) async fn reconnected(stage: &Stage, limit: Duration) {
    let (mut next, mut cut) = (0, Cut::default());
    let all_open = |live: &crate::recorder::Live| {
        while let Some(record) = live.records.get(next) {
            next += 1;
            cut.read(&record.event);
        }
        cut.cut.is_empty().then_some(())
    };
    stage.recorder.wait_for(limit, all_open).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `+N pods` opens stream N, `fault N` and `client N` close it, `exit` ends the process. Gives the resources left cut.
    fn check(story: &[&str], expected: &[&str]) {
        let mut cut = Cut::default();
        for line in story {
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            let event = match verb {
                "exit" => {
                    json!({"process": {"actor": "operator/0", "what": {"exited": {"code": 1, "expected": false}}}})
                }
                "fault" | "client" => json!({"streamClosed": {"stream": rest.parse::<u64>().unwrap(), "by": verb}}),
                open => json!({"streamOpened": {
                    "stream": open[1..].parse::<u64>().unwrap(), "request": 1, "actor": "operator/0", "resource": rest,
                }}),
            };
            cut.read(&serde_json::from_value(event).unwrap());
        }
        let left: Vec<String> = cut.cut.keys().map(|(_, resource, _)| resource.to_string()).collect();
        assert_eq!(left, expected, "{story:?}");
    }

    #[test]
    fn a_watch_is_cut_until_the_same_process_opens_it_again() {
        check(&["+1 pods", "+2 services", "fault 1", "fault 2"], &["pods", "services"]);
        check(&["+1 pods", "+2 services", "fault 1", "fault 2", "+3 pods"], &["services"]);
        check(&["+1 pods", "client 1"], &[]);
        check(&["+1 pods", "+2 pods", "fault 1", "fault 2", "+3 pods"], &["pods"]);
        check(&["+1 pods", "+2 pods", "fault 1", "fault 2", "+3 pods", "+4 pods"], &[]);
        check(&["+1 pods", "fault 1", "exit"], &[]);
    }
}
