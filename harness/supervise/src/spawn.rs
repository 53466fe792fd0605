//! What is to be started, and how.

use crate::supervisor::SUPERVISE;
use crate::{Child, Error, Lifeline, executable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{env, fs};

/// How long the supervisor may take to answer, in seconds; it takes a few milliseconds.
const PATIENCE: i64 = 20;

/// A program to be started as a child that cannot outlive this process.
#[derive(Debug)]
#[must_use = "nothing starts before `spawn`"]
pub struct Spawn {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    clear: bool,
    dir: Option<PathBuf>,
    log: Option<PathBuf>,
    output: Option<OwnedFd>,
}

// === impl Spawn ===

impl Spawn {
    /// A program by path, or by name on PATH. A relative path is taken from this process's folder, not the child's.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let given = program.as_ref();
        let relative = Path::new(given).is_relative() && Path::new(given).components().count() > 1;
        let program =
            if relative { env::current_dir().unwrap_or_default().join(given).into() } else { given.to_owned() };
        Self { program, args: Vec::new(), env: Vec::new(), clear: false, dir: None, log: None, output: None }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// More arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets one variable of the environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes one variable of the environment.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), None));
        self
    }

    /// Starts from an empty environment instead of ours.
    pub fn env_clear(mut self) -> Self {
        self.clear = true;
        self
    }

    /// The working directory, which must exist.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// The file to which stdout and stderr are appended; its folder is made. Without it, output is thrown away.
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }

    /// Where stdout and stderr go instead, such as the writing end of a pipe.
    pub fn output(mut self, to: impl Into<OwnedFd>) -> Self {
        self.output = Some(to.into());
        self
    }

    /// Starts the program, in a process group of its own, and returns when the program has been executed or refused,
    /// which takes a few milliseconds. Must be called within a tokio runtime.
    pub fn spawn(mut self) -> Result<Child, Error> {
        let program = self.program.to_string_lossy().into_owned();
        let start = |source| Error::Start { program: program.clone(), source };
        if let Some(dir) = self.dir.as_ref().filter(|dir| !dir.is_dir()) {
            return Err(Error::Directory { program, dir: dir.clone() });
        }
        let executable = executable()?;
        let stderr = match (self.output.take(), &self.log) {
            (Some(output), _) => output.into(),
            (None, Some(log)) => open(log)?.into(),
            (None, None) => Stdio::null(),
        };
        let (lifeline, stdin) = Lifeline::new().map_err(start)?;
        let (report, stdout) = io::pipe().map_err(start)?;

        let mut command = tokio::process::Command::new(&executable);
        command.arg0("spiritlevel").arg(SUPERVISE).arg(&self.program).args(&self.args);
        command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
        if self.clear {
            command.env_clear();
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        let not_one =
            |said: String| Error::NotASupervisor { program: program.clone(), executable: executable.clone(), said };
        let supervisor = command.spawn().map_err(|error| not_one(error.to_string()))?;
        drop(command); // It holds the report's writing end, whose closing we wait for.

        let said = read(report).map_err(|error| not_one(error.to_string()))?;
        // The two lines come from two processes, in any order.
        let line = |key| said.lines().find_map(|line| line.strip_prefix(key));
        if let Some(errno) = line("error ") {
            let errno = errno.parse().map_err(|_| not_one(said.clone()))?;
            return Err(start(io::Error::from_raw_os_error(errno)));
        }
        let pid = line("pid ").and_then(|pid| pid.parse().ok()).ok_or_else(|| not_one(said.clone()))?;
        Ok(Child::new(program, pid, supervisor, lifeline, self.log))
    }
}

fn open(path: &Path) -> Result<fs::File, Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)
        .and_then(|()| fs::File::options().create(true).append(true).open(path))
        .map_err(|source| Error::Log { path: path.to_owned(), source })
}

/// The whole report, up to its end.
fn read(mut report: io::PipeReader) -> io::Result<String> {
    let mut said = Vec::new();
    let mut piece = [0; 256];
    loop {
        let mut ends = [PollFd::new(&report, PollFlags::IN)];
        // The end of any other child interrupts.
        if retry_on_intr(|| poll(&mut ends, Some(&Timespec { tv_sec: PATIENCE, tv_nsec: 0 })))? == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("silent for {PATIENCE} s")));
        }
        match report.read(&mut piece)? {
            0 => return Ok(String::from_utf8_lossy(&said).into_owned()),
            read => said.extend(&piece[..read]),
        }
    }
}
