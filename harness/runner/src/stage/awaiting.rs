//! What faults wait for: holds until something happens, `after`, and moments that can be gone back to.

use super::Stage;
use kube::Client;
use serde_json::Value;
use spiritlevel_model::{
    RequestId, Revision,
    fault::{FrameType, Moment, Until},
    history::{Event, FaultEvent, StepState, VersionType},
};
use std::collections::BTreeSet;

/// Something awaited that has not happened yet.
#[derive(Debug)]
pub(super) struct Awaited {
    until: Until,
    /// Requests that it is about and that are not answered yet.
    asked: BTreeSet<RequestId>,
}

impl Awaited {
    pub(super) fn new(until: Until) -> Self {
        Self { until, asked: BTreeSet::new() }
    }

    /// Whether an event is it; in words.
    pub(super) fn is(&mut self, event: &Event) -> Option<String> {
        match (&self.until, event) {
            (Until::Fired(name), Event::Fault(f)) if f.name == *name && matches!(f.what, FaultEvent::Fired { .. }) => {
                Some(format!("fault {name} fired"))
            }
            (Until::Step(name), Event::Step(s)) if s.name.as_ref() == Some(name) && s.state == StepState::Started => {
                Some(format!("step {name} began"))
            }
            (Until::Exchange(wanted), Event::Request(r)) if crate::exchange_match::is(wanted, r) => {
                self.asked.insert(r.id);
                None
            }
            (Until::Exchange(_), Event::Answer(a)) if self.asked.contains(&a.id) => {
                Some(format!("request {} was answered", a.id))
            }
            (Until::Event { resource, name, kind }, Event::Version(v)) => {
                let event = match v.kind {
                    VersionType::Found | VersionType::Added => FrameType::Added,
                    VersionType::Modified => FrameType::Modified,
                    VersionType::Deleted => FrameType::Deleted,
                };
                let object = v.object["metadata"]["name"].as_str();
                let named = |n: &str| object.is_some_and(|o| spiritlevel_model::fault::glob(n, o));
                let is = v.resource.to_string() == *resource
                    && name.as_deref().is_none_or(named)
                    && kind.is_none_or(|k| k == event);
                is.then(|| format!("{} {} was seen", v.resource, object.unwrap_or("?")))
            }
            _ => None,
        }
    }
}

impl Stage {
    /// Looks whether an event is what a fault's `after` waits for; before it is recorded, so that nothing that follows
    /// from it comes first.
    pub(super) fn open_faults(&self, event: &Event) {
        let mut waiting = self.waiting();
        waiting.retain(|name, awaited| {
            let happened = awaited.is(event).is_some();
            if happened {
                self.rules().open(name);
            }
            !happened
        });
    }

    /// Begins to wait for what the `after` of an armed fault names.
    pub(super) fn wait_after(&self, fault: &str) {
        let awaited = self.rules().awaited().into_iter().find(|(name, _)| name == fault);
        let Some((name, until)) = awaited else { return };
        if let Until::Elapsed(by) = until {
            let Some(myself) = self.myself() else { return };
            self.tasks.spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(by.0) => myself.rules().open(&name),
                    () = myself.until_healed(&name) => {}
                }
            });
        } else {
            self.waiting().insert(name, Awaited::new(until));
        }
    }

    /// Whether some fault goes back to this moment.
    pub(crate) fn is_moment(&self, moment: &Moment) -> bool {
        self.rules().moments().any(|m| m == moment)
    }

    /// Remembers the present revision as that of a moment: every object of a list at it is as it is now.
    pub(crate) async fn keep_moment(&self, client: &Client, moment: &Moment) -> Result<(), kube::Error> {
        let request = http::Request::get("/api/v1/namespaces?limit=1").body(Vec::new()).map_err(kube::Error::HttpError)?;
        let list: Value = client.request(request).await?;
        if let Some(revision) = list["metadata"]["resourceVersion"].as_str().and_then(|r| r.parse().ok()) {
            self.rules().set_moment(moment, Revision(revision));
            let what = match moment {
                Moment::Step(name) => format!("when step {name} ended"),
                Moment::Fired(name) => format!("when fault {name} fired"),
            };
            let text = format!("{what}, the resourceVersion was {revision}");
            self.recorder.record(Event::Note { text });
        }
        Ok(())
    }
}
