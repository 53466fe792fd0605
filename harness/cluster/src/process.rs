//! One child process of the control plane: started, watched until it is ready, stopped.

use std::{
    fmt, fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use spiritlevel_supervise::{Child, Spawn};

use crate::Error;

/// How many of its last log lines an ended process is reported with, and how long each may be, in characters.
const TAIL_LINES: usize = 12;
const TAIL_WIDTH: usize = 400;
/// How many are looked at: a panic's words stand above its stack trace.
const SEARCHED_LINES: usize = 300;

/// Which process of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The store.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// A container that is a node.
    Node,
}

impl Component {
    /// The program's file name.
    pub fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Node => "the node's container",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// A process that ended without having been asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Which one.
    pub component: Component,
    /// How it ended, such as `exit status: 1` or `signal: 9 (SIGKILL)`.
    pub status: String,
    /// The end of its log.
    pub log_tail: String,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ended ({}); its last log lines:\n{}", self.component, self.status, self.log_tail)
    }
}

/// A point in time after which waiting is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    started: Instant,
    limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self { started: Instant::now(), limit }
    }

    pub(crate) fn limit(self) -> Duration {
        self.limit
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn is_over(self) -> bool {
        self.elapsed() >= self.limit
    }
}

/// A running process.
pub(crate) struct Process {
    component: Component,
    child: Child,
}

impl Process {
    /// Starts `program` with its output appended to `log`.
    pub(crate) fn start(component: Component, program: PathBuf, args: &[String], log: PathBuf) -> Result<Self, Error> {
        let child =
            Spawn::new(program).args(args).log(log).spawn().map_err(|source| Error::Process { component, source })?;
        Ok(Self { component, child })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn exit(&mut self) -> Option<Exit> {
        let status = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => describe(status),
            Err(error) => error.to_string(),
        };
        Some(Exit { component: self.component, status, log_tail: self.log_tail() })
    }

    fn log_tail(&self) -> String {
        telling_tail(&self.child.log_tail(SEARCHED_LINES))
    }

    /// Asks `is_ready` every `interval` until it says yes, the process has ended, or time is over.
    pub(crate) async fn ready<F>(
        &mut self,
        what: &str,
        interval: Duration,
        deadline: Deadline,
        is_ready: impl Fn() -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = bool>,
    {
        loop {
            if let Some(exit) = self.exit() {
                return Err(self.ended(exit));
            }
            // A probe may hang where the process was stopped or swallows requests.
            if tokio::time::timeout(Duration::from_secs(2), is_ready()).await.unwrap_or(false) {
                return Ok(());
            }
            if deadline.is_over() {
                let log_tail = self.log_tail();
                return Err(Error::Timeout { what: what.to_owned(), after: deadline.limit(), log_tail });
            }
            tokio::time::sleep(interval).await;
        }
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Error> {
        let pid = Pid::from_raw(self.id().cast_signed());
        kill(pid, signal).map_err(|errno| Error::Signal { component: self.component, source: errno.into() })
    }

    /// Ends it: politely for `grace`, then by force.
    pub(crate) async fn stop(&mut self, grace: Duration) -> Result<(), Error> {
        let component = self.component;
        self.child.stop(grace).await.map(drop).map_err(|source| Error::Process { component, source })
    }

    fn ended(&self, exit: Exit) -> Error {
        let tail = self.child.log_tail(SEARCHED_LINES);
        if tail.contains("no space left on device") {
            let path = self.child.log().map_or_else(PathBuf::new, PathBuf::from);
            return Error::DiskFull { path };
        }
        if tail.contains("address already in use") {
            // The next attempt appends to the same file, and must not be judged by these lines.
            let _ = self.child.log().map(fs::remove_file);
            return Error::PortTaken { component: self.component, attempts: 1 };
        }
        Error::Ended(exit)
    }
}

/// The supervisor passes a signal on as the exit code 128 + its number, as shells do.
fn describe(status: std::process::ExitStatus) -> String {
    let signal = status.code().and_then(|code| Signal::try_from(code - 128).ok());
    match signal {
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

/// The last lines, without the stack trace of a Go panic.
fn telling_tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let panic = lines.iter().rposition(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "));
    let end = panic.and_then(|panic| {
        let trace = lines[panic..].iter().position(|line| line.starts_with("goroutine "))?;
        Some(panic + trace)
    });
    let told: Vec<&str> = lines[..end.unwrap_or(lines.len())].iter().copied().filter(|line| !line.is_empty()).collect();
    let last = told[told.len().saturating_sub(TAIL_LINES)..].iter().map(|line| shortened(line));
    last.collect::<Vec<_>>().join("\n")
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(TAIL_WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_panic_ends_with_its_words() {
        let log = "one\npanic: no space left on device\n\ngoroutine 1 [running]:\nmain.main()\n\tmain.go:10 +0x28\n";
        assert_eq!(telling_tail(log), "one\npanic: no space left on device");
    }

    #[test]
    fn the_tail_is_short_and_complete_at_its_end() {
        let log: String = (0..40).flat_map(|number| [number.to_string(), "\n".to_owned()]).collect();
        let tail = telling_tail(&log);
        assert!(tail.starts_with("28\n29") && tail.ends_with("\n39"), "{tail}");
        assert_eq!(telling_tail(&"x".repeat(1000)).chars().count(), TAIL_WIDTH + 1);
        assert_eq!(telling_tail(""), "");
    }
}
