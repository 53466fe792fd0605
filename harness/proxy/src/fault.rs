//! What a fired rule does to an exchange, at its point.

use crate::{
    body::{self, Body},
    exchange::Transit,
    path::Path,
    status,
};
use http::Response;
use spiritlevel_model::fault::{Action, At, CloseWatch, DisconnectAs, Exchange, Firing, PartitionAs};
use std::{sync::Arc, time::Duration};

/// As long as a load balancer in front of an API server waits before it answers 504 (kube-apiserver's own
/// `--request-timeout` is 60 s as well).
const GATEWAY: Duration = Duration::from_secs(60);

/// How an exchange goes on.
pub(crate) enum Course {
    /// As without a fault.
    On,
    /// With an answer that the fault made.
    Refuse(Response<Body>),
    /// With a refusal that no fault made.
    Deny(Response<Body>),
    /// The fault cuts it off.
    Cut,
    /// It breaks, and no fault did it.
    Break,
    /// The client is gone.
    Gone,
}

impl Transit {
    /// Lets the fault act if this is its point.
    pub(crate) async fn act(&mut self, at: At) -> Course {
        match self.firing.clone().filter(|f| f.at == at) {
            Some(firing) => self.carry_out(&firing).await,
            None => Course::On,
        }
    }

    async fn carry_out(&mut self, firing: &Firing) -> Course {
        let path = self.path.clone();
        let fault = firing.fault.as_str();
        match &firing.action {
            Action::Reject { status, reason, retry_after, message } => {
                Course::Refuse(self.refuse(*status, reason.as_deref(), *retry_after, message.as_deref()))
            }
            Action::Disconnect { how } => self.disconnect(*how, fault).await,
            Action::DenyVerb {} => Course::Refuse(self.refuse(403, None, None, None)),
            Action::Throttle { per_second } => {
                if path.is_too_many(fault, *per_second) {
                    Course::Refuse(self.refuse(429, None, None, None))
                } else {
                    Course::On
                }
            }
            Action::Goaway {} => {
                self.connection.go_away();
                path.effect(fault, "the connection takes no further request");
                Course::On
            }
            Action::ExpireToken {} => {
                if path.refuse_token(fault, self.token.as_ref()) {
                    path.director.perform(firing, &self.view()).await;
                }
                Course::Refuse(self.refuse(401, None, None, None))
            }
            Action::RotateToken { overlap } => {
                path.director.perform(firing, &self.view()).await;
                path.refuse_token_after(fault, self.token.clone(), overlap.0);
                Course::On
            }
            // As an API server without this feature; the client lists instead.
            Action::StaleView { .. } if self.info.query.get("sendInitialEvents").is_some_and(|v| v == "true") => {
                let words = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is \
                             forbidden for watch unless the WatchList feature gate is enabled";
                Course::Refuse(self.refuse(422, None, None, Some(words)))
            }
            // Asked for by the rewritten request, and done to the answer.
            Action::StaleView { .. }
            | Action::ShortWatch { .. }
            | Action::ReplayFromOlder { .. }
            | Action::EmptyList {}
            | Action::DiscoveryFailure { .. } => Course::On,
            Action::Conflict {} | Action::Mark {} => {
                path.director.perform(firing, &self.view()).await;
                Course::On
            }
            Action::Delay { by } => {
                let late = async {
                    tokio::select! {
                        () = tokio::time::sleep(by.0) => by.to_string(),
                        () = path.director.healed(fault) => "heal".into(),
                    }
                };
                self.wait(fault, late).await
            }
            Action::Hold { until } | Action::HoldWatchStart { until } => self.wait(fault, path.director.released(fault, until)).await,
            Action::Crash { .. } => {
                let held = path.hold_gate();
                path.director.perform(firing, &self.view()).await;
                // Before the gate opens: what the dead process still had on its way must not pass.
                path.reset_connections(None);
                drop(held);
                Course::Cut
            }
            Action::Pause { .. } => {
                let held = path.hold_gate();
                path.director.perform(firing, &self.view()).await;
                drop(held);
                Course::On
            }
            Action::Partition { .. } => {
                let held = path.hold_gate();
                path.director.perform(firing, &self.view()).await;
                drop(held);
                self.meet_partition().await
            }
            // A watch from an expired place: opened, told so, and over.
            Action::CloseWatch { how: CloseWatch::Error410 } => {
                let body = body::whole(status::expired_event(&self.info));
                let answer = Response::builder().header(http::header::CONTENT_TYPE, "application/json").body(body);
                answer.map_or(Course::Break, Course::Refuse)
            }
            // These act on streams.
            Action::CloseWatch { .. }
            | Action::WithholdEvents { .. }
            | Action::DropEvents { .. }
            | Action::DuplicateEvents { .. }
            | Action::WithholdBookmarks {}
            | Action::DelayEvents { .. } => Course::On,
        }
    }

    /// Waits, and records what it waited for.
    async fn wait(&mut self, fault: &str, until: impl Future<Output = String>) -> Course {
        match self.client.unless_gone(until).await {
            Some(by) => {
                self.path.released(fault, self.id, by);
                Course::On
            }
            None => Course::Gone,
        }
    }

    async fn disconnect(&mut self, how: DisconnectAs, fault: &str) -> Course {
        let path = self.path.clone();
        match how {
            DisconnectAs::Reset => Course::Cut,
            DisconnectAs::Hang => {
                if self.client.unless_gone(path.director.healed(fault)).await.is_none() {
                    path.effect(fault, "the client gave up");
                    return Course::Gone;
                }
                Course::Cut
            }
            DisconnectAs::Timeout => {
                let timeout = async {
                    tokio::select! {
                        () = tokio::time::sleep(GATEWAY) => {}
                        () = path.director.healed(fault) => {}
                    }
                };
                if self.client.unless_gone(timeout).await.is_none() {
                    path.effect(fault, "the client gave up");
                    return Course::Gone;
                }
                Course::Refuse(self.refuse(504, None, None, None))
            }
            DisconnectAs::Timeout504 => Course::Refuse(self.refuse(504, None, None, None)),
        }
    }

    /// The path was cut under this very exchange.
    async fn meet_partition(&mut self) -> Course {
        let path = self.path.clone();
        match path.cut() {
            Some(PartitionAs::Refuse | PartitionAs::Reset) => {
                path.tell_partition("an exchange was cut off");
                Course::Cut
            }
            // Waits where every exchange waits.
            Some(PartitionAs::Blackhole) => match self.client.unless_gone(path.unless_blackhole()).await {
                Some(()) => Course::On,
                None => Course::Gone,
            },
            Some(PartitionAs::Slow) => match self.client.unless_gone(path.slowly()).await {
                Some(()) => Course::On,
                None => Course::Gone,
            },
            None => Course::On,
        }
    }
}

/// Lets a fault act whose point is after the reply; the actor's gate is shut.
pub(crate) async fn act_after_reply(path: &Arc<Path>, firing: &Firing, exchange: &Exchange<'_>) {
    match &firing.action {
        Action::Crash { .. } => {
            path.director.perform(firing, exchange).await;
            path.reset_connections(None);
        }
        Action::Pause { .. } | Action::Mark {} | Action::Partition { .. } => {
            path.director.perform(firing, exchange).await;
        }
        Action::Disconnect { .. } => {
            path.reset_connections(Some(&firing.fault));
            path.effect(&firing.fault, "connections were reset after the reply");
        }
        // After the reply there is nothing left to refuse, delay or hold.
        _ => {}
    }
}
