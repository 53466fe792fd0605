//! The live state of one run: its faults, its replicas, its history. The proxy asks it what to do.

mod awaiting;

use awaiting::Awaited;
use crate::{conflict::Touch, harness_writes::HarnessWrites, hub::Guest, recorder::Recorder, replica::Replica};
use futures::future::BoxFuture;
use spiritlevel_model::{
    Actor, Period, RequestId, StreamId,
    fault::{
        Action, Arm, CloseWatch, Exchange, Fault, Firing, Frame, FrameFate, Moment, RuleEvent, RuleSet, Stream, Until,
    },
    history::{Event, FaultEvent, FaultRecord},
    plan::Plan,
};
use spiritlevel_proxy::{Director, ExecAnswer, Listener};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak},
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// Everything that faults and steps of one run act on.
pub(crate) struct Stage {
    /// What is done.
    pub(crate) plan: Arc<Plan>,
    /// What happened.
    pub(crate) recorder: Arc<Recorder>,
    /// Writes of the harness's own, each with its undo record.
    pub(crate) writes: HarnessWrites,
    namespaces: Vec<String>,
    rules: Mutex<RuleSet>,
    /// Faults whose `after` has not happened yet.
    waiting: Mutex<BTreeMap<String, Awaited>>,
    /// Faults that are healed, for whoever waits.
    healed: watch::Sender<BTreeSet<String>>,
    /// Objects that are touched for a conflict, until its request is answered.
    touches: Mutex<BTreeMap<RequestId, Touch>>,
    /// Containers that a step has frozen: node and id.
    frozen: Mutex<BTreeSet<(String, String)>>,
    replicas: RwLock<Vec<Arc<Replica>>>,
    myself: OnceLock<Weak<Stage>>,
    tasks: TaskTracker,
}

impl Stage {
    /// All faults disarmed, no replicas yet. An error names the fault whose CEL does not compile.
    pub(crate) fn new(plan: Arc<Plan>, recorder: Arc<Recorder>, writes: HarnessWrites) -> Result<Arc<Self>, String> {
        let rules = RuleSet::new(&plan.scenario.faults).map_err(|(fault, e)| format!("fault {fault}: {e}"))?;
        let extra = plan.scenario.namespaces.iter();
        let extra = extra.filter_map(|n| plan.bindings.get("namespaces")?.get(n)?.as_str().map(Into::into));
        let namespaces = [plan.namespace.clone(), plan.operator_namespace.clone()].into_iter().chain(extra).collect();
        let stage = Arc::new(Self {
            plan,
            recorder,
            writes,
            namespaces,
            rules: Mutex::new(rules),
            waiting: Mutex::default(),
            healed: watch::Sender::default(),
            touches: Mutex::default(),
            frozen: Mutex::default(),
            replicas: RwLock::default(),
            myself: OnceLock::new(),
            tasks: TaskTracker::new(),
        });
        // Set once, right here.
        let _ = stage.myself.set(Arc::downgrade(&stage));
        Ok(stage)
    }

    /// All namespaces of the run: the subjects' first, then the operator's, then further ones.
    pub(crate) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// The replicas of the operator.
    pub(crate) fn replicas(&self) -> Vec<Arc<Replica>> {
        self.replicas.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A replica is there.
    pub(crate) fn add_replica(&self, replica: Arc<Replica>) {
        self.replicas.write().unwrap_or_else(PoisonError::into_inner).push(replica);
    }

    /// Forgets the replicas, which ends them.
    pub(crate) fn drop_replicas(&self) {
        self.replicas.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn rules(&self) -> MutexGuard<'_, RuleSet> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Containers that are frozen now.
    pub(crate) fn frozen(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Awaited>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn myself(&self) -> Option<Arc<Self>> {
        self.myself.get().and_then(Weak::upgrade)
    }

    fn touches(&self) -> MutexGuard<'_, BTreeMap<RequestId, Touch>> {
        self.touches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault_event(&self, name: &str, what: FaultEvent) {
        self.tell_event(Event::Fault(FaultRecord { name: name.into(), what }));
    }

    /// Records what happened, and opens the faults that wait for it.
    pub(crate) fn tell_event(&self, event: Event) {
        self.open_faults(&event);
        self.recorder.record(event);
    }

    /// Arms every fault that is armed from the start.
    pub(crate) fn arm_all(&self) {
        for fault in &self.plan.scenario.faults {
            if fault.arm == Arm::Start {
                self.arm(fault);
            }
        }
    }

    /// Arms a fault by name, as `inject` does.
    pub(crate) fn inject(&self, name: &str) -> bool {
        let fault = self.plan.scenario.faults.iter().find(|f| f.name == name);
        if let Some(fault) = fault {
            self.arm(fault);
            if matches!(fault.action, Action::CloseWatch { .. }) {
                self.close_open_watches(fault);
            }
        }
        fault.is_some()
    }

    fn arm(&self, fault: &Fault) {
        self.healed.send_modify(|h| {
            h.remove(&fault.name);
        });
        self.rules().arm(&fault.name);
        self.fault_event(&fault.name, FaultEvent::Armed);
        self.wait_after(&fault.name);
        if let Action::StaleView { until: Some(until), .. } = &fault.action {
            self.heal_when(fault, until.clone());
        }
        if RuleSet::is_ambient(fault)
            && let Action::Partition { how } = fault.action
        {
            self.rules().count_firing(&fault.name);
            self.fault_event(&fault.name, FaultEvent::Fired { request: None, at: None, legality: None });
            for replica in self.meant(fault) {
                replica.listener().shut(how, &fault.name);
            }
            self.heal_after(fault);
        }
    }

    /// An injected `closeWatch` means the watches that are open now.
    fn close_open_watches(&self, fault: &Fault) {
        let Action::CloseWatch { how } = fault.action else { return };
        let replicas = self.replicas();
        let open: Vec<(Stream, &Listener)> =
            replicas.iter().flat_map(|r| r.listener().streams().into_iter().map(|s| (s, r.listener()))).collect();
        let streams: Vec<Stream> = open.iter().map(|(s, _)| s.clone()).collect();
        let wanted = self.rules().streams_to_close(&fault.name, &streams);
        for (stream, listener) in open.iter().filter(|(s, _)| wanted.contains(&s.id)) {
            let fired = FaultEvent::Fired { request: Some(stream.request), at: None, legality: None };
            self.fault_event(&fault.name, fired);
            self.rules().count_firing(&fault.name);
            // First: the client may watch again at once.
            if how == CloseWatch::Expire {
                self.rules().expire(&fault.name, stream);
            }
            if matches!(how, CloseWatch::Stall | CloseWatch::StallConnection) {
                self.rules().keep_stream(&fault.name, stream.id);
            }
            listener.end_stream(stream.id, how, &fault.name);
        }
        // Those that come are not meant.
        if !wanted.is_empty() && !matches!(how, CloseWatch::Stall | CloseWatch::StallConnection) {
            self.rules().disarm(&fault.name);
        }
    }

    /// Ends the watches of a kind, so that the client resumes (`Clean`) or lists again (`Expire`). Returns how many.
    pub(crate) fn end_watches(&self, resource: &str, how: CloseWatch, cause: &str) -> usize {
        let mut ended = 0;
        for replica in self.replicas() {
            for stream in replica.listener().streams() {
                if stream.info.resource.as_ref().is_some_and(|r| r.to_string() == resource) {
                    if how == CloseWatch::Expire {
                        self.rules().expire(cause, &stream);
                    }
                    replica.listener().end_stream(stream.id, how, cause);
                    ended += 1;
                }
            }
        }
        ended
    }

    /// Lifts a fault.
    pub(crate) fn heal(&self, name: &str) {
        let Some(fault) = self.plan.scenario.faults.iter().find(|f| f.name == name) else { return };
        let was_armed = self.rules().is_armed(name);
        let streams = self.rules().heal(name);
        for (id, how) in streams {
            self.end_kept_stream(id, how, name);
        }
        if matches!(fault.action, Action::Partition { .. }) {
            for replica in self.meant(fault) {
                replica.listener().open();
            }
        }
        self.healed.send_modify(|h| {
            h.insert(name.into());
        });
        self.waiting().remove(name);
        if was_armed {
            self.fault_event(name, FaultEvent::Healed);
        }
    }

    /// Lifts every fault.
    pub(crate) fn heal_all(&self) {
        for fault in &self.plan.scenario.faults {
            self.heal(&fault.name);
        }
    }

    fn end_kept_stream(&self, id: StreamId, how: CloseWatch, fault: &str) {
        for replica in self.replicas() {
            if let Some(stream) = replica.listener().streams().into_iter().find(|s| s.id == id) {
                if how == CloseWatch::Expire {
                    self.rules().expire(fault, &stream);
                }
                replica.listener().end_stream(id, how, fault);
            }
        }
    }

    fn meant(&self, fault: &Fault) -> Vec<Arc<Replica>> {
        self.replicas().into_iter().filter(|r| fault.matches.is_for(r.actor())).collect()
    }

    /// A fault with `for` ends that long after it began.
    fn heal_after(&self, fault: &Fault) {
        let (Some(Period(lasts)), Some(myself)) = (fault.lasts, self.myself()) else {
            return;
        };
        let name = fault.name.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(lasts) => myself.heal(&name),
                () = myself.until_healed(&name) => {}
            }
        });
    }

    /// A fault ends when something happens.
    fn heal_when(&self, fault: &Fault, until: Until) {
        let (Some(myself), name) = (self.myself(), fault.name.clone()) else { return };
        self.tasks.spawn(async move {
            myself.released(&name, &until).await;
            myself.heal(&name);
        });
    }

    async fn until_healed(&self, name: &str) {
        let mut healed = self.healed.subscribe();
        // The sender lives as long as we do.
        let _ = healed.wait_for(|h| h.contains(name)).await;
    }

    fn tell(&self, events: Vec<RuleEvent>) {
        for event in events {
            match event {
                RuleEvent::Matched { fault, request, ordinal } => {
                    self.fault_event(&fault, FaultEvent::Matched { request, ordinal });
                }
                RuleEvent::Fired { fault, request, legality } => {
                    let declared = self.plan.scenario.faults.iter().find(|f| f.name == fault);
                    let at = declared.filter(|f| !f.action.acts_on_streams()).map(Fault::point);
                    let first = self.rules().fired(&fault) == 1;
                    self.fault_event(&fault, FaultEvent::Fired { request: Some(request), at, legality });
                    // A partition's time is counted from where it cuts.
                    let cuts = |f: &&Fault| !matches!(f.action, Action::Partition { .. });
                    if let Some(fault) = declared.filter(cuts).filter(|_| first) {
                        self.heal_after(fault);
                    }
                }
            }
        }
    }

    /// Ends the timers and waits for them.
    pub(crate) async fn close(&self) {
        self.heal_all();
        self.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(5), self.tasks.wait()).await;
    }

    fn replica(&self, actor: &Actor) -> Option<Arc<Replica>> {
        self.replicas().into_iter().find(|r| r.actor() == actor)
    }
}

impl Director for Stage {
    fn on_request(&self, exchange: &Exchange<'_>) -> Option<Firing> {
        let (firing, events) = self.rules().on_request(exchange);
        self.tell(events);
        firing
    }

    fn asks_for_outcome(&self, exchange: &Exchange<'_>) -> bool {
        self.rules().asks_for_outcome(exchange)
    }

    fn on_frame(&self, stream: &Stream, frame: &Frame<'_>) -> FrameFate {
        let (fate, events) = self.rules().on_frame(stream, frame);
        self.tell(events);
        if let FrameFate::CloseAfter { fault, how: CloseWatch::Expire } = &fate {
            self.rules().expire(fault, stream);
        }
        fate
    }

    fn on_stream_end(&self, stream: &Stream) {
        self.rules().stream_ended(stream.id);
    }

    fn perform<'a>(&'a self, firing: &'a Firing, exchange: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            match &firing.action {
                Action::Crash { signal, restart_after } => {
                    // A fault on a built-in controller's request still means the operator.
                    let replica = self.replica(exchange.actor).or_else(|| self.replicas().first().cloned());
                    if let Some(replica) = replica {
                        let died = replica.end(*signal, &firing.fault).await;
                        if let Some(exit) = died {
                            self.fault_event(
                                &firing.fault,
                                FaultEvent::Effect { what: format!("{} ended with {exit}", replica.actor()) },
                            );
                        }
                        self.writes.release_leases(&self.recorder, replica.actor(), &self.plan).await;
                        replica.start_after(restart_after.map(|p| p.0), &firing.fault);
                    }
                }
                Action::Pause { lasts } => {
                    if let Some(replica) = self.replica(exchange.actor).or_else(|| self.replicas().first().cloned()) {
                        replica.pause(&firing.fault).await;
                        self.fault_event(
                            &firing.fault,
                            FaultEvent::Effect { what: format!("{} stopped", replica.actor()) },
                        );
                        let (lasts, fault) = (lasts.0, firing.fault.clone());
                        let Some(myself) = self.myself() else { return };
                        self.tasks.spawn(async move {
                            tokio::select! {
                                () = tokio::time::sleep(lasts) => {}
                                () = myself.until_healed(&fault) => {}
                            }
                            replica.resume(&fault).await;
                        });
                    }
                }
                Action::Partition { how } => {
                    if let Some(fault) = self.plan.scenario.faults.iter().find(|f| f.name == firing.fault) {
                        for replica in self.meant(fault) {
                            replica.listener().shut(*how, &firing.fault);
                        }
                        self.heal_after(fault);
                    }
                }
                Action::Mark {} => {
                    let moment = Moment::Fired(firing.fault.clone());
                    if self.is_moment(&moment)
                        && let Err(e) = self.keep_moment(self.writes.conflict(), &moment).await
                    {
                        let text = format!("the moment of {} could not be kept: {e}", firing.fault);
                        self.recorder.record(Event::Note { text });
                    }
                }
                Action::ExpireToken {} | Action::RotateToken { .. } => {
                    let Some(replica) = self.replica(exchange.actor) else { return };
                    match replica.renew_token().await {
                        Ok(()) => {
                            let what = format!("a new token is in the files of {}", replica.actor());
                            self.fault_event(&firing.fault, FaultEvent::Effect { what });
                        }
                        Err(e) => {
                            let text = format!("{} has no new token: {}", replica.actor(), e.chain());
                            self.recorder.record(Event::Note { text });
                        }
                    }
                }
                Action::Conflict {} => {
                    let touch = Touch::make(&self.writes, &self.recorder, exchange, &firing.fault).await;
                    self.touches().extend(touch.map(|t| (exchange.id, t)));
                }
                _ => {}
            }
        })
    }

    fn answered<'a>(&'a self, firing: &'a Firing, exchange: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let touch = self.touches().remove(&exchange.id);
            if let Some(touch) = touch {
                touch.undo(self.writes.conflict(), &self.recorder, &firing.fault).await;
            }
        })
    }

    fn released<'a>(&'a self, fault: &'a str, until: &'a Until) -> BoxFuture<'a, String> {
        Box::pin(async move {
            let from = self.recorder.live().records.len();
            let happens = async {
                if let Until::Elapsed(Period(by)) = until {
                    tokio::time::sleep(*by).await;
                    return format!("{} elapsed", Period(*by));
                }
                let (mut next, mut awaited) = (from, Awaited::new(until.clone()));
                let look = |live: &crate::recorder::Live| {
                    while let Some(record) = live.records.get(next) {
                        next += 1;
                        if let Some(by) = awaited.is(&record.event) {
                            return Some(by);
                        }
                    }
                    None
                };
                match self.recorder.wait_for(Duration::from_secs(3600), look).await {
                    Some(by) => by,
                    None => "an hour elapsed".into(),
                }
            };
            tokio::select! {
                by = happens => by,
                () = self.until_healed(fault) => "heal".into(),
            }
        })
    }

    fn healed<'a>(&'a self, fault: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.until_healed(fault))
    }

    fn actor(&self, listener: &Actor, _: Option<&str>) -> Actor {
        listener.clone()
    }

    /// There is no kubelet behind a local control plane: the suite says what its containers answer.
    fn exec(&self, _: &Exchange<'_>) -> Option<ExecAnswer> {
        if self.plan.suite.cluster.provider.has_real_pods() {
            return None;
        }
        let exec = &self.plan.suite.kubelet.exec;
        Some(ExecAnswer { exit_code: exec.exit_code, stdout: exec.output.clone().into_bytes() })
    }

    fn record(&self, event: Event) {
        self.tell_event(event);
    }
}

impl Guest for Stage {
    fn key(&self) -> &str {
        &self.plan.namespace
    }

    fn owns(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|n| n == namespace)
    }
}
