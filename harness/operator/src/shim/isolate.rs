//! `__isolate`: holds a sandbox's namespaces, and hands descriptors made in them to the harness.
//!
//! It stays in the harness's mount namespace and has one thread. The control socket is its stdin; the end of it is the
//! end of the sandbox.

use super::{LAUNCH, enter, this};
use crate::wire::{Refusal, Request, Setup, give, receive, send};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};
use std::{io, time::Duration};

pub(crate) fn isolate() -> ExitCode {
    let harness = io::stdin();
    let Ok((setup, _)) = receive::<Setup>(&harness) else { return ExitCode::FAILURE };
    let entered = if setup.namespaces { enter(&setup) } else { Ok(()) };
    if send(&harness, &entered, &[]).is_err() || entered.is_err() {
        return ExitCode::FAILURE;
    }
    let mut launched: Vec<Child> = Vec::new();
    while let Ok((request, beside)) = receive(&harness) {
        launched.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
        let done = match request {
            Request::Listen { address } => listen(address),
            Request::Connect { address, patience_ms } => {
                TcpStream::connect_timeout(&address, Duration::from_millis(patience_ms))
                    .map(|stream| Some(stream.into()))
            }
            Request::Launch => start(beside).map(|child| {
                launched.push(child);
                None
            }),
        };
        let answered = match done {
            Ok(Some(descriptor)) => give(&harness, &Ok::<(), Refusal>(()), descriptor),
            Ok(None) => send(&harness, &Ok::<(), Refusal>(()), &[]),
            Err(error) => send(&harness, &Err::<(), Refusal>(Refusal::new(format!("{request:?}"), error)), &[]),
        };
        if answered.is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn listen(address: std::net::SocketAddr) -> io::Result<Option<OwnedFd>> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(Some(listener.into()))
}

fn start(beside: Vec<OwnedFd>) -> io::Result<Child> {
    let Ok([socket, stdout, stderr]) = <[OwnedFd; 3]>::try_from(beside) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // In its own group: what is sent to the operator's group, or to ours, must not end it.
    let mut command = Command::new(this());
    command.arg0("spiritlevel").arg(LAUNCH).stdin(socket).stdout(stdout).stderr(stderr).process_group(0).spawn()
}
