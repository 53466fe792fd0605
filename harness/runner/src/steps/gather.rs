//! `events`, `describe`, `get`, `operatorLogs`, `requestLog`: what a reader wants to see after a failure, as notes.

use super::play::{Failure, Play};
use crate::api;
use serde_json::Value;
use spiritlevel_model::{
    Meta,
    history::Event,
    operation::{Gather, Ref, Tail},
};

/// Lines of a log without a `tail`.
const LINES: usize = 100;

impl Play<'_> {
    pub(super) async fn events(&self, _: &Gather) -> Result<(), Failure> {
        let url = format!("/api/v1/namespaces/{}/events", self.namespace());
        let list = self.objects(&self.around.lane.clients().arrange).get(&url).await?;
        for event in list["items"].as_array().into_iter().flatten() {
            let text = |key: &str| event[key].as_str().unwrap_or_default();
            let about = event["involvedObject"]["name"].as_str().unwrap_or_default();
            self.note(format!("event {} {} {about}: {}", text("type"), text("reason"), text("message")));
        }
        Ok(())
    }

    pub(super) async fn pod_logs(&self, gather: &Gather) -> Result<(), Failure> {
        if self.around.lane.kubelet().is_some() {
            self.note("this provider's pods do not run, so they have no logs".into());
            return Ok(());
        }
        let pods: Vec<Value> = {
            let live = self.stage.recorder.live();
            if let Some(target) = &gather.target {
                let target = Ref { api_version: "v1".into(), kind: "Pod".into(), ..target.clone() };
                api::referred(&live.world, &target, self.namespace()).into_iter().cloned().collect()
            } else {
                let own = |l: &&spiritlevel_model::world::Live| l.object.namespace() == Some(self.namespace());
                live.world.of_kind("v1", "Pod").filter(own).map(|l| l.object.clone()).collect()
            }
        };
        for pod in pods {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name().unwrap_or_default());
            for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
                let container = container["name"].as_str().unwrap_or_default();
                let url =
                    format!("/api/v1/namespaces/{namespace}/pods/{name}/log?container={container}&tailLines={LINES}");
                let request = http::Request::get(&url).body(Vec::new()).map_err(|e| Failure::Broken(e.to_string()))?;
                // Gathering follows a failure; what cannot be had is no further one.
                match self.around.lane.clients().arrange.request_text(request).await {
                    Ok(text) => text.lines().for_each(|line| {
                        self.note(format!("{name}/{container}: {}", self.stage.recorder.redactor().line(line)));
                    }),
                    Err(e) => self.note(format!("{name}/{container}: no log: {e}")),
                }
            }
        }
        Ok(())
    }

    pub(super) fn show(&self, gather: &Gather) -> Result<(), Failure> {
        let found: Vec<Value> = {
            let live = self.stage.recorder.live();
            if let Some(target) = &gather.target {
                api::referred(&live.world, target, self.namespace()).into_iter().cloned().collect()
            } else {
                let subject = &self.stage.plan.suite.subject;
                live.world.of_kind(&subject.api_version, &subject.kind).map(|l| l.object.clone()).collect()
            }
        };
        for mut object in found.into_iter().filter(|o| o["kind"] != "Secret") {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            self.note(serde_json::to_string_pretty(&object).map_err(|e| Failure::Broken(e.to_string()))?);
        }
        Ok(())
    }

    pub(super) fn operator_logs(&self, tail: Tail) {
        for replica in self.stage.replicas() {
            for line in replica.tail(tail.tail.unwrap_or(LINES)) {
                self.note(format!("{}: {line}", replica.actor()));
            }
        }
    }

    pub(super) fn request_log(&self, tail: Tail) {
        let lines: Vec<String> = {
            let live = self.stage.recorder.live();
            let requests = live.records.iter().rev().filter_map(|r| match &r.event {
                Event::Request(q) if q.actor.is_operator() => {
                    Some(format!("request {} of {}: {}", q.id, q.actor, q.info))
                }
                _ => None,
            });
            requests.take(tail.tail.unwrap_or(LINES)).collect()
        };
        lines.into_iter().rev().for_each(|l| self.note(l));
    }
}
