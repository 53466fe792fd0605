//! The few writes that faults make to the cluster. Each has an actor of its own and an undo record on disk before it happens.

use crate::recorder::Recorder;
use kube::Client;
use serde_json::{Value, json};
use spiritlevel_model::{Actor, Meta, RequestInfo, history::Event, plan::Plan, suite::Leases};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Clients for each purpose, and the undo file.
pub(crate) struct HarnessWrites {
    conflict: Client,
    lease: Client,
    undo: PathBuf,
    touches: Mutex<u64>,
}

impl HarnessWrites {
    /// `undo` is a file of one JSON record a line.
    pub(crate) fn new(conflict: Client, lease: Client, undo: &Path) -> Self {
        Self { conflict, lease, undo: undo.into(), touches: Mutex::new(0) }
    }

    /// A number that no touch has had yet.
    pub(crate) fn next_touch(&self) -> u64 {
        let mut touches = self.touches.lock().unwrap_or_else(PoisonError::into_inner);
        *touches += 1;
        *touches
    }

    /// Writes down how to undo what comes next. A failure is a note: the write itself is harmless.
    pub(crate) fn undo_record(&self, recorder: &Recorder, what: &Value) {
        let written = File::options().create(true).append(true).open(&self.undo).and_then(|mut file| {
            writeln!(file, "{what}")?;
            file.sync_data()
        });
        if let Err(e) = written {
            recorder.record(Event::Note { text: format!("the undo record could not be written: {e}") });
        }
    }

    /// As whom objects are touched for a conflict.
    pub(crate) fn conflict(&self) -> &Client {
        &self.conflict
    }

    /// Releases the leases of a replica that is dead, so that its successor need not wait until they run out.
    pub(crate) async fn release_leases(&self, recorder: &Recorder, actor: &Actor, plan: &Plan) {
        if plan.process.leases == Leases::Keep {
            return;
        }
        for (url, holder) in held_leases(recorder, actor) {
            let undo = json!({"url": url, "undo": {"spec": {"holderIdentity": holder}}});
            self.undo_record(recorder, &undo);
            // As client-go releases (`leaderelection.go`, `release`): no holder, one second.
            let patch = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
            if let Err(e) = merge_patch(&self.lease, &url, &patch).await {
                recorder.record(Event::Note { text: format!("the lease {url} of {actor} could not be released: {e}") });
            }
        }
    }
}

/// Leases whose holder was last written by this actor.
fn held_leases(recorder: &Recorder, actor: &Actor) -> Vec<(String, String)> {
    let live = recorder.live();
    let is_lease = |group: &str, resource: &str| group == "coordination.k8s.io" && resource == "leases";
    let mut held = Vec::new();
    for object in live.world.live().filter(|l| is_lease(&l.resource.group, &l.resource.resource)).map(|l| &l.object) {
        let holder = object["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let (Some(uid), Some(namespace), Some(name)) = (object.uid(), object.namespace(), object.name()) else {
            continue;
        };
        let mut versions = live.ledger.versions().iter().enumerate().rev();
        let last = versions.find(|(_, v)| v.version.object.uid().as_ref() == Some(&uid)).map(|(i, _)| i);
        let author = last.and_then(|i| live.ledger.author(i)).map(|w| &w.actor);
        if !holder.is_empty() && author == Some(actor) {
            let url = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
            held.push((url, holder.to_owned()));
        }
    }
    held
}

/// The URL of the object that a request is about.
pub(crate) fn object_url(info: &RequestInfo, name: Option<&str>) -> Option<String> {
    let resource = info.resource.as_ref()?;
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let namespace = match &info.namespace {
        Some(namespace) if resource.resource != "namespaces" => format!("/namespaces/{namespace}"),
        _ => String::new(),
    };
    Some(format!("{root}/{}{namespace}/{}/{}", info.version, resource.resource, name?))
}

/// A JSON merge patch.
pub(crate) async fn merge_patch(client: &Client, url: &str, patch: &Value) -> Result<Value, kube::Error> {
    patch_as(client, "application/merge-patch+json", url, patch).await
}

/// A patch of any type.
pub(crate) async fn patch_as(
    client: &Client,
    media_type: &str,
    url: &str,
    patch: &Value,
) -> Result<Value, kube::Error> {
    let request = http::Request::patch(url)
        .header(http::header::CONTENT_TYPE, media_type)
        .body(patch.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}
