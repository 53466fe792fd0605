//! One start of the operator, from its first to its last process.

use crate::output::{Log, Stream};
use crate::signals::{self, PidNamespace};
use crate::wire::{Order, Refusal, Report, send};
use crate::{Error, Launch, Observer, Sandbox, Signal};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::{fmt, io, time::Duration};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{UnixStream, unix::pipe};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long output may still come after the end, from processes that left the group where no PID namespace holds them.
const DRAIN: Duration = Duration::from_millis(500);
/// How long SIGKILL may take.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// How the operator's first process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its program runs.
    Started {
        /// Its process number on the host.
        pid: i32,
    },
    /// It has ended, and all that it had started.
    Exited(Exit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// → `Ended` when the first process has ended.
    Running,
    /// All is dead; output may still be read. → `Quiet` when it has been, or after [`DRAIN`].
    Ended(Exit),
    /// Nothing comes any more.
    Quiet(Exit),
}

/// A running operator. Dropping it kills all its processes.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    /// The PID namespace of its own, if it has one.
    namespace: Option<PidNamespace>,
    state: watch::Receiver<State>,
    /// Its closing ends the process.
    socket: StdUnixStream,
    /// Reads reports and output.
    _watching: JoinSet<()>,
    _sandbox: Sandbox,
}

// === impl Exit ===

impl Exit {
    /// Whether the code is 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "{signal}"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

// === impl Process ===

impl Process {
    pub(crate) async fn start(sandbox: Sandbox, launch: Launch, observer: Observer) -> Result<Self, Error> {
        let order = launch.order(&sandbox)?;
        let log = Log::open(&launch.log, observer.clone())?;
        let (socket, output) = launcher(&sandbox)?;
        let gone = |error| sandbox.gone(error);
        send(&socket, &order, &[]).map_err(gone)?;
        let mut reports = socket.try_clone().and_then(reports).map_err(gone)?;
        let pid = match report(&mut reports).await.map_err(gone)? {
            Report::Started { pid } => pid,
            Report::Refused(refusal) => return Err(refused(&order, refusal)),
            Report::Exited { .. } => return Err(sandbox.gone(io::ErrorKind::InvalidData.into())),
        };
        observer.tell(Event::Started { pid });
        let (state, receiver) = watch::channel(State::Running);
        let mut watching = JoinSet::new();
        watching.spawn(async move {
            let mut copying = JoinSet::new();
            for (stream, pipe) in output {
                copying.spawn(log.clone().copy(pipe, stream));
            }
            let exit = loop {
                match report(&mut reports).await {
                    Ok(Report::Exited { code: Some(code), .. }) => break Exit::Code(code),
                    Ok(Report::Exited { signal, .. }) => break Exit::Signal(signal.unwrap_or(Signal::SIGKILL as i32)),
                    // The launcher was killed, and its death kills the operator.
                    Err(_) => break Exit::Signal(Signal::SIGKILL as i32),
                    Ok(_) => {}
                }
            };
            state.send_replace(State::Ended(exit));
            observer.tell(Event::Exited(exit));
            let _ = tokio::time::timeout(DRAIN, async { while copying.join_next().await.is_some() {} }).await;
            state.send_replace(State::Quiet(exit));
        });
        let namespace = PidNamespace::of(pid);
        Ok(Self { pid, namespace, state: receiver, socket, _watching: watching, _sandbox: sandbox })
    }

    /// The first process's number on the host, also that of its group.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        match *self.state.borrow() {
            State::Running => None,
            State::Ended(exit) | State::Quiet(exit) => Some(exit),
        }
    }

    /// Sends a signal to every process of the operator and returns how many were reached, 0 after its end. SIGSTOP returns
    /// when every thread has stopped, SIGKILL when all are dead.
    pub async fn signal(&self, signal: Signal) -> Result<usize, Error> {
        if self.exit().is_some() {
            return Ok(0);
        }
        let (pid, namespace) = (self.pid, self.namespace.clone());
        let reached = tokio::task::spawn_blocking(move || signals::signal_all(pid, namespace.as_ref(), signal)).await;
        let reached = match reached.map_err(|error| Error::Prepare { step: "send a signal", source: error.into() })? {
            // It ended meanwhile.
            Err(Error::Signal { source, .. }) if source.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => 0,
            other => other?,
        };
        if signal == Signal::SIGKILL {
            let dead = self.until(|state| *state != State::Running);
            let source = || io::Error::from(io::ErrorKind::TimedOut);
            tokio::time::timeout(KILL_PATIENCE, dead).await.map_err(|_| Error::Signal { pid, source: source() })?;
        }
        Ok(reached)
    }

    /// Waits until it has ended and its output has been read. Safe to cancel and to call again.
    pub async fn wait(&self) -> Exit {
        match self.until(|state| matches!(state, State::Quiet(_))).await {
            State::Quiet(exit) | State::Ended(exit) => exit,
            State::Running => Exit::Signal(Signal::SIGKILL as i32),
        }
    }

    /// Sends SIGTERM, waits for at most `grace`, then kills what is left. A stopped process is continued first.
    ///
    /// As process 1, like in a pod, an operator without a handler for SIGTERM ignores it.
    pub async fn stop(&self, grace: Duration) -> Result<Exit, Error> {
        self.signal(Signal::SIGTERM).await?;
        self.signal(Signal::SIGCONT).await?;
        if let Ok(exit) = tokio::time::timeout(grace, self.wait()).await {
            return Ok(exit);
        }
        self.signal(Signal::SIGKILL).await?;
        Ok(self.wait().await)
    }

    async fn until(&self, done: impl FnMut(&State) -> bool) -> State {
        let mut state = self.state.clone();
        // An error means that the watching task is gone, and with it the process.
        state.wait_for(done).await.map_or(State::Running, |state| *state)
    }
}

impl Drop for Process {
    /// At once, without waiting for the runtime to end the task that reads from it.
    fn drop(&mut self) {
        // An error means that it is closed already.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

type Output = [(Stream, pipe::Receiver); 2];

/// A `__launch` that waits for its order: its socket, and what the operator will write.
fn launcher(sandbox: &Sandbox) -> Result<(StdUnixStream, Output), Error> {
    let prepare = |step| move |source| Error::Prepare { step, source };
    let (ours, theirs) = StdUnixStream::pair().map_err(prepare("make a socket"))?;
    let make = || -> io::Result<(pipe::Receiver, OwnedFd)> {
        let (reader, writer) = io::pipe()?;
        Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
    };
    let (out, stdout) = make().map_err(prepare("make a pipe"))?;
    let (err, stderr) = make().map_err(prepare("make a pipe"))?;
    sandbox.launcher(theirs.into(), stdout, stderr)?;
    Ok((ours, [(Stream::Out, out), (Stream::Err, err)]))
}

fn reports(socket: StdUnixStream) -> io::Result<BufReader<UnixStream>> {
    socket.set_nonblocking(true)?;
    Ok(BufReader::new(UnixStream::from_std(socket)?))
}

async fn report(reports: &mut BufReader<UnixStream>) -> io::Result<Report> {
    let mut line = String::new();
    if reports.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

fn refused(order: &Order, refusal: Refusal) -> Error {
    if !refusal.program {
        return Error::isolate(refusal);
    }
    let source = refusal.source();
    let program = order.command.first().cloned().unwrap_or_default();
    // PATH may name folders that this user cannot read, which makes a missing program look like a forbidden one.
    let hint = match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if !program.contains('/') => {
            "it is not on PATH, or not executable for this user; was it built?"
        }
        io::ErrorKind::NotFound => "it does not exist, or its interpreter does not; was it built?",
        io::ErrorKind::PermissionDenied => "it is not executable for this user; try chmod +x",
        _ => "is it a program for this machine?",
    };
    Error::Program { program, dir: order.dir.clone(), hint, source }
}
