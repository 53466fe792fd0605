//! A real control plane, a way to it with the forger in between and one without, and the comparison of two answers.

use crate::forger::Forger;
use futures::future::LocalBoxFuture;
use http::{HeaderMap, Method, Request, header};
use kube::{Client, client::Body};
use libtest_mimic::Failed;
use serde_json::{Value, json};
use spiritlevel_cluster::{Component, Endpoint, Identity, Quiet, connect};
use spiritlevel_model::Actor;
use spiritlevel_proxy::{HostPort, Listener};
use spiritlevel_runner::{lane::Lane, place::Place};
use std::{error::Error, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Runtime,
    time::Instant,
};

pub(crate) type Outcome = Result<(), Box<dyn Error>>;
pub(crate) type Row = for<'a> fn(&'a Ground) -> LocalBoxFuture<'a, Outcome>;

/// The namespace of all rows.
pub(crate) const HOME: &str = "/api/v1/namespaces/answers";
pub(crate) const CONFIGMAPS: &str = "/api/v1/namespaces/answers/configmaps";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/answers/widgets";

const DEADLINE: Duration = Duration::from_secs(60);

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    /// May do everything.
    Admin,
    /// A ServiceAccount without any rights.
    Nobody,
    /// With a token that nobody gave.
    Stranger,
}

/// What all rows share; made by the first.
pub(crate) struct Ground {
    runtime: Runtime,
    lane: Lane,
    forger: Arc<Forger>,
    listener: Listener,
    straight: Endpoint,
    forged: Endpoint,
    nobody: String,
}

/// A request.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) who: Who,
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: String,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: HeaderMap,
    pub(crate) text: String,
}

// === impl Ask ===

impl Ask {
    pub(crate) fn new(method: &str, url: impl Into<String>, body: &Value) -> Self {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let method = method.parse().expect("rows use known methods");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Self { who: Who::Admin, method, url: url.into(), content_type, accept: "application/json", body }
    }

    pub(crate) fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }
}

// === impl Answer ===

impl Answer {
    /// The body as JSON; of a stream the first event.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// All that matters, in one value.
    fn essence(&self) -> Value {
        let header = |name: header::HeaderName| self.headers.get(name).and_then(|v| v.to_str().ok()).map(String::from);
        let body = match self.json() {
            Value::Null => Value::String(self.text.clone()),
            json => json,
        };
        json!({
            "status": self.status,
            "content-type": header(header::CONTENT_TYPE),
            "cache-control": header(header::CACHE_CONTROL),
            "retry-after": header(header::RETRY_AFTER),
            "x-content-type-options": header(header::X_CONTENT_TYPE_OPTIONS),
            "body": body,
        })
    }
}

// === impl Ground ===

impl Ground {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let (lane, forger, listener, straight, forged) = runtime.block_on(async {
            let lane = Lane::start(&Place::default(), vec![widgets()], &Quiet).await?;
            let forger = Arc::new(Forger::default());
            let listener = lane.proxy().listen(Actor::operator(0), Arc::new(HostPort::new()), forger.clone())?;
            let forged = Endpoint { url: listener.url(), ca_pem: lane.proxy().ca_pem().to_owned() };
            let straight = lane.cluster().endpoint().clone();
            Ok::<_, Box<dyn Error>>((lane, forger, listener, straight, forged))
        })?;
        let mut ground = Self { runtime, lane, forger, listener, straight, forged, nobody: String::new() };
        ground.nobody = ground.runtime.block_on(ground.arrange())?;
        Ok(ground)
    }

    /// The token of somebody without rights.
    async fn arrange(&self) -> Result<String, Box<dyn Error>> {
        let named = |name: &str| json!({"metadata": {"name": name}});
        self.done("POST", "/api/v1/namespaces", &named("answers")).await?;
        self.done("POST", &format!("{HOME}/serviceaccounts"), &named("nobody")).await?;
        self.done("POST", CONFIGMAPS, &named("x")).await?;
        let token = self.done("POST", &format!("{HOME}/serviceaccounts/nobody/token"), &json!({"spec": {}})).await?;
        Ok(token["status"]["token"].as_str().ok_or("a token request was answered without a token")?.to_owned())
    }

    pub(crate) fn run(&self, row: Row) -> Result<(), Failed> {
        self.runtime.block_on(row(self)).map_err(|error| Failed::from(error.to_string()))
    }

    /// A request of the arrangement, which must succeed.
    pub(crate) async fn done(&self, method: &str, url: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
        let answer = self.really(&Ask::new(method, url, body)).await?;
        if (200..300).contains(&answer.status) {
            return Ok(answer.json());
        }
        Err(format!("{method} {url} was answered {}: {}", answer.status, answer.text).into())
    }

    /// The API server's own answer.
    pub(crate) async fn really(&self, ask: &Ask) -> Result<Answer, Box<dyn Error>> {
        self.send(&self.straight, ask).await
    }

    /// Asks until the API server's controllers are so far that it refuses.
    pub(crate) async fn until_refused(&self, ask: &Ask, status: u16) -> Result<Answer, Box<dyn Error>> {
        let end = Instant::now() + DEADLINE;
        loop {
            let answer = self.really(ask).await?;
            if answer.status == status {
                return Ok(answer);
            }
            if Instant::now() > end {
                return Err(format!("{} was answered {}, not {status}: {}", ask.url, answer.status, answer.text).into());
            }
            tokio::task::yield_now().await;
        }
    }

    /// The forged answer equals the real one.
    pub(crate) async fn same(&self, ask: &Ask, reject: &Value) -> Outcome {
        self.alike(ask, reject, |_| ()).await
    }

    /// The same, but for what `blur` takes out of both.
    pub(crate) async fn alike(&self, ask: &Ask, reject: &Value, blur: impl Fn(&mut Value)) -> Outcome {
        let status = u16::try_from(reject["status"].as_u64().unwrap_or_default())?;
        let is_watch = ask.url.contains("watch=true");
        let real = self.until_refused(ask, if is_watch { 200 } else { status }).await?;
        self.forger.arm(serde_json::from_value(json!({"reject": reject}))?);
        let forged = self.send(&self.forged, ask).await?;
        let (mut real, mut forged) = (real.essence(), forged.essence());
        blur(&mut real);
        blur(&mut forged);
        if real == forged {
            return Ok(());
        }
        Err(format!("{} {}\nreal   {real}\nforged {forged}", ask.method, ask.url).into())
    }

    async fn send(&self, to: &Endpoint, ask: &Ask) -> Result<Answer, Box<dyn Error>> {
        let token: &str = match ask.who {
            Who::Admin => self.lane.cluster().token(Identity::Admin),
            Who::Nobody => &self.nobody,
            Who::Stranger => "nobody-gave-it",
        };
        // A client for each: what an earlier one left behind on its connection does not matter.
        let client: Client = connect(to, token)?;
        let mut request =
            Request::builder().method(ask.method.clone()).uri(&ask.url).header(header::ACCEPT, ask.accept);
        if !ask.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, ask.content_type);
        }
        let response = client.send(request.body(Body::from(ask.body.clone().into_bytes()))?).await?;
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect_bytes().await?.to_vec())?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, text })
    }

    /// Forgets everything of etcd's before this revision.
    pub(crate) async fn compact(&self, revision: &str) -> Outcome {
        let local = self.lane.cluster().local().ok_or("the control plane is not of this machine")?;
        let id = local.process_id(Component::Etcd).await.ok_or("etcd does not run")?;
        let arguments = std::fs::read_to_string(format!("/proc/{id}/cmdline"))?;
        let address = arguments.split('\0').find_map(|a| a.strip_prefix("--listen-client-urls=http://"));
        let mut etcd = TcpStream::connect(address.ok_or("etcd was started without an address")?).await?;
        let body = json!({"revision": revision, "physical": true}).to_string();
        let head = format!(
            "POST /v3/kv/compaction HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        etcd.write_all((head + &body).as_bytes()).await?;
        let mut answer = String::new();
        etcd.read_to_string(&mut answer).await?;
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer.into()) }
    }

    pub(crate) fn end(self) {
        let Self { runtime, lane, listener, .. } = self;
        runtime.block_on(async {
            listener.stop().await;
            if let Err(error) = lane.stop().await {
                eprintln!("failed to stop the lane: {error}");
            }
        });
    }
}

fn widgets() -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": 3}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}
