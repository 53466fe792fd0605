//! One row of the table: requests, and who made which version.

use crate::ground::{DEADLINE, Ground, HOME};
use serde_json::Value;
use spiritlevel_model::{
    Meta, RequestId, ResourceKey,
    attribution::{Claim, Seen},
    history::{Event, VersionType},
};
use spiritlevel_runner::recorder::Live;
use std::{collections::BTreeSet, error::Error, fmt::Write as _};

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// A row.
pub(crate) struct Row<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) name: &'static str,
}

/// A request that was sent, and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) id: RequestId,
    pub(crate) status: Option<u16>,
}

/// Who is expected to have made a version.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// Exactly this exchange.
    This(Sent),
    /// An exchange of this actor.
    Actor(&'static str),
    /// Nobody whom the proxy saw.
    Nobody,
    /// One of these, or ambiguous between some of them.
    Among(Vec<Sent>),
}

/// A version with its claim.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) kind: VersionType,
    pub(crate) object: Value,
    pub(crate) claim: Claim,
    pub(crate) actor: Option<String>,
    text: String,
}

pub(crate) const ADDED: VersionType = VersionType::Added;
pub(crate) const MODIFIED: VersionType = VersionType::Modified;
pub(crate) const DELETED: VersionType = VersionType::Deleted;

/// `/api/v1/namespaces/attribution/configmaps[/name]`.
pub(crate) fn url(resource: &str, name: &str) -> String {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let root = match group {
        "" => "/api/v1".to_owned(),
        group => format!("/apis/{group}/v1"),
    };
    let name = if name.is_empty() { String::new() } else { format!("/{name}") };
    format!("{root}/namespaces/{HOME}/{resource}{name}")
}

// === impl Row ===

impl<'a> Row<'a> {
    pub(crate) fn new(ground: &'a Ground, name: &'static str) -> Self {
        Self { ground, name }
    }

    fn live(&self) -> std::sync::MutexGuard<'_, Live> {
        self.ground.guest.recorder.live()
    }

    /// Sends JSON; a PATCH is a merge patch.
    pub(crate) async fn send(&self, who: &str, method: &str, url: &str, body: &Value) -> Result<Sent, Box<dyn Error>> {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.send_as(who, method, url, content_type, body).await
    }

    /// Sends, and waits for the reply, whatever it is.
    pub(crate) async fn send_as(
        &self,
        who: &str,
        method: &str,
        url: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Sent, Box<dyn Error>> {
        let from = self.live().records.len();
        let client = self.ground.clients.get(who).ok_or_else(|| format!("there is no client of {who}"))?;
        let request = http::Request::builder().method(method).uri(url).header(http::header::CONTENT_TYPE, content_type);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        // The history tells what became of it.
        let _ = client.request_text(request.body(body)?).await;
        self.find(from, who, url)
    }

    /// The first request of an actor for this URL since `from`.
    pub(crate) fn find(&self, from: usize, who: &str, url: &str) -> Result<Sent, Box<dyn Error>> {
        let live = self.live();
        let path = url.split_once('?').map_or(url, |(path, _)| path);
        let mut requests = live.records[from..].iter().filter_map(|r| match &r.event {
            Event::Request(request) if request.actor.0 == who && request.info.path == path => Some(request.id),
            _ => None,
        });
        let id = requests.next().ok_or_else(|| format!("{who} {url} was not recorded"))?;
        let status = live.records.iter().find_map(|r| match &r.event {
            Event::Answer(a) if a.id == id => Some(a.status),
            _ => None,
        });
        Ok(Sent { id, status: status.flatten() })
    }

    /// All versions of an object (`pods/p`), of every uid that it had.
    pub(crate) fn life(&self, object: &str) -> Vec<Made> {
        life(&self.live(), object)
    }

    /// Waits until an object's life is as told and every write has been answered, and shows it.
    pub(crate) async fn until(&self, object: &str, is: impl Fn(&[Made]) -> bool) -> Result<Vec<Made>, Box<dyn Error>> {
        let wanted = |live: &Live| Some(life(live, object)).filter(|made| is(made) && !is_writing(live));
        let found = self.ground.guest.recorder.wait_for(DEADLINE, wanted).await;
        found.ok_or_else(|| format!("waited too long for {object}:\n{}", table(&self.life(object))).into())
    }

    /// The whole life of an object, version by version.
    pub(crate) async fn made(&self, object: &str, expected: &[(VersionType, By)]) -> Outcome {
        let made = self.until(object, |made| made.len() >= expected.len()).await?;
        println!("  {}: {object}\n{}", self.name, table(&made));
        let fits = |(made, (kind, by)): (&Made, &(VersionType, By))| made.kind == *kind && made.is(by);
        if made.len() == expected.len() && made.iter().zip(expected).all(fits) {
            return Ok(());
        }
        Err(format!("{object}: expected {expected:?}, got\n{}{}", table(&made), self.exchanges(object)).into())
    }

    /// Every version of an object was made by one of these actors, each of which made one.
    pub(crate) async fn authors(&self, object: &str, until: impl Fn(&[Made]) -> bool, expected: &[&str]) -> Outcome {
        let made = self.until(object, until).await?;
        println!("  {}: {object}\n{}", self.name, table(&made));
        let authors: BTreeSet<&str> = made.iter().map(|m| m.actor.as_deref().unwrap_or("nobody")).collect();
        if authors == expected.iter().copied().collect() {
            return Ok(());
        }
        Err(format!("{object}: expected {expected:?}, got\n{}{}", table(&made), self.exchanges(object)).into())
    }

    /// The other way round: the versions of an object that one exchange made.
    pub(crate) fn makes(&self, sent: Sent, object: &str, expected: &[VersionType]) -> Outcome {
        let life = self.life(object);
        let made: Vec<VersionType> = life.iter().filter(|m| m.claim == Claim::By(sent.id)).map(|m| m.kind).collect();
        if made == expected {
            return Ok(());
        }
        let exchanges = self.exchanges(object);
        Err(format!("request {} made {made:?} of {object}, not {expected:?}:\n{}{exchanges}", sent.id, table(&life))
            .into())
    }

    /// Fails unless the API server answered as the row rests upon.
    pub(crate) fn answered(&self, sent: Sent, status: u16) -> Outcome {
        if sent.status == Some(status) {
            return Ok(());
        }
        let live = self.live();
        let answer = live.records.iter().find(|r| matches!(&r.event, Event::Answer(a) if a.id == sent.id));
        Err(format!("request {} was answered {:?}, not {status}: {answer:?}", sent.id, sent.status).into())
    }

    /// What is known of the requests for an object.
    fn exchanges(&self, object: &str) -> String {
        let live = self.live();
        let (resource, name) = object.split_once('/').unwrap_or(("", object));
        let mut text = String::new();
        let here = |r: Option<&ResourceKey>| r.is_some_and(|r| r.to_string() == resource);
        let named = |n: Option<&str>| n.is_none_or(|n| n == name);
        for write in live.ledger.writes().filter(|w| here(w.info.resource.as_ref()) && named(w.info.name.as_deref())) {
            let answer =
                write.answer.as_ref().map(|(seq, a)| format!("answered at {seq} {:?} {:?}", a.status, a.object));
            let _ = writeln!(
                text,
                "      request {} at {} by {}: {} -> {answer:?}",
                write.id, write.sent_seq, write.actor, write.info
            );
        }
        text
    }
}

// === impl Made ===

impl Made {
    fn is(&self, by: &By) -> bool {
        match by {
            By::This(sent) => self.claim == Claim::By(sent.id),
            By::Actor(actor) => matches!(self.claim, Claim::By(_)) && self.actor.as_deref() == Some(actor),
            By::Nobody => self.claim == Claim::Nobody,
            By::Among(several) => {
                let ids: Vec<RequestId> = several.iter().map(|s| s.id).collect();
                match &self.claim {
                    Claim::By(id) => ids.contains(id),
                    Claim::Ambiguous(claimed) => claimed.iter().all(|id| ids.contains(id)),
                    Claim::Nobody => false,
                }
            }
        }
    }
}

// === helpers ===

fn life(live: &Live, object: &str) -> Vec<Made> {
    let is =
        |seen: &Seen| format!("{}/{}", seen.version.resource, seen.version.object.name().unwrap_or_default()) == object;
    let all = live.ledger.versions().iter().enumerate().filter(|(_, seen)| is(seen));
    all.map(|(index, seen)| made(live, index, seen)).collect()
}

/// Whether an exchange that may write is under way: its version may be there before its answer.
fn is_writing(live: &Live) -> bool {
    let mut open = BTreeSet::new();
    for record in &live.records {
        match &record.event {
            Event::Request(r) if r.info.verb.is_write() => {
                open.insert(r.id);
            }
            Event::Reply(r) => {
                open.remove(&r.id);
            }
            _ => {}
        }
    }
    !open.is_empty()
}

/// A version with its claim.
pub(crate) fn made(live: &Live, index: usize, seen: &Seen) -> Made {
    let claim = live.ledger.claim(index);
    let who = |id: &RequestId| {
        live.ledger.write(*id).map_or_else(String::new, |w| format!("{} with {id}: {}", w.actor, w.info))
    };
    let by = match &claim {
        Claim::Nobody => "nobody".to_owned(),
        Claim::By(id) => who(id),
        Claim::Ambiguous(ids) => format!("ambiguous: {}", ids.iter().map(who).collect::<Vec<_>>().join(" | ")),
    };
    let (version, seq) = (&seen.version, seen.seq);
    let name = version.object.name().unwrap_or_default();
    let text =
        format!("{:?} {}/{name} rev {} seen at {seq}, by {by}", version.kind, version.resource, version.revision.0);
    let actor = live.ledger.author(index).map(|w| w.actor.0.clone());
    Made { kind: version.kind, object: version.object.clone(), claim, actor, text }
}

/// One line a version.
pub(crate) fn table(made: &[Made]) -> String {
    made.iter().fold(String::new(), |mut text, m| {
        let _ = writeln!(text, "    {}", m.text);
        text
    })
}
