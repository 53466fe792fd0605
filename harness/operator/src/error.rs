//! What can go wrong around the operator under test.

use crate::wire::Refusal;
use std::{io, path::PathBuf};

/// Each message completes "failed to …". What a *running* operator does is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No program that can be re-executed as a sandbox.
    #[error(transparent)]
    Supervise(#[from] spiritlevel_supervise::Error),
    /// This machine does not allow the sandbox.
    #[error("isolate the operator: {step}{}", reason(why))]
    Isolate {
        /// The refused step.
        step: String,
        /// What stands behind it, with a remedy; may be empty.
        why: String,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The sandbox's process does not answer, or has ended.
    #[error(
        "talk to the operator's sandbox, process {pid} of {}: was it killed, or is the program another version? \
         (SPIRITLEVEL_BIN names another)", executable.display()
    )]
    Gone {
        /// The sandbox's process number.
        pid: u32,
        /// The program that plays the sandbox.
        executable: PathBuf,
        /// What the socket said.
        #[source]
        source: io::Error,
    },
    /// Something of the harness's own side, such as a pipe.
    #[error("prepare the operator's sandbox: {step}")]
    Prepare {
        /// The step.
        step: &'static str,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The service account cannot be shown at its usual path.
    #[error(
        "give the operator in-cluster access: without namespaces nothing can be mounted at the service account's path; \
         use `access: kubeconfig`, or make namespaces work: {why}"
    )]
    InClusterNeedsNamespaces {
        /// Why there are no namespaces.
        why: String,
    },
    /// The operator's program cannot be executed.
    #[error("start the operator `{program}` in {}: check `launch.command`: {hint}", dir.display())]
    Program {
        /// The first word of the command.
        program: String,
        /// The working directory, from which a relative path is resolved.
        dir: PathBuf,
        /// What to look at.
        hint: &'static str,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The operator's working directory or home is missing.
    #[error("start the operator in {}: no such folder", dir.display())]
    Directory {
        /// The folder.
        dir: PathBuf,
    },
    /// A file of the harness cannot be read or written.
    #[error("{action} {}", path.display())]
    File {
        /// `write`, `open`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// A signal was refused.
    #[error("signal the operator's process group {pid}")]
    Signal {
        /// The first process of the operator, and its group.
        pid: i32,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// Some thread went on running after SIGSTOP.
    #[error(
        "stop the operator, process {pid}: after {waited_ms} ms some of its threads still ran; is the machine overloaded?"
    )]
    StillRunning {
        /// The first process of the operator.
        pid: i32,
        /// How long was waited.
        waited_ms: u64,
    },
    /// A build command cannot be executed at all.
    #[error("build the operator: run `{command}` in {}: {hint}", dir.display())]
    BuildCommand {
        /// The command line.
        command: String,
        /// Its working directory.
        dir: PathBuf,
        /// What to look at.
        hint: &'static str,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// A build command ended with an error.
    #[error("build the operator: `{command}` ended with {status}; {hint}; its last lines:\n{tail}")]
    BuildFailed {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// What to look at.
        hint: &'static str,
        /// The end of its output.
        tail: String,
    },
    /// A build succeeded, but its program is not there.
    #[error("build the operator: `{command}` succeeded, but {} is not there; correct `build.produces`", path.display())]
    NotProduced {
        /// The command line.
        command: String,
        /// The program that was expected.
        path: PathBuf,
    },
    /// A module version that means another thing tomorrow, or that no path can be made of.
    #[error("build {module}: name an exact version, such as v1.2.3, and a package inside the module")]
    InexactVersion {
        /// `module@version`.
        module: String,
    },
    /// A Go module cannot be downloaded.
    #[error("download the Go module {module}: {hint}; go said:\n{said}")]
    Module {
        /// `module@version`.
        module: String,
        /// What to look at.
        hint: &'static str,
        /// What the Go tool said.
        said: String,
    },
    /// `go mod download` said something else than where the module is.
    #[error("download the Go module {module}: unexpected answer of `go mod download -json`")]
    ModuleAnswer {
        /// `module@version`.
        module: String,
        /// What was wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

// === impl Error ===

impl Error {
    pub(crate) fn isolate(refusal: Refusal) -> Self {
        let source = refusal.source();
        Self::Isolate { step: refusal.step, why: refusal.why.unwrap_or_default(), source }
    }
}

fn reason(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(" ({why})") }
}
