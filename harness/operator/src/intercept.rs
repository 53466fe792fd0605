//! The sub-commands in which our own binary plays the sandbox.

use crate::shim;
use std::{env, process::ExitCode};

/// Runs the part of the sandbox, or the supervisor, that this process was started as, and returns its exit code; else
/// `None`. Call it first in `main`, before any thread exists: namespaces of a process with threads cannot be changed.
pub fn intercept() -> Option<ExitCode> {
    let supervised = spiritlevel_supervise::intercept();
    let stage = env::args_os().nth(1)?;
    match stage.to_str()? {
        shim::ISOLATE => Some(shim::isolate()),
        shim::LAUNCH => Some(shim::launch()),
        shim::EXEC => Some(shim::exec()),
        shim::TRIAL => Some(ExitCode::SUCCESS),
        _ => supervised,
    }
}
