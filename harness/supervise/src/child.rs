//! A running child process.

use crate::{Error, Lifeline};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{fs, io, time::Duration};

/// How much of a log's end is looked at for its last lines, in bytes.
const TAIL: u64 = 64 * 1024;

/// A running child process with everything in its process group. Dropping it kills them.
#[derive(Debug)]
pub struct Child {
    program: String,
    pid: u32,
    supervisor: tokio::process::Child,
    lifeline: Option<Lifeline>,
    log: Option<PathBuf>,
}

// === impl Child ===

impl Child {
    pub(crate) fn new(
        program: String,
        pid: u32,
        supervisor: tokio::process::Child,
        lifeline: Lifeline,
        log: Option<PathBuf>,
    ) -> Self {
        Self { program, pid, supervisor, lifeline: Some(lifeline), log }
    }

    /// The program's process number, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// The program as it was asked for, for messages.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Waits until the program has ended; its whole group is dead then. A program that a signal ended has the exit code
    /// 128 plus the signal's number. Safe to cancel and to call again.
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        self.supervisor.wait().await.map_err(|source| self.wait_error(source))
    }

    /// How the program ended, if it has.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.supervisor.try_wait().map_err(|source| self.wait_error(source))
    }

    /// Sends SIGTERM to the group, waits for at most `grace`, then kills what is left.
    pub async fn stop(&mut self, grace: Duration) -> Result<ExitStatus, Error> {
        // `None` once the supervisor has been reaped, so that no stranger can have its number.
        if let Some(supervisor) = self.supervisor.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // It may just have ended: the wait will tell.
            let _ = kill_process(supervisor, Signal::TERM);
        }
        if let Ok(ended) = tokio::time::timeout(grace, self.wait()).await {
            return ended;
        }
        self.kill();
        self.wait().await
    }

    /// Kills the program's group, by closing the lifeline. Returns at once; [`Child::wait`] says when it is done.
    pub fn kill(&mut self) {
        self.lifeline = None;
    }

    /// The file that receives the program's output.
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// The last lines of the program's output, for error messages; empty without a log.
    pub fn log_tail(&self, lines: usize) -> String {
        let tail = self.log.as_deref().map(tail_of).and_then(Result::ok).unwrap_or_default();
        let mut last: Vec<&str> = tail.lines().rev().take(lines).collect();
        last.reverse();
        last.join("\n")
    }

    fn wait_error(&self, source: io::Error) -> Error {
        Error::Wait { program: self.program.clone(), source }
    }
}

fn tail_of(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
