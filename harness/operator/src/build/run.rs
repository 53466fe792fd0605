//! Runs one command of a build, which ends when the harness does.

use super::Progress;
use crate::Error;
use spiritlevel_supervise::Spawn;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;

/// How many of its last lines an error shows.
const TAIL: usize = 20;

/// One command of a build.
pub(super) struct Run {
    command: Vec<OsString>,
    dir: PathBuf,
    env: Vec<(&'static str, &'static str)>,
}

/// How it ended.
pub(super) struct Done {
    pub(super) status: std::process::ExitStatus,
    /// All that it said, stdout and stderr.
    pub(super) output: Vec<String>,
}

// === impl Run ===

impl Run {
    pub(super) fn new(command: impl IntoIterator<Item = impl Into<OsString>>, dir: &Path) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), dir: dir.to_owned(), env: Vec::new() }
    }

    pub(super) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// The command as one would type it.
    pub(super) fn line(&self) -> String {
        self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// Runs it to its end, which may be a failure. Dropping the future kills it.
    pub(super) async fn run(&self, progress: Progress<'_>) -> Result<Done, Error> {
        let prepare = |source| Error::Prepare { step: "read what a build says", source };
        let (reader, writer) = io::pipe().map_err(prepare)?;
        let mut child = self.spawn(writer)?;
        let reader = pipe::Receiver::from_owned_fd(reader.into()).map_err(prepare)?;
        let mut reader = BufReader::new(reader);
        let mut output = Vec::new();
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).await.map_err(prepare)? > 0 {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            progress(&text);
            output.push(text);
            line.clear();
        }
        Ok(Done { status: child.wait().await?, output })
    }

    /// Runs it, a failure being an error.
    pub(super) async fn check(&self, progress: Progress<'_>) -> Result<Vec<String>, Error> {
        let done = self.run(progress).await?;
        if done.status.success() {
            return Ok(done.output);
        }
        let tail: VecDeque<&str> = done.output.iter().rev().take(TAIL).map(String::as_str).collect();
        let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
        let status = done.status.to_string();
        Err(Error::BuildFailed { command: self.line(), status, hint: hint(&tail), tail })
    }

    fn spawn(&self, output: io::PipeWriter) -> Result<spiritlevel_supervise::Child, Error> {
        let refused = |hint, source| Error::BuildCommand { command: self.line(), dir: self.dir.clone(), hint, source };
        let Some((program, args)) = self.command.split_first() else {
            return Err(refused("`build.command` is empty", io::ErrorKind::InvalidInput.into()));
        };
        // As a shell in that folder would take it.
        let path = Path::new(program);
        let nested = path.is_relative() && path.components().count() > 1;
        let program = if nested { self.dir.join(path).into_os_string() } else { program.clone() };
        let mut spawn = Spawn::new(&program).args(args).current_dir(&self.dir).output(output);
        for (name, value) in &self.env {
            spawn = spawn.env(name, value);
        }
        spawn.spawn().map_err(|error| match error {
            spiritlevel_supervise::Error::Start { source, .. } if program == "go" => {
                refused("install Go (https://go.dev/dl) or put its bin folder on PATH", source)
            }
            spiritlevel_supervise::Error::Start { source, .. } => {
                refused("is that tool installed, on PATH and executable?", source)
            }
            other => other.into(),
        })
    }
}

/// What probably stands behind the last lines.
pub(super) fn hint(said: &str) -> &'static str {
    const HINTS: &[(&[&str], &str)] = &[
        (
            &["not available", "403 Forbidden", "404 Not Found", "410 Gone", "unknown revision"],
            "the module proxy does not serve this version: name an exact release that it serves (GOPROXY says which proxy)",
        ),
        (
            &[
                "no such host",
                "dial tcp",
                "i/o timeout",
                "connection refused",
                "disabled by GOPROXY=off",
                "TLS handshake",
            ],
            "the module proxy cannot be reached: build once where there is a network, or set GOPROXY to one that is near",
        ),
        (&["requires go >=", "toolchain not available"], "it needs a newer Go: install that, or set GOTOOLCHAIN=auto"),
        (&["no required module provides package", "no Go files in", "directory not found"], "correct `package`"),
        (&["no space left on device"], "the disk is full: `go clean -cache` frees some"),
    ];
    let found = HINTS.iter().find(|(signs, _)| signs.iter().any(|sign| said.contains(sign)));
    found.map_or("run it by hand to see more", |(_, hint)| hint)
}
