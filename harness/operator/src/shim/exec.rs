//! `__exec`: mounts what the operator is to find, gives up every privilege and becomes the operator.

use super::mount_all;
use crate::wire::{Order, Refusal, receive, send};
use spiritlevel_supervise::{die_with_parent, parent_alive};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::{convert::Infallible, io};

pub(crate) fn exec() -> ExitCode {
    // A close-on-exec copy, since `exec` gives stdin to the program even when it fails.
    let Ok(launcher) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    let Ok((order, _)) = receive::<Order>(&launcher) else { return ExitCode::FAILURE };
    let refusal = match become_operator(&order) {
        Ok(never) => match never {},
        Err(refusal) => refusal,
    };
    let _ = send(&launcher, &refusal, &[]);
    ExitCode::FAILURE
}

fn become_operator(order: &Order) -> Result<Infallible, Refusal> {
    if order.namespaces {
        mount_all(order.service_account.as_deref(), order.hosts.as_deref())?;
    }
    die_with_parent().map_err(|error| Refusal::new("follow the launcher", error))?;
    if !parent_alive() {
        return Err(Refusal::new("start after the launcher died", io::Error::from(io::ErrorKind::BrokenPipe)));
    }
    let refused = |error| Refusal { program: true, ..Refusal::new("execute", error) };
    let [program, args @ ..] = &order.command[..] else {
        return Err(refused(io::Error::from(nix::errno::Errno::ENOENT)));
    };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).current_dir(&order.dir);
    for (name, value) in &order.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Err(refused(command.exec()))
}
