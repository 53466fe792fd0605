//! One lane for all rows, and a guest that keeps the history of one namespace.

use crate::row::{Outcome, Row};
use futures::future::{BoxFuture, LocalBoxFuture};
use kube::Client;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use spiritlevel_cluster::{
    Endpoint, Identity, Quiet, connect,
    kubelet_stub::{KubeletRules, PodMatch, PodPhase, PodState},
};
use spiritlevel_model::{
    Actor, ResourceKey,
    fault::{Action, At, DisconnectAs, Exchange, Firing, Frame, FrameFate, Stream, Until},
    history::Event,
};
use spiritlevel_proxy::{Director, HostPort, Listener};
use spiritlevel_runner::{hub::Guest, lane::Lane, place::Place, recorder::Recorder};
use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};
use tokio::runtime::Runtime;

/// The namespace of all rows.
pub(crate) const HOME: &str = "attribution";
/// A namespace that a row deletes.
pub(crate) const DOOMED: &str = "attribution-doomed";
/// No wait takes longer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// What is done and expected in one row.
pub(crate) type Test = for<'a> fn(&'a Row<'a>) -> LocalBoxFuture<'a, Outcome>;

/// What all rows share; made by the first.
pub(crate) struct Ground {
    pub(crate) runtime: Runtime,
    pub(crate) lane: Lane,
    pub(crate) guest: Arc<Chronicler>,
    pub(crate) operator: Listener,
    pub(crate) clients: BTreeMap<&'static str, Client>,
    directory: tempfile::TempDir,
}

/// Keeps the history, and loses what rows ask to be lost.
pub(crate) struct Chronicler {
    pub(crate) recorder: Recorder,
}

// === impl Ground ===

impl Ground {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let directory = tempfile::tempdir()?;
        let (lane, guest, operator, clients) = runtime.block_on(async {
            let lane = Lane::start(&Place::default(), vec![widgets()], &Quiet).await?;
            let recorder = Recorder::create(&directory.path().join("history.jsonl"), Vec::new())?;
            let guest = Arc::new(Chronicler { recorder });
            lane.hub().join(guest.clone());
            let operator = lane.proxy().listen(Actor::operator(0), Arc::new(HostPort::new()), guest.clone())?;
            let endpoint = Endpoint { url: operator.url(), ca_pem: lane.proxy().ca_pem().to_owned() };
            let ours = lane.clients();
            let clients = BTreeMap::from([
                ("operator/0", connect(&endpoint, lane.cluster().token(Identity::Harness))?),
                ("user", ours.user.clone()),
                ("harness/arrange", ours.arrange.clone()),
                ("harness/probe", ours.probe.clone()),
                ("harness/drift", ours.drift.clone()),
                ("harness/touch", ours.touch.clone()),
            ]);
            Ok::<_, Box<dyn Error>>((lane, guest, operator, clients))
        })?;
        let ground = Self { runtime, lane, guest, operator, clients, directory };
        ground.runtime.block_on(ground.arrange())?;
        Ok(ground)
    }

    async fn arrange(&self) -> Outcome {
        let row = Row::new(self, "arrange");
        for name in [HOME, DOOMED] {
            row.send("harness/arrange", "POST", "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
        }
        // Pods of which nobody but the rows takes care.
        let by_hand = PodMatch {
            labels: BTreeMap::from([("bound".into(), "by-hand".into())]),
            state: Some(PodState::Phase(PodPhase::Pending)),
            ..PodMatch::default()
        };
        if let Some(kubelet) = self.lane.kubelet() {
            kubelet.rules(HOME, KubeletRules { matches: vec![by_hand], ..KubeletRules::default() });
        }
        // Without its account, admission refuses pods.
        let accounts = ResourceKey::new("", "serviceaccounts");
        let there =
            self.guest.recorder.wait_for(DEADLINE, |live| live.world.at(&accounts, Some(HOME), "default").map(drop));
        there.await.ok_or("there is no default account")?;
        Ok(())
    }

    pub(crate) fn run(&self, name: &'static str, test: Test) -> Result<(), Failed> {
        let row = Row::new(self, name);
        self.runtime.block_on(test(&row)).map_err(|error| Failed::from(error.to_string()))
    }

    pub(crate) fn end(self) {
        let Self { runtime, lane, guest, operator, clients, directory } = self;
        runtime.block_on(async {
            drop(clients);
            let guest: Arc<dyn Guest> = guest;
            lane.hub().leave(&guest);
            operator.stop().await;
            if let Err(error) = lane.stop().await {
                eprintln!("failed to stop the lane: {error}");
            }
        });
        drop(directory);
    }
}

fn widgets() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
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
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    })
}

// === impl Chronicler ===

impl Director for Chronicler {
    /// The names of objects say what is to be lost.
    fn on_request(&self, exchange: &Exchange<'_>) -> Option<Firing> {
        let fire = |action, at| Some(Firing::new("lost", action, at, exchange.id));
        match exchange.name()? {
            "reply-lost" => fire(Action::Disconnect { how: DisconnectAs::Reset }, At::AfterCommit),
            "refused" if exchange.actor.is_operator() => {
                let action = Action::Reject { status: 500, reason: None, retry_after: None, message: None };
                fire(action, At::BeforeSend)
            }
            _ => None,
        }
    }

    fn on_frame(&self, _: &Stream, _: &Frame<'_>) -> FrameFate {
        FrameFate::Deliver
    }

    fn on_stream_end(&self, _: &Stream) {}

    fn perform<'a>(&'a self, _: &'a Firing, _: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn released<'a>(&'a self, _: &'a str, _: &'a Until) -> BoxFuture<'a, String> {
        Box::pin(std::future::ready("nothing is held".into()))
    }

    fn healed<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn actor(&self, listener: &Actor, _: Option<&str>) -> Actor {
        listener.clone()
    }

    fn record(&self, event: Event) {
        self.recorder.record(event);
    }
}

impl Guest for Chronicler {
    fn key(&self) -> &str {
        HOME
    }

    fn owns(&self, namespace: &str) -> bool {
        [HOME, DOOMED].contains(&namespace)
    }
}
