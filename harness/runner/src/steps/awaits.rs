//! `await` and `wait`.

use super::play::{Failure, Play};
use crate::{
    api, exchange_match,
    recorder::Live,
    settle::{Goal, not_converged},
};
use serde_json::Value;
use spiritlevel_model::{
    history::{Event, FaultEvent},
    operation::{Await, Ref, Wait, WaitFor},
    readiness,
};
use std::{collections::BTreeSet, time::Duration};

impl Play<'_> {
    pub(super) async fn happens(&self, wanted: &Await, limit: Duration) -> Result<(), Failure> {
        let from = self.stage.recorder.live().records.len();
        let seconds = limit.as_secs();
        for fault in &wanted.fired {
            let fired = |live: &Live| {
                let is = |e: &Event| matches!(e, Event::Fault(f) if f.name == *fault && matches!(f.what, FaultEvent::Fired { .. }));
                live.records.iter().any(|r| is(&r.event)).then_some(())
            };
            if self.stage.recorder.wait_for(limit, fired).await.is_none() {
                return Err(Failure::TimedOut(format!("fault {fault} had not fired within {seconds} s")));
            }
        }
        if let Some(exchange) = &wanted.exchange {
            let mut asked = BTreeSet::new();
            let mut next = from;
            let answered = |live: &Live| {
                while let Some(record) = live.records.get(next) {
                    next += 1;
                    match &record.event {
                        Event::Request(r) if exchange_match::is(exchange, r) => {
                            asked.insert(r.id);
                        }
                        Event::Answer(a) if asked.contains(&a.id) => return Some(()),
                        _ => {}
                    }
                }
                None
            };
            if self.stage.recorder.wait_for(limit, answered).await.is_none() {
                return Err(Failure::TimedOut(format!("no exchange that matches was answered within {seconds} s")));
            }
        }
        if let Some(converged) = &wanted.converged {
            let lacking = |live: &Live| not_converged(self.stage, live, Goal::Ready, converged.target.as_ref());
            if self.stage.recorder.wait_for(limit, |live| lacking(live).is_empty().then_some(())).await.is_none() {
                let why = lacking(&self.stage.recorder.live()).join("; ");
                return Err(Failure::Failed(format!("not converged after {seconds} s: {why}")));
            }
        }
        if let Some(ready) = &wanted.ready {
            let lacking = |live: &Live| self.lacking(live, &ready.target);
            if self.stage.recorder.wait_for(limit, |live| lacking(live).is_none().then_some(())).await.is_none() {
                let why = lacking(&self.stage.recorder.live()).unwrap_or_default();
                return Err(Failure::Failed(format!("not ready after {seconds} s: {why}")));
            }
        }
        if let Some(gone) = &wanted.gone {
            let there = |live: &Live| {
                api::referred(&live.world, &gone.target, self.namespace()).first().map(|o| api::describe(o))
            };
            if self.stage.recorder.wait_for(limit, |live| there(live).is_none().then_some(())).await.is_none() {
                let what = there(&self.stage.recorder.live()).unwrap_or_default();
                return Err(Failure::Failed(format!("{what} is still there after {seconds} s")));
            }
        }
        if let Some(settled) = &wanted.settled {
            let quiet = settled.quiet.map_or(Duration::from_secs(2), |p| p.0);
            self.still_for(quiet, limit).await?;
        }
        Ok(())
    }

    /// Until nothing was written for a while.
    async fn still_for(&self, quiet: Duration, limit: Duration) -> Result<(), Failure> {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            let last = self.stage.recorder.live().last_change_ms;
            let still = Duration::from_secs_f64(((self.stage.recorder.now_ms() - last) / 1000.0).max(0.0));
            if still >= quiet {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(Failure::TimedOut(format!("something was still written after {} s", limit.as_secs())));
            }
            tokio::time::sleep(quiet.saturating_sub(still).min(limit)).await;
        }
    }

    fn lacking(&self, live: &Live, target: &Ref) -> Option<String> {
        let found = api::referred(&live.world, target, self.namespace());
        let subject = &self.stage.plan.suite.subject;
        let Some(first) = found.first() else { return Some(format!("there is no such {}", target.kind)) };
        if target.kind == subject.kind && target.api_version == subject.api_version {
            return readiness::not_ready(subject, first).map(|why| format!("{}: {why}", api::describe(first)));
        }
        let mut plain = subject.clone();
        plain.ready = spiritlevel_model::suite::Ready { condition: Some("Ready".into()), ..Default::default() };
        found.iter().find_map(|o| readiness::not_ready(&plain, o).map(|why| format!("{}: {why}", api::describe(o))))
    }

    pub(super) async fn wait(&self, wait: &Wait, limit: Duration) -> Result<(), Failure> {
        self.objects(&self.around.lane.clients().user).kind(&wait.target.api_version, &wait.target.kind)?;
        let lacking = |live: &Live| {
            let found = api::referred(&live.world, &wait.target, self.namespace());
            match &wait.what {
                WaitFor::Deletion {} => found.first().map(|o| format!("{} is still there", api::describe(o))),
                _ if found.is_empty() => Some(format!("there is no such {}", wait.target.kind)),
                WaitFor::Condition { name, value } => {
                    let value = value.as_deref().unwrap_or("True");
                    let holds = |o: &&&Value| {
                        let conditions = o["status"]["conditions"].as_array().into_iter().flatten();
                        conditions.into_iter().any(|c| c["type"] == **name && c["status"] == *value)
                    };
                    found
                        .iter()
                        .find(|o| !holds(o))
                        .map(|o| format!("{} has no condition {name}={value}", api::describe(o)))
                }
                WaitFor::JsonPath { path, value } => {
                    let pointer = path.trim_matches(['{', '}']).replace('.', "/");
                    let differs = |o: &&&Value| o.pointer(&pointer) != Some(value);
                    found.iter().find(differs).map(|o| {
                        format!("{} has {path} = {}", api::describe(o), o.pointer(&pointer).unwrap_or(&Value::Null))
                    })
                }
            }
        };
        if self.stage.recorder.wait_for(limit, |live| lacking(live).is_none().then_some(())).await.is_some() {
            return Ok(());
        }
        let why = lacking(&self.stage.recorder.live()).unwrap_or_default();
        Err(Failure::Failed(format!("after {} s: {why}", limit.as_secs())))
    }
}
