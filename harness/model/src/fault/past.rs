//! What a client's next request meets after its stream was ended, and how it is sent back to an older state.

use super::{Action, At, Fault, Firing, Legality, Moment, Stream, rule::sends_initial_events};
use crate::{Actor, RequestId, RequestInfo, ResourceKey, Revision, Verb};
use std::collections::BTreeMap;

/// What is known of former streams, and of the moments that can be gone back to.
#[derive(Debug, Default)]
pub(super) struct Past {
    expired: Vec<Ended>,
    older: Vec<(Ended, Revision)>,
    moments: BTreeMap<String, Revision>,
}

/// A client whose stream was ended by a fault.
#[derive(Debug)]
struct Ended {
    fault: String,
    actor: Actor,
    resource: Option<ResourceKey>,
    namespace: Option<String>,
}

impl Past {
    /// Every watch of the client from its old place gets 410, until it lists.
    pub(super) fn expire(&mut self, fault: &str, stream: &Stream) {
        self.expired.push(Ended::new(fault, stream));
    }

    /// The client's next watch begins at an older place.
    pub(super) fn go_back(&mut self, fault: &str, stream: &Stream, to: Revision) {
        self.older.push((Ended::new(fault, stream), to));
    }

    pub(super) fn set_moment(&mut self, moment: &Moment, revision: Revision) {
        self.moments.insert(key(moment), revision);
    }

    pub(super) fn moment(&self, moment: &Moment) -> Option<Revision> {
        self.moments.get(&key(moment)).copied()
    }

    /// The moment that a fault goes back to, once it has come.
    pub(super) fn moment_of(&self, fault: &Fault) -> Option<Revision> {
        match &fault.action {
            Action::StaleView { at, .. } => self.moment(at),
            _ => None,
        }
    }

    /// What a request meets because of an earlier stream of its client.
    pub(super) fn meet(&mut self, id: RequestId, actor: &Actor, info: &RequestInfo) -> Option<Firing> {
        let lists = match info.verb {
            // After a list the client has a new place, and neither a 410 nor an older place is due any more.
            Verb::List => true,
            // Nor does a watch from now on, or one that begins with the state, depend on the old place.
            Verb::Watch => {
                info.query.get("resourceVersion").is_none_or(|r| r.is_empty() || r == "0") || sends_initial_events(info)
            }
            _ => return None,
        };
        if lists {
            self.expired.retain(|e| !e.is(actor, info));
            self.older.retain(|(e, _)| !e.is(actor, info));
            return None;
        }
        if let Some(expired) = self.expired.iter().find(|e| e.is(actor, info)) {
            // As kube-apiserver's watch cache says it: 200, and in the stream an ERROR event with a 410 Status
            // (`k8s.io/apiserver/pkg/storage/cacher/cacher.go`, `newErrWatcher`). What is compacted stays so, however often
            // the client asks.
            let action = Action::CloseWatch { how: super::CloseWatch::Error410 };
            return Some(Firing::new(&expired.fault, action, At::BeforeSend, id));
        }
        let at = self.older.iter().position(|(e, _)| e.is(actor, info))?;
        let (ended, to) = self.older.remove(at);
        let given = info.query.get("resourceVersion").and_then(|r| r.parse().ok()).map(Revision);
        let rewrite = vec![("resourceVersion".to_owned(), Some(to.0.to_string()))];
        let action = Action::ReplayFromOlder { versions: 0 };
        // A client that is already further back needs no help.
        given
            .is_none_or(|given| given > to)
            .then(|| Firing { rewrite, ..Firing::new(&ended.fault, action, At::BeforeSend, id) })
    }
}

/// How a request is put into the past, and how legal that is: a client that leaves the version to the API server may get
/// any; one that asks for the newest (no `resourceVersion`) or to begin with the state may not.
pub(super) fn stale(info: &RequestInfo, to: Revision) -> (Vec<(String, Option<String>)>, Legality) {
    let set = |key: &str, value: Option<String>| (key.to_owned(), value);
    let asked = info.query.get("resourceVersion").map(String::as_str);
    let revision = Some(to.0.to_string());
    match info.verb {
        // A continued list is of one version already.
        Verb::List if info.query.contains_key("continue") => (Vec::new(), Legality::Some),
        Verb::List => {
            let exact = set("resourceVersionMatch", Some("Exact".into()));
            let legality = if asked == Some("0") { Legality::Some } else { Legality::Never };
            (vec![set("resourceVersion", revision), exact], legality)
        }
        _ if sends_initial_events(info) => (Vec::new(), Legality::Always),
        _ => match asked.and_then(|r| r.parse().ok()).map(Revision) {
            Some(given) if given <= to => (Vec::new(), Legality::Some),
            _ => (vec![set("resourceVersion", revision)], Legality::Never),
        },
    }
}

fn key(moment: &Moment) -> String {
    match moment {
        Moment::Step(name) => format!("step {name}"),
        Moment::Fired(name) => format!("fault {name}"),
    }
}

// === impl Ended ===

impl Ended {
    fn new(fault: &str, stream: &Stream) -> Self {
        Self {
            fault: fault.into(),
            actor: stream.actor.clone(),
            resource: stream.info.resource.clone(),
            namespace: stream.info.namespace.clone(),
        }
    }

    fn is(&self, actor: &Actor, info: &RequestInfo) -> bool {
        self.actor == *actor && self.resource == info.resource && self.namespace == info.namespace
    }
}
