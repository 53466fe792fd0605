//! One replica of the operator: its way to the API server, and its process over all its starts, whether that runs in a sandbox
//! of this machine or as a container inside the cluster.

use crate::{
    Error,
    inside::{Inside, Instance},
    recorder::Recorder,
    token::Credentials,
};
use futures::future::BoxFuture;
use serde_json::json;
use spiritlevel_model::{
    Actor,
    fault::Signal,
    history::{Event, Process as ProcessRecord, ProcessEvent},
    suite::{Restart, RestartPolicy},
};
use spiritlevel_operator::{Exit, Launch, Line, Observer, Process, Sandbox, Signal as Os};
use spiritlevel_proxy::Listener;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long SIGTERM may take, as a pod's default grace period.
const GRACE: Duration = Duration::from_secs(30);
/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);
/// Lines of output that are kept for messages.
const TAIL: usize = 500;

/// Where a replica runs.
pub(crate) enum Place {
    /// A process of this machine, and the files in which it finds its token.
    Beside(Sandbox, Box<(Launch, Credentials)>),
    /// A container in the cluster.
    Inside(Arc<Inside>),
}

/// What runs.
#[derive(Clone)]
enum Running {
    Process(Arc<Process>),
    Container(Instance),
}

/// A replica.
pub(crate) struct Replica {
    actor: Actor,
    place: Place,
    listener: Listener,
    recorder: Arc<Recorder>,
    restart: Restart,
    state: Mutex<State>,
    /// Serialises starts and ends.
    turn: tokio::sync::Mutex<()>,
    tail: Arc<Mutex<VecDeque<String>>>,
    myself: OnceLock<Weak<Self>>,
    tasks: TaskTracker,
    over: CancellationToken,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// The number of the current start; a timer for an older one does nothing.
    start: u64,
    /// Whether it is to run; `stopOperator` says no.
    wanted: bool,
    /// The newest start whose end we asked for.
    asked_until: u64,
    /// Ends that nobody asked for.
    crashes: u32,
}

impl Replica {
    /// Not started yet.
    pub(crate) fn new(
        actor: Actor,
        place: Place,
        listener: Listener,
        recorder: Arc<Recorder>,
        restart: Restart,
    ) -> Arc<Self> {
        let replica = Arc::new(Self {
            actor,
            place,
            listener,
            recorder,
            restart,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            tail: Arc::default(),
            myself: OnceLock::new(),
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
        });
        // Set once, right here.
        let _ = replica.myself.set(Arc::downgrade(&replica));
        replica
    }

    /// `operator/0`.
    pub(crate) fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Its way to the API server.
    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its process runs.
    pub(crate) fn is_running(&self) -> bool {
        match &self.state().running {
            Some(Running::Process(process)) => process.exit().is_none(),
            Some(Running::Container(_)) => true,
            None => false,
        }
    }

    /// Whether it is meant to run.
    pub(crate) fn is_wanted(&self) -> bool {
        self.state().wanted
    }

    /// Ends that nobody asked for.
    pub(crate) fn crashes(&self) -> u32 {
        self.state().crashes
    }

    /// The last lines of its output.
    pub(crate) fn tail(&self, lines: usize) -> Vec<String> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.iter().skip(tail.len().saturating_sub(lines)).cloned().collect()
    }

    /// Puts a new token in the place of the one that it reads.
    pub(crate) async fn renew_token(&self) -> Result<(), Error> {
        match &self.place {
            Place::Beside(_, of) => of.1.renew(&self.recorder).await,
            Place::Inside(_) => Err(Error::Input("a kubelet renews the token of a pod in its own time".into())),
        }
    }

    /// Starts it, unless it runs.
    pub(crate) async fn start(&self, cause: Option<&str>) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        if self.is_running() {
            return Ok(());
        }
        match &self.place {
            Place::Beside(sandbox, of) => self.start_process(sandbox, &of.0, cause).await,
            Place::Inside(inside) => {
                self.state().wanted = true;
                let instance = inside.start().await?;
                self.container_started(inside, instance, cause);
                Ok(())
            }
        }
    }

    async fn start_process(&self, sandbox: &Sandbox, launch: &Launch, cause: Option<&str>) -> Result<(), Error> {
        let tail = self.tail.clone();
        let redactor = self.recorder.redactor().clone();
        let observer = Observer {
            events: None,
            redact: Some(Arc::new(move |text: &str| redactor.line(text))),
            line: Some(Arc::new(move |line: &Line| {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                if tail.len() == TAIL {
                    tail.pop_front();
                }
                tail.push_back(line.text.clone());
            })),
        };
        let process = Arc::new(sandbox.start(launch.clone(), observer).await?);
        let start = {
            let mut state = self.state();
            state.running = Some(Running::Process(process.clone()));
            state.start += 1;
            state.wanted = true;
            state.start
        };
        let pid = u32::try_from(process.pid()).unwrap_or_default();
        self.tell(ProcessEvent::Started { pid }, cause);
        if let Some(myself) = self.myself.get().cloned() {
            self.tasks.spawn(async move {
                let exit = process.wait().await;
                drop(process);
                if let Some(replica) = myself.upgrade() {
                    replica.ended(exit, start).await;
                }
            });
        }
        Ok(())
    }

    /// A container runs: its log is read, and its end is awaited. A kubelet starts the next one.
    fn container_started(&self, inside: &Arc<Inside>, instance: Instance, cause: Option<&str>) {
        let start = {
            let mut state = self.state();
            state.running = Some(Running::Container(instance.clone()));
            state.start += 1;
            state.start
        };
        self.tell(ProcessEvent::Started { pid: 0 }, cause);
        self.tasks.spawn({
            let (inside, instance, tail) = (inside.clone(), instance.clone(), self.tail.clone());
            let over = self.over.clone();
            async move { over.run_until_cancelled(inside.follow_log(instance, tail, TAIL)).await }
        });
        let (inside, Some(myself)) = (inside.clone(), self.myself.get().cloned()) else { return };
        let over = self.over.clone();
        let follow = async move {
            let Some(recorder) = myself.upgrade().map(|r| r.recorder.clone()) else { return };
            let ended = recorder.wait_for(FOR_EVER, |live| inside.ended(live, &instance)).await;
            let (Some(ended), Some(replica)) = (ended, myself.upgrade()) else { return };
            let exit = match ended.signal {
                Some(signal) => Exit::Signal(signal),
                None => Exit::Code(ended.code.unwrap_or_default()),
            };
            replica.state().running = None;
            replica.ended(exit, start).await;
            drop(replica);
            // The kubelet's next one; none while it is not wanted.
            let next = recorder.wait_for(FOR_EVER, |live| inside.running(live).filter(|i| *i != instance)).await;
            if let (Some(next), Some(replica)) = (next, myself.upgrade())
                && replica.state().start == start
            {
                replica.container_started(&inside, next, None);
            }
        };
        self.tasks.spawn(async move { over.run_until_cancelled(follow).await });
    }

    /// It has ended; starts it again if nobody asked for the end. Boxed, because a start leads here again.
    fn ended(&self, exit: Exit, start: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.after_end(exit, start))
    }

    async fn after_end(&self, exit: Exit, start: u64) {
        let (expected, wanted) = {
            let mut state = self.state();
            let expected = start <= state.asked_until;
            if !expected {
                state.crashes += 1;
            }
            (expected, state.wanted)
        };
        let (code, signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        let last_lines = if expected { Vec::new() } else { self.tail(20) };
        self.tell(ProcessEvent::Exited { code, signal, expected, last_lines }, None);
        self.listener.drop_connections();
        // A container is its kubelet's to start again.
        let ours = matches!(self.place, Place::Beside(..));
        if ours && !expected && wanted && self.restart.policy == RestartPolicy::Always {
            tokio::time::sleep(self.restart.backoff.0).await;
            self.start_if_still(start, None).await;
        }
    }

    /// Ends it with a signal and returns when it is dead, with how it ended; `None` when it did not run.
    pub(crate) async fn end(&self, signal: Signal, cause: &str) -> Option<String> {
        let _turn = self.turn.lock().await;
        let running = {
            let mut state = self.state();
            let alive = |r: &Running| match r {
                Running::Process(process) => process.exit().is_none(),
                Running::Container(_) => true,
            };
            let running = state.running.clone().filter(alive)?;
            state.asked_until = state.start;
            running
        };
        let name = match signal {
            Signal::Kill => "KILL",
            Signal::Term => "TERM",
            Signal::Int => "INT",
        };
        self.tell(ProcessEvent::Signalled { signal: name.into() }, Some(cause));
        let process = match running {
            Running::Process(process) => process,
            Running::Container(instance) => return self.end_container(&instance, signal).await,
        };
        let exit = match signal {
            Signal::Kill => {
                // Dead first, then its connections: nothing of it can follow.
                let _ = process.signal(Os::SIGKILL).await;
                self.listener.drop_connections();
                process.wait().await
            }
            Signal::Term => process.stop(GRACE).await.unwrap_or(Exit::Signal(9)),
            Signal::Int => {
                let _ = process.signal(Os::SIGINT).await;
                match tokio::time::timeout(GRACE, process.wait()).await {
                    Ok(exit) => exit,
                    Err(_) => process.stop(Duration::ZERO).await.unwrap_or(Exit::Signal(9)),
                }
            }
        };
        Some(match exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("signal {signal}"),
        })
    }

    async fn end_container(&self, instance: &Instance, signal: Signal) -> Option<String> {
        let Place::Inside(inside) = &self.place else { return None };
        if let Err(e) = inside.signal(instance, signal).await {
            self.recorder.record(Event::Note { text: format!("{} could not be signalled: {}", self.actor, e.chain()) });
            return None;
        }
        if signal == Signal::Kill {
            // Dead already, whenever its kubelet tells.
            self.listener.drop_connections();
        }
        let ended = self.recorder.wait_for(GRACE, |live| inside.ended(live, instance)).await?;
        Some(match (ended.code, ended.signal) {
            (Some(code), None) => format!("exit code {code}"),
            (_, signal) => format!("signal {}", signal.unwrap_or_default()),
        })
    }

    /// Ends it for good, until [`Replica::start`].
    pub(crate) async fn stop(&self, signal: Signal, cause: &str) {
        self.state().wanted = false;
        match &self.place {
            Place::Beside(..) => {
                self.end(signal, cause).await;
            }
            Place::Inside(inside) => {
                let _turn = self.turn.lock().await;
                {
                    let mut state = self.state();
                    state.asked_until = state.start;
                }
                let name = json!(signal);
                self.tell(ProcessEvent::Signalled { signal: name.as_str().unwrap_or("TERM").into() }, Some(cause));
                if let Err(e) = inside.stop(Some(signal)).await {
                    let text = format!("{} could not be stopped: {}", self.actor, e.chain());
                    self.recorder.record(Event::Note { text });
                }
                self.listener.drop_connections();
            }
        }
    }

    /// Starts it after a while, in the background; by default after the restart policy's back-off.
    pub(crate) fn start_after(&self, after: Option<Duration>, cause: &str) {
        if matches!(self.place, Place::Inside(_)) {
            // Its kubelet does, with a back-off of its own.
            return;
        }
        let (after, start) = (after.unwrap_or(self.restart.backoff.0), self.state().start);
        let (cause, Some(myself)) = (cause.to_owned(), self.myself.get().cloned()) else { return };
        self.tasks.spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(replica) = myself.upgrade() {
                replica.start_if_still(start, Some(&cause)).await;
            }
        });
    }

    async fn start_if_still(&self, start: u64, cause: Option<&str>) {
        let still = {
            let state = self.state();
            state.wanted && state.start == start
        };
        if still && let Err(e) = self.start(cause).await {
            self.recorder
                .record(Event::Note { text: format!("{} could not be started again: {}", self.actor, e.chain()) });
        }
    }

    /// SIGSTOP; returns when every thread has stopped.
    pub(crate) async fn pause(&self, cause: &str) {
        let running = self.state().running.clone();
        if running.is_some() {
            self.tell(ProcessEvent::Signalled { signal: "STOP".into() }, Some(cause));
        }
        match (running, &self.place) {
            (Some(Running::Process(process)), _) => drop(process.signal(Os::SIGSTOP).await),
            (Some(Running::Container(instance)), Place::Inside(inside)) => {
                self.note_failure(inside.pause(&instance).await);
            }
            _ => {}
        }
    }

    /// SIGCONT.
    pub(crate) async fn resume(&self, cause: &str) {
        let running = self.state().running.clone();
        if running.is_some() {
            self.tell(ProcessEvent::Signalled { signal: "CONT".into() }, Some(cause));
        }
        match (running, &self.place) {
            (Some(Running::Process(process)), _) => drop(process.signal(Os::SIGCONT).await),
            (Some(Running::Container(instance)), Place::Inside(inside)) => {
                self.note_failure(inside.resume(&instance).await);
            }
            _ => {}
        }
    }

    fn note_failure(&self, done: Result<(), Error>) {
        if let Err(e) = done {
            self.recorder.record(Event::Note { text: format!("{}: {}", self.actor, e.chain()) });
        }
    }

    /// Ends what still follows it.
    pub(crate) async fn close(&self) {
        self.over.cancel();
        if matches!(self.place, Place::Inside(_)) {
            self.tasks.close();
            self.tasks.wait().await;
        }
    }

    fn tell(&self, what: ProcessEvent, cause: Option<&str>) {
        let record = ProcessRecord { actor: self.actor.clone(), what, cause: cause.map(Into::into) };
        self.recorder.record(Event::Process(record));
    }
}
