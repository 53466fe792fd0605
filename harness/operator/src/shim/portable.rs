//! What systems without namespaces get: a process group and its supervisor.

use crate::wire::{Refusal, Setup};
use std::{io, path::Path};

fn no() -> Refusal {
    let why = Some("only Linux has namespaces: use `network: host` and `access: kubeconfig`".to_owned());
    Refusal { why, ..Refusal::new("isolate", io::Error::from(io::ErrorKind::Unsupported)) }
}

pub(super) fn enter(_: &Setup) -> Result<(), Refusal> {
    Err(no())
}

pub(super) fn enter_processes() -> Result<(), Refusal> {
    Err(no())
}

pub(super) fn mount_all(_: Option<&Path>, _: Option<&Path>) -> Result<(), Refusal> {
    Err(no())
}
