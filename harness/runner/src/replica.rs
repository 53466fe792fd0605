//! One replica of the operator: its sandbox, its way to the API server, and its process over all its starts.

use crate::{Error, recorder::Recorder};
use futures::future::BoxFuture;
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
use tokio_util::task::TaskTracker;

/// How long SIGTERM may take, as a pod's default grace period.
const GRACE: Duration = Duration::from_secs(30);
/// Lines of output that are kept for messages.
const TAIL: usize = 500;

/// A replica.
pub(crate) struct Replica {
    actor: Actor,
    sandbox: Sandbox,
    listener: Listener,
    recorder: Arc<Recorder>,
    launch: Launch,
    restart: Restart,
    state: Mutex<State>,
    /// Serialises starts and ends.
    turn: tokio::sync::Mutex<()>,
    tail: Arc<Mutex<VecDeque<String>>>,
    myself: OnceLock<Weak<Self>>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    process: Option<Arc<Process>>,
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
        sandbox: Sandbox,
        listener: Listener,
        recorder: Arc<Recorder>,
        launch: Launch,
        restart: Restart,
    ) -> Arc<Self> {
        let replica = Arc::new(Self {
            actor,
            sandbox,
            listener,
            recorder,
            launch,
            restart,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            tail: Arc::default(),
            myself: OnceLock::new(),
            tasks: TaskTracker::new(),
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
        self.state().process.as_ref().is_some_and(|p| p.exit().is_none())
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

    /// Starts it, unless it runs.
    pub(crate) async fn start(&self, cause: Option<&str>) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        if self.is_running() {
            return Ok(());
        }
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
        let process = Arc::new(self.sandbox.start(self.launch.clone(), observer).await?);
        let start = {
            let mut state = self.state();
            state.process = Some(process.clone());
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
        if !expected && wanted && self.restart.policy == RestartPolicy::Always {
            tokio::time::sleep(self.restart.backoff.0).await;
            self.start_if_still(start, None).await;
        }
    }

    /// Ends it with a signal and returns when it is dead, with how it ended; `None` when it did not run.
    pub(crate) async fn end(&self, signal: Signal, cause: &str) -> Option<String> {
        let _turn = self.turn.lock().await;
        let process = {
            let mut state = self.state();
            let process = state.process.clone().filter(|p| p.exit().is_none())?;
            state.asked_until = state.start;
            process
        };
        let name = match signal {
            Signal::Kill => "KILL",
            Signal::Term => "TERM",
            Signal::Int => "INT",
        };
        self.tell(ProcessEvent::Signalled { signal: name.into() }, Some(cause));
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

    /// Ends it for good, until [`Replica::start`].
    pub(crate) async fn stop(&self, signal: Signal, cause: &str) {
        self.state().wanted = false;
        self.end(signal, cause).await;
    }

    /// Starts it after a while, in the background; by default after the restart policy's back-off.
    pub(crate) fn start_after(&self, after: Option<Duration>, cause: &str) {
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
        let process = self.state().process.clone();
        if let Some(process) = process {
            self.tell(ProcessEvent::Signalled { signal: "STOP".into() }, Some(cause));
            let _ = process.signal(Os::SIGSTOP).await;
        }
    }

    /// SIGCONT.
    pub(crate) async fn resume(&self, cause: &str) {
        let process = self.state().process.clone();
        if let Some(process) = process {
            self.tell(ProcessEvent::Signalled { signal: "CONT".into() }, Some(cause));
            let _ = process.signal(Os::SIGCONT).await;
        }
    }

    fn tell(&self, what: ProcessEvent, cause: Option<&str>) {
        let record = ProcessRecord { actor: self.actor.clone(), what, cause: cause.map(Into::into) };
        self.recorder.record(Event::Process(record));
    }
}
