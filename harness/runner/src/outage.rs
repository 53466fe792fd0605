//! A planned outage of the API server: nobody writes from its beginning until the witness watches again, so that no object
//! version goes unseen.

use crate::{Error, lane::Lane, stage::Stage, witness::Resume};
use spiritlevel_model::history::Event;
use spiritlevel_proxy::Listener;
use std::time::Duration;

/// Requests that are upstream when the listeners close; a hanging webhook takes 10 s by default.
const IN_FLIGHT: Duration = Duration::from_secs(15);
/// Watches are quicker than this by far.
const CATCH_UP: Duration = Duration::from_secs(10);
/// Between two looks at something that tells no events.
const LOOK: Duration = Duration::from_millis(5);

/// While it lasts, every actor finds its connections refused.
pub(crate) struct Outage<'a> {
    stage: &'a Stage,
    lane: &'a Lane,
    caught_up: bool,
}

// === impl Outage ===

impl<'a> Outage<'a> {
    /// Closes every listener, and waits until all that was written is seen. `cause` is the step.
    pub(crate) async fn begin(stage: &'a Stage, lane: &'a Lane, cause: &str) -> Self {
        lane.until_proven().await;
        let mut outage = Self { stage, lane, caught_up: false };
        outage.each(|listener| listener.begin_outage(cause));
        let mut in_flight = true;
        let waited = tokio::time::timeout(IN_FLIGHT, async {
            while in_flight {
                in_flight = false;
                outage.each(|listener| in_flight |= listener.in_flight() > 0);
                tokio::time::sleep(LOOK).await;
            }
        });
        let quiet = waited.await.is_ok();
        // Who was being accepted at the moment of the first call is caught by the second.
        outage.each(|listener| listener.begin_outage(cause));
        outage.caught_up = quiet && lane.witness().caught_up(CATCH_UP).await;
        if !outage.caught_up {
            let text = "the API server was stopped before the witness had seen all that was written".into();
            stage.recorder.record(Event::Note { text });
        }
        lane.witness().stop().await;
        outage
    }

    /// The API server is ready: the witness goes on, then everybody else. `Ok` when all listen again.
    pub(crate) async fn end(self, restored: bool) -> Result<(), Error> {
        let how = match (restored, self.caught_up) {
            (true, _) => Resume::Anew,
            (false, true) => Resume::CaughtUp,
            (false, false) => Resume::Doubtful,
        };
        let resumed = self.lane.witness().resume(how).await;
        if let Err(e) = &resumed {
            // Half a witness is none, for this run and for those that follow.
            self.lane.give_up(format!("the witness did not come back: {}", e.chain()));
        }
        resumed
    }

    fn each(&self, mut act: impl FnMut(&Listener)) {
        self.lane.listeners().iter().for_each(&mut act);
        self.stage.replicas().iter().for_each(|replica| act(replica.listener()));
    }
}

impl Drop for Outage<'_> {
    fn drop(&mut self) {
        self.each(Listener::end_outage);
    }
}
