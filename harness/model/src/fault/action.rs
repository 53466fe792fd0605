//! What a fault does.

use super::{FrameType, Match};
use crate::{Period, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `do` of a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// The client gets a faithful `Status` instead of the server's answer.
    Reject {
        /// HTTP status.
        status: u16,
        /// `metav1.StatusReason`; default: the usual one of the status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Seconds, for 429 and 503.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
        /// The message; default: the API server's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A real 409: the object is touched just before the request goes on.
    Conflict {},
    /// The connection breaks on this exchange: the request (`beforeSend`) or the reply (`afterCommit`) is lost.
    Disconnect {
        /// How the client sees it.
        #[serde(default, rename = "as")]
        how: DisconnectAs,
    },
    /// The request or reply is late.
    Delay {
        /// By how much.
        by: Period,
    },
    /// The request or reply waits for something else to happen.
    Hold {
        /// For what; released by heal at the latest.
        until: Until,
    },
    /// The operator is killed exactly here.
    Crash {
        /// With which signal.
        #[serde(default)]
        signal: Signal,
        /// Until it is started again; beats the restart policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restart_after: Option<Period>,
    },
    /// SIGSTOP here, SIGCONT later.
    Pause {
        /// For how long.
        #[serde(rename = "for")]
        lasts: Period,
    },
    /// Nothing happens; a name for this moment.
    Mark {},
    /// A list is answered without any items, and successfully: breaks the API's contract.
    EmptyList {},
    /// What comes more often is answered 429, with `Retry-After: 1`.
    Throttle {
        /// Requests a second that pass.
        per_second: u32,
    },
    /// The connection takes no further request: GOAWAY (HTTP/2) or `Connection: close` (HTTP/1.1). What is open on it goes
    /// on to its end.
    Goaway {},
    /// The operator's token is valid no more: 401, until it has read its token file again, where a new one is.
    ExpireToken {},
    /// A new token is in the operator's token file, as a kubelet renews it; the old one is valid for a while.
    RotateToken {
        /// For how long; default ten seconds.
        #[serde(default = "overlap")]
        overlap: Period,
    },
    /// A permission is taken away: 403 in the words of RBAC, until healed.
    DenyVerb {},
    /// An API group is not there, in no form of discovery.
    DiscoveryFailure {
        /// Its name, `db.example.com`.
        group: String,
    },
    /// A gap between a list and its watch.
    HoldWatchStart {
        /// Until what; released by heal at the latest.
        until: Until,
    },
    /// Watches end early, as the API server may end them at any time.
    ShortWatch {
        /// After this long.
        timeout: Period,
    },
    /// The watch ends.
    CloseWatch {
        /// In which way.
        #[serde(rename = "as")]
        how: CloseWatch,
    },
    /// From the first matching event on the client sees nothing of the stream; later it ends and must list again.
    WithholdEvents {
        /// Which event types begin it; default all but bookmarks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        types: Vec<FrameType>,
        /// CEL over the event's `object`.
        #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
        filter: Option<String>,
        /// How the stream ends.
        #[serde(default)]
        then: Then,
    },
    /// Single events vanish and nothing is repaired: breaks the API's contract.
    DropEvents {
        /// Which event types; default all but bookmarks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        types: Vec<FrameType>,
        /// CEL over the event's `object`.
        #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
        filter: Option<String>,
    },
    /// An event comes twice in one stream: breaks the API's contract.
    DuplicateEvents {
        /// Which event types; default all but bookmarks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        types: Vec<FrameType>,
        /// CEL over the event's `object`.
        #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
        filter: Option<String>,
    },
    /// No bookmarks come, but for the one that ends the initial events.
    WithholdBookmarks {},
    /// The stream ends, and the next one begins with events that the client has had: breaks the API's contract.
    ReplayFromOlder {
        /// How many.
        versions: u32,
    },
    /// The whole stream lags, order kept.
    DelayEvents {
        /// Every event by this much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Period>,
        /// Or until something happens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Until>,
    },
    /// Lists and watches are answered from a consistent past, as by an API server whose cache lags; writes and single
    /// reads are not. Released in order.
    StaleView {
        /// As things were then.
        at: Moment,
        /// Which resources: `pods`, `*.db.example.com`; default all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<String>,
        /// Until what; default until healed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Until>,
    },
    /// The actor and the API server do not reach each other.
    Partition {
        /// How it looks to the actor.
        #[serde(rename = "as")]
        how: PartitionAs,
    },
}

fn overlap() -> Period {
    Period::secs(10)
}

/// A moment of the run that can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Moment {
    /// When a named step has ended.
    Step(String),
    /// When a `mark` has fired.
    Fired(String),
}

/// How a broken exchange looks to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DisconnectAs {
    /// The connection (HTTP/1.1) or the stream (HTTP/2) is reset.
    #[default]
    Reset,
    /// No answer until the client's own time-out, or heal.
    Hang,
    /// No answer for as long as a gateway waits, then 504 with the API server's words.
    Timeout,
    /// 504 at once: the server may or may not have done it.
    Timeout504,
}

/// What a held request, reply or stream waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Until {
    /// A length of time.
    Elapsed(Period),
    /// Another fault fires.
    Fired(String),
    /// A named step begins.
    Step(String),
    /// Another exchange is answered.
    Exchange(Box<Match>),
    /// The witness sees an object version.
    Event {
        /// Resource, `pods`, `statefulsets.apps`.
        resource: String,
        /// Name, with globs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Type of the event.
        #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<FrameType>,
    },
}

/// How the operator is told to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGKILL: nothing can be cleaned up.
    #[default]
    Kill,
    /// SIGTERM: as a rolling update does.
    Term,
    /// SIGINT.
    Int,
}

/// The ways in which a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CloseWatch {
    /// The body ends, as after `timeoutSeconds`.
    Clean,
    /// The connection (HTTP/1.1) or the stream (HTTP/2) is reset.
    Reset,
    /// An ERROR event with a 410 `Status`, then the end.
    Error410,
    /// The end, and every watch from the old place is answered by an ERROR event with a 410 `Status`, until the client
    /// lists again.
    Expire,
    /// Open, but without a byte more.
    Stall,
    /// The whole connection that it is on: no byte more, pings of HTTP/2 unanswered.
    StallConnection,
}

/// How a withheld stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Then {
    /// The end, and every watch from the old place is answered by an ERROR event with a 410 `Status`, until the client
    /// lists again.
    #[default]
    Expire,
    /// An ERROR event with a 410 `Status` inside the stream.
    Error410,
}

/// How a partition looks to the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PartitionAs {
    /// Open connections are reset, new ones refused.
    Refuse,
    /// Open connections are reset, new ones accepted and reset.
    Reset,
    /// Bytes vanish in both directions, nothing ends.
    Blackhole,
    /// Every exchange and event is late by two seconds.
    Slow,
}

impl Action {
    /// As written in scenario files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reject { .. } => "reject",
            Self::Conflict {} => "conflict",
            Self::Disconnect { .. } => "disconnect",
            Self::Delay { .. } => "delay",
            Self::Hold { .. } => "hold",
            Self::Crash { .. } => "crash",
            Self::Pause { .. } => "pause",
            Self::Mark {} => "mark",
            Self::CloseWatch { .. } => "closeWatch",
            Self::WithholdEvents { .. } => "withholdEvents",
            Self::DropEvents { .. } => "dropEvents",
            Self::DelayEvents { .. } => "delayEvents",
            Self::Partition { .. } => "partition",
            Self::EmptyList {} => "emptyList",
            Self::Throttle { .. } => "throttle",
            Self::Goaway {} => "goaway",
            Self::ExpireToken {} => "expireToken",
            Self::RotateToken { .. } => "rotateToken",
            Self::DenyVerb {} => "denyVerb",
            Self::DiscoveryFailure { .. } => "discoveryFailure",
            Self::HoldWatchStart { .. } => "holdWatchStart",
            Self::ShortWatch { .. } => "shortWatch",
            Self::DuplicateEvents { .. } => "duplicateEvents",
            Self::WithholdBookmarks {} => "withholdBookmarks",
            Self::ReplayFromOlder { .. } => "replayFromOlder",
            Self::StaleView { .. } => "staleView",
        }
    }

    /// Whether it acts on watch streams and their events rather than on exchanges.
    pub fn acts_on_streams(&self) -> bool {
        matches!(
            self,
            Self::CloseWatch { .. }
                | Self::WithholdEvents { .. }
                | Self::DropEvents { .. }
                | Self::DuplicateEvents { .. }
                | Self::WithholdBookmarks {}
                | Self::ReplayFromOlder { .. }
                | Self::DelayEvents { .. }
        )
    }

    /// The verbs of the requests that it can act on; empty: all.
    pub fn verbs(&self) -> &'static [Verb] {
        match self {
            Self::EmptyList {} => &[Verb::List],
            Self::HoldWatchStart { .. } | Self::ShortWatch { .. } => &[Verb::Watch],
            Self::StaleView { .. } => &[Verb::List, Verb::Watch],
            action if action.acts_on_streams() => &[Verb::Watch],
            _ => &[],
        }
    }

    /// Whether it lasts: it acts on everything that matches until it is healed, and not once.
    pub fn lasts(&self) -> bool {
        matches!(
            self,
            Self::WithholdEvents { .. }
                | Self::DelayEvents { .. }
                | Self::WithholdBookmarks {}
                | Self::Throttle { .. }
                | Self::DenyVerb {}
                | Self::DiscoveryFailure { .. }
                | Self::ShortWatch { .. }
                | Self::StaleView { .. }
        )
    }

    /// The types of events that it is about, and an expression over their objects.
    pub fn events(&self) -> (&[FrameType], Option<&str>) {
        match self {
            Self::WithholdEvents { types, filter, .. }
            | Self::DropEvents { types, filter }
            | Self::DuplicateEvents { types, filter } => (types, filter.as_deref()),
            Self::WithholdBookmarks {} => (&[FrameType::Bookmark], None),
            _ => (&[], None),
        }
    }

    /// What it waits for, and the key under which that is said.
    pub fn until(&self) -> Option<&Until> {
        match self {
            Self::Hold { until } | Self::HoldWatchStart { until } => Some(until),
            Self::DelayEvents { until, .. } | Self::StaleView { until, .. } => until.as_ref(),
            _ => None,
        }
    }
}
