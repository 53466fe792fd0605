//! Which program is re-executed as a supervisor, and how it notices that it is one.

use crate::{Error, supervisor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, path::Path, path::PathBuf, process::ExitCode};

/// Whether this process's `main` can become a supervisor.
static INTERCEPTS: AtomicBool = AtomicBool::new(false);

/// Runs the supervisor and returns its exit code when this process was started as one; else `None`.
///
/// Call it first in `main`, before any thread exists.
pub fn intercept() -> Option<ExitCode> {
    INTERCEPTS.store(true, Ordering::Relaxed);
    let mut args = env::args_os().skip(1);
    match args.next()?.to_str()? {
        supervisor::SUPERVISE => Some(supervisor::supervise(args.collect())),
        supervisor::BECOME => Some(supervisor::become_program(args.collect())),
        _ => None,
    }
}

/// The program to re-execute: `SPIRITLEVEL_BIN`; else this one, when its `main` called [`intercept`]; else `spiritlevel`
/// beside this program, one folder up (tests run from `target/debug/deps`) or on PATH.
pub fn executable() -> Result<PathBuf, Error> {
    if let Some(set) = env::var_os("SPIRITLEVEL_BIN").filter(|set| !set.is_empty()) {
        // The child's working directory is another.
        return Ok(std::path::absolute(&set).unwrap_or(set.into()));
    }
    let this = env::current_exe().unwrap_or_default();
    if INTERCEPTS.load(Ordering::Relaxed) {
        // The link keeps working when cargo replaces the file during a run.
        return Ok(if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { this });
    }
    let beside = this.parent().unwrap_or(Path::new(".")).to_owned();
    let name = format!("spiritlevel{}", env::consts::EXE_SUFFIX);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.ancestors().take(2).map(Path::to_owned).chain(env::split_paths(&path));
    let found = folders.map(|folder| folder.join(&name)).find(|file| file.is_file());
    found.ok_or(Error::NoExecutable { beside })
}
