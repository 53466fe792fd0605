//! The supervising process: `__supervise`, and `__become`, the step between it and the program.
//!
//! What they say on stdout, a pipe to the harness: `pid N`, then either end of file, which the kernel writes when the
//! program takes the pipe's place by `exec`, or `error N`, the reason why it could not.

use crate::lifeline::{die_with_parent, harness_gone, parent_alive};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::{env, fs, io};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) const SUPERVISE: &str = "__supervise";
pub(crate) const BECOME: &str = "__become";
/// As for `env`, `nohup` and `docker run`: the wrapper failed, not the program.
const WRAPPER_FAILED: u8 = 125;

/// Starts the program, and ends its group when it or the harness ends. SIGTERM is passed on to the group.
pub(crate) fn supervise(command: Vec<OsString>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = runtime.and_then(|runtime| runtime.block_on(serve(&command)));
    ExitCode::from(code.unwrap_or_else(|error| {
        eprintln!("spiritlevel: supervise {command:?}: {error}");
        WRAPPER_FAILED
    }))
}

async fn serve(command: &[OsString]) -> io::Result<u8> {
    let mut ended = signal(SignalKind::child())?;
    let mut asked = signal(SignalKind::terminate())?;
    // Its stdin is a pipe whose other end only we hold: there it sees whether we still live.
    let mut child = Command::new(this())
        .arg0("spiritlevel")
        .arg(BECOME)
        .args(command)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let group = Pid::from_child(&child);
    io::stdout().write_all(format!("pid {group}\n").as_bytes())?;
    // From now on only `__become` holds the report open.
    rustix::stdio::dup2_stdout(fs::File::options().write(true).open("/dev/null")?)?;
    let gone = harness_gone();
    tokio::pin!(gone);
    while !look(&child) {
        tokio::select! {
            _ = ended.recv() => {}
            _ = asked.recv() => drop(kill_process_group(group, Signal::TERM)),
            () = &mut gone => break,
        }
    }
    // Not reaped yet, so the number is still that of our group.
    let _ = kill_process_group(group, Signal::KILL);
    Ok(exit_code(child.wait()?))
}

/// Whether the child has ended, without reaping it: until then the kernel cannot give its number to another process, and
/// a signal to its group reaches nobody else.
pub fn look(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(None))
}

/// The exit code that says how a program ended: its own, or 128 plus the signal's number.
pub fn exit_code(status: ExitStatus) -> u8 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) as u8
}

/// Becomes the program.
pub(crate) fn become_program(command: Vec<OsString>) -> ExitCode {
    // A close-on-exec copy, since `exec` gives stdout to the program even when it fails.
    let report = io::stdout().as_fd().try_clone_to_owned().map(fs::File::from);
    let error = exec(&command);
    // In one piece, since the supervisor writes to the same pipe.
    let line = format!("error {}\n", error.raw_os_error().unwrap_or(0));
    let _ = report.and_then(|mut report| report.write_all(line.as_bytes()));
    ExitCode::from(WRAPPER_FAILED)
}

/// Returns only when that failed.
fn exec(command: &[OsString]) -> io::Error {
    let [program, args @ ..] = command else { return io::ErrorKind::InvalidInput.into() };
    if let Err(error) = die_with_parent() {
        return error;
    }
    if !parent_alive() {
        return io::ErrorKind::BrokenPipe.into();
    }
    match io::stderr().as_fd().try_clone_to_owned() {
        Ok(log) => Command::new(program).args(args).stdin(Stdio::null()).stdout(log).exec(),
        Err(error) => error,
    }
}

fn this() -> std::path::PathBuf {
    if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { env::current_exe().unwrap_or_default() }
}
