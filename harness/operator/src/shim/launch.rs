//! `__launch`: starts the operator once, as process 1 of a PID namespace, and tells the harness how it ended.
//!
//! The socket to the harness is its stdin. Its end, the end of `__isolate` and the end of the operator all mean that
//! nothing of this start is left.

use super::{EXEC, enter_processes, this};
use crate::wire::{Order, Refusal, Report, receive, send};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use spiritlevel_supervise::look;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) fn launch() -> ExitCode {
    let harness = io::stdin();
    let Ok((order, _)) = receive::<Order>(&harness) else { return ExitCode::FAILURE };
    let report = match supervise(&order) {
        Ok(exited) => exited,
        Err(refusal) => Report::Refused(refusal),
    };
    // The harness may be gone, which is why we end.
    let _ = send(&harness, &report, &[]);
    ExitCode::SUCCESS
}

fn supervise(order: &Order) -> Result<Report, Refusal> {
    // One thread for good: after unshare(CLONE_NEWPID) the kernel refuses new ones here (EINVAL), so nothing below may
    // use `spawn_blocking`, `tokio::fs` or `tokio::io::stdin`.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Refusal::new("make a runtime", error))?;
    runtime.block_on(async {
        let step = |step: &'static str| move |error: io::Error| Refusal::new(step, error);
        let mut ended = signal(SignalKind::child()).map_err(step("watch for the end"))?;
        let mut asked = signal(SignalKind::terminate()).map_err(step("watch for SIGTERM"))?;
        if order.namespaces {
            enter_processes()?;
        }
        parent_death_is_sigterm().map_err(step("follow the sandbox"))?;
        let mut child = start(order)?;
        let group = Pid::from_raw(child.id().cast_signed());
        let gone = harness_gone();
        tokio::pin!(gone);
        while !look(&child) {
            tokio::select! {
                _ = ended.recv() => {}
                _ = asked.recv() => break,
                () = &mut gone => break,
            }
        }
        // Not reaped yet, so the number is still that of our group. With a PID namespace the end of its first process
        // is the end of all, and is only seen here once they are dead.
        let _ = killpg(group, Signal::SIGKILL);
        let status = child.wait().map_err(step("wait for the operator"))?;
        Ok(Report::Exited { code: status.code(), signal: status.signal() })
    })
}

fn start(order: &Order) -> Result<Child, Refusal> {
    let step = |step: &'static str| move |error: io::Error| Refusal::new(step, error);
    let (mut ours, theirs) = UnixStream::pair().map_err(step("make a socket"))?;
    let mut command = Command::new(this());
    command.arg0("spiritlevel").arg(EXEC).stdin(OwnedFd::from(theirs)).process_group(0);
    let mut child = command.spawn().map_err(step("start the first process"))?;
    drop(command);
    let answer = send(&ours, order, &[]).and_then(|()| {
        // `exec` closes its end, which says that all went well.
        let mut answer = Vec::new();
        ours.read_to_end(&mut answer)?;
        Ok(answer)
    });
    let answer = answer.map_err(step("prepare the operator"))?;
    if answer.is_empty() {
        let pid = child.id().cast_signed();
        send(io::stdin(), &Report::Started { pid }, &[]).map_err(step("tell of the start"))?;
        return Ok(child);
    }
    let _ = child.wait();
    Err(serde_json::from_slice(&answer).unwrap_or_else(|error| Refusal::new("prepare the operator", error)))
}

/// Returns when the harness has closed its end of our stdin.
async fn harness_gone() {
    let stream = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let stream = stream.and_then(|stream| stream.set_nonblocking(true).map(|()| stream));
    let Ok(mut stream) = stream.and_then(tokio::net::UnixStream::from_std) else { return };
    let mut ignored = [0; 64];
    while stream.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

/// So that the operator's group can still be killed, which a SIGKILL to us would not do.
#[cfg(target_os = "linux")]
fn parent_death_is_sigterm() -> io::Result<()> {
    Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?)
}

/// Without it, the end of the harness is all we see.
#[cfg(not(target_os = "linux"))]
fn parent_death_is_sigterm() -> io::Result<()> {
    Ok(())
}
