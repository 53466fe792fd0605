//! Which exchanges, streams and events a fault is about: addressed by meaning.

use super::Until;
use crate::{Actor, RequestId, RequestInfo, ResourceKey, Revision, StreamId, Uid, Verb};
use globset::{GlobBuilder, GlobMatcher};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One value or a list of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One.
    One(T),
    /// Any of these.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// As a slice.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// The `match` of a fault. What is left out matches everything; globs are `*` and `?`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Match {
    /// Who: `operator/0`, `operator/*` (the default), `statefulset-controller`, `garbage-collector`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<OneOrMany<String>>,
    /// A glob over the User-Agent: some operators have one per controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// What is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<OneOrMany<Verb>>,
    /// To what: `pods`, `statefulsets.apps`, `*.db.example.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<OneOrMany<String>>,
    /// `status`, `binding`, …; left out: requests without a subresource only. `"*"` is any or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// Of the request, or of an event's object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of the object, in the URL or in a create's body; of an event's object on streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels of the object in the request's body, or of an event's object.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// Parameters of the URL: `labelSelector`, `fieldSelector`, `resourceVersion`, …
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub query: IndexMap<String, String>,
    /// CEL over the `object` that the request would make: asked of the API server by a dry run, so that it is the whole
    /// object with its defaults, also for patches, server-side apply and protobuf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// CEL over `old` and `object`: what is stored, and what the request would make of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// From the n-th match on, counted from 1, per actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// Every n-th match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// How often it fires; default once, or without limit where `for` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// What `nth` counts over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Scope>,
    /// Nothing matches before this has happened since the fault was armed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Until>,
}

/// What an ordinal counts over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// All matching exchanges of the actor.
    Actor,
    /// Those of the same object.
    Object,
}

impl Match {
    /// The verbs that are named.
    pub fn verbs(&self) -> Vec<Verb> {
        self.verb.iter().flat_map(|v| v.as_slice().iter().copied()).collect()
    }

    /// Whether an actor is meant; without `actor` the operator's replicas are.
    pub fn is_for(&self, actor: &Actor) -> bool {
        self.actor.as_ref().map_or(actor.is_operator(), |a| a.as_slice().iter().any(|g| glob(g, &actor.0)))
    }

    /// Whether a request is meant, ordinals aside.
    pub fn is_request(&self, x: &Exchange<'_>) -> bool {
        self.is_addressed(x.actor, x.user_agent, x.info)
            && self.namespace.as_ref().is_none_or(|g| x.info.namespace.as_deref().is_some_and(|n| glob(g, n)))
            && self.name.as_ref().is_none_or(|g| x.name().is_some_and(|n| glob(g, n)))
            && self.labels.iter().all(|(k, v)| x.bodies.label(k).is_some_and(|l| glob(v, l)))
    }

    /// Whether a stream is meant; name, namespace and labels then select events in it.
    pub fn is_stream(&self, s: &Stream) -> bool {
        s.info.verb == Verb::Watch
            && (self.verb.is_none() || self.verbs().contains(&Verb::Watch))
            && self.is_addressed(&s.actor, s.user_agent.as_deref(), &s.info)
    }

    /// Whether an event's object is meant.
    pub fn is_event(&self, f: &Frame<'_>) -> bool {
        self.namespace.as_ref().is_none_or(|g| f.namespace.is_some_and(|n| glob(g, n)))
            && self.name.as_ref().is_none_or(|g| f.name.is_some_and(|n| glob(g, n)))
            && self.labels.iter().all(|(k, v)| f.object["metadata"]["labels"][k].as_str().is_some_and(|l| glob(v, l)))
    }

    fn is_addressed(&self, actor: &Actor, user_agent: Option<&str>, info: &RequestInfo) -> bool {
        let resource = |r: &ResourceKey| r.to_string();
        self.is_for(actor)
            && self.user_agent.as_ref().is_none_or(|g| user_agent.is_some_and(|u| glob(g, u)))
            && self.verb.as_ref().is_none_or(|v| v.as_slice().contains(&info.verb))
            && self.resource.as_ref().is_none_or(|all| {
                info.resource.as_ref().map(resource).is_some_and(|r| all.as_slice().iter().any(|g| glob(g, &r)))
            })
            && match (&self.subresource, &info.subresource) {
                (None, None) => true,
                // Without a resource the fault is about everything.
                (None, Some(_)) => self.resource.is_none(),
                (Some(g), None) => g == "*",
                (Some(g), Some(s)) => glob(g, s),
            }
            && self.query.iter().all(|(k, v)| info.query.get(k).is_some_and(|q| glob(v, q)))
    }
}

/// A request as a rule sees it.
#[derive(Clone, Debug)]
pub struct Exchange<'a> {
    /// Its number in the history.
    pub id: RequestId,
    /// Who sent it.
    pub actor: &'a Actor,
    /// Its User-Agent.
    pub user_agent: Option<&'a str>,
    /// What it asks for.
    pub info: &'a RequestInfo,
    /// What could be read of its body.
    pub bodies: &'a Bodies,
}

impl Exchange<'_> {
    /// The object's name, from the URL or the body.
    pub fn name(&self) -> Option<&str> {
        self.info.name.as_deref().or(self.bodies.name.as_deref())
    }

    /// Whether the server can answer 409 Conflict because somebody else wrote: the request carries a resourceVersion (a
    /// delete as a precondition; one of a uid alone fails only for another object), or is an unforced server-side apply.
    pub fn can_conflict(&self) -> bool {
        match self.info.verb {
            Verb::Update | Verb::Patch => self.bodies.resource_version.is_some() || self.is_unforced_apply(),
            Verb::Delete => self.bodies.resource_version.is_some(),
            _ => false,
        }
    }

    /// Whether it is a server-side apply that gives way to other managers of a field.
    pub fn is_unforced_apply(&self) -> bool {
        self.bodies.apply && self.info.query.get("force").is_none_or(|f| f != "true")
    }
}

/// What could be read of a request's body, whatever its encoding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bodies {
    /// The whole body where it was JSON (or YAML, as server-side apply sends).
    pub json: Option<Value>,
    /// `metadata.name`.
    pub name: Option<String>,
    /// `metadata.generateName`.
    pub generate_name: Option<String>,
    /// `metadata.labels`.
    pub labels: IndexMap<String, String>,
    /// `metadata.resourceVersion`, unless empty.
    pub resource_version: Option<String>,
    /// `metadata.uid`.
    pub uid: Option<Uid>,
    /// Whether it is a server-side apply.
    pub apply: bool,
    /// What the API server says that the request would make.
    pub outcome: Option<Value>,
    /// What is stored now.
    pub stored: Option<Value>,
}

impl Bodies {
    /// The object that the request is about, as whole as it is known.
    pub fn object(&self) -> Option<&Value> {
        self.outcome.as_ref().or(self.json.as_ref())
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

/// A watch stream as a rule sees it.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its number in the history.
    pub id: StreamId,
    /// The request that opened it.
    pub request: RequestId,
    /// Who watches.
    pub actor: Actor,
    /// The request's User-Agent.
    pub user_agent: Option<String>,
    /// What is watched.
    pub info: RequestInfo,
}

/// A watch event as a rule sees it.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: FrameType,
    /// The object; for Table frames the first row's.
    pub object: &'a Value,
    /// The object's uid.
    pub uid: Option<&'a str>,
    /// The object's namespace.
    pub namespace: Option<&'a str>,
    /// The object's name.
    pub name: Option<&'a str>,
    /// The object's resourceVersion.
    pub revision: Option<Revision>,
}

/// Types of watch events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum FrameType {
    /// An object is there.
    Added,
    /// An object changed.
    Modified,
    /// An object is gone.
    Deleted,
    /// Nothing changed, the resourceVersion moved on.
    Bookmark,
    /// The stream failed; the object is a `Status`.
    Error,
}

/// Whether a glob (`*`, `?`) covers the whole text.
pub fn glob(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?', '[', '{']) {
        return pattern == text;
    }
    matcher(pattern).is_some_and(|m| m.is_match(text))
}

fn matcher(pattern: &str) -> Option<GlobMatcher> {
    GlobBuilder::new(pattern).literal_separator(false).build().ok().map(|g| g.compile_matcher())
}
