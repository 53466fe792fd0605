//! What can go wrong while a child process is started or watched.

use std::{io, path::PathBuf};

/// Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No program that can be re-executed as a supervisor.
    #[error(
        "find the `spiritlevel` program that supervises child processes: it is neither beside {beside} nor on PATH; \
         build it with `cargo build -p spiritlevel`, or set SPIRITLEVEL_BIN to its path"
    )]
    NoExecutable {
        /// The folder that was searched, with the one above it.
        beside: PathBuf,
    },
    /// The supervising program does not behave as one.
    #[error(
        "start `{program}` under `{executable}`: it does not answer as a supervisor ({said}); set SPIRITLEVEL_BIN to a \
         `spiritlevel` of this version, or call `spiritlevel_supervise::intercept` first in its main"
    )]
    NotASupervisor {
        /// What was to be started.
        program: String,
        /// The program that was executed as the supervisor.
        executable: PathBuf,
        /// What came instead of the expected answer.
        said: String,
    },
    /// The program cannot be executed.
    #[error("start `{program}`: check that it exists, is executable and is built for this machine")]
    Start {
        /// What was to be started.
        program: String,
        /// Why the operating system refused.
        #[source]
        source: io::Error,
    },
    /// The working directory is missing.
    #[error("start `{program}` in {}: no such folder", dir.display())]
    Directory {
        /// What was to be started.
        program: String,
        /// Its working directory.
        dir: PathBuf,
    },
    /// The log file cannot be written.
    #[error("open the log file {}", path.display())]
    Log {
        /// Where the output was to go.
        path: PathBuf,
        /// Why the operating system refused.
        #[source]
        source: io::Error,
    },
    /// The child process cannot be waited for.
    #[error("wait for `{program}` to end")]
    Wait {
        /// What had been started.
        program: String,
        /// Why the operating system refused.
        #[source]
        source: io::Error,
    },
}
