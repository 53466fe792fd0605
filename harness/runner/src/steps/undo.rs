//! What steps did to the cluster and heal undoes.

use crate::{Error, harness_writes::merge_patch, lane::Lane, stage::Stage};
use serde_json::{Value, json};
use spiritlevel_model::history::Event;
use spiritlevel_proxy::Webhook;

/// How something that a step did is undone.
pub(crate) enum Undo {
    /// A role gets its rules back.
    Rules {
        /// The role.
        url: String,
        /// All of them.
        rules: Value,
    },
    /// A webhook is asked no more, and ends.
    Webhook {
        /// Its configuration.
        url: String,
        /// Whom it asks.
        backend: Webhook,
    },
}

/// Undoes what steps did, the last one first. A failure is a note: the run goes on, and will show it.
pub(crate) async fn undo_all(stage: &Stage, lane: &Lane) {
    let mut left = std::mem::take(&mut *stage.undo());
    while let Some(undo) = left.pop() {
        if let Err(e) = one(undo, lane).await {
            stage.recorder.record(Event::Note { text: format!("a step could not be undone: {}", e.chain()) });
        }
    }
}

async fn one(undo: Undo, lane: &Lane) -> Result<(), Error> {
    match undo {
        Undo::Rules { url, rules } => {
            let answer = merge_patch(&lane.clients().revoke, &url, &json!({"rules": rules})).await;
            answer.map(drop).map_err(Error::request(format!("give back the rules of {url}")))
        }
        Undo::Webhook { url, backend } => {
            let request = http::Request::delete(&url).body(Vec::new()).map_err(kube::Error::HttpError);
            let request = request.map_err(Error::request(format!("delete {url}")))?;
            let answer = lane.clients().webhook.request::<Value>(request).await;
            drop(backend);
            answer.map(drop).map_err(Error::request(format!("delete {url}")))
        }
    }
}
