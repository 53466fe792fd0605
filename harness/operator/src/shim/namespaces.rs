//! Namespaces for a sandbox and for each start in it.

use super::{network, refusal::refused};
use crate::wire::{Refusal, Setup};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid, sethostname};
use rustix::thread::{self as capabilities, CapabilitySet, CapabilitySets};
use std::fs;

/// Network, host name and, where needed, user namespace for this process, which must have one thread.
pub(super) fn enter(setup: &Setup) -> Result<(), Refusal> {
    let mut flags = CloneFlags::CLONE_NEWUTS;
    flags.set(CloneFlags::CLONE_NEWNET, setup.network);
    // Real root needs no user namespace, and is better off: with one id mapped it would lose its power over files of
    // other owners, such as a checkout that belongs to the CI user.
    if unshare(flags).is_err() {
        unshare(flags | CloneFlags::CLONE_NEWUSER).map_err(|error| refused("unshare", error))?;
        map_own_id()?;
        // `exec` takes CAP_SYS_ADMIN, which `__launch` and `__exec` need: the ambient set survives it.
        inherit(CapabilitySet::SYS_ADMIN)
            .and_then(|()| capabilities::configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true))
            .map_err(|error| refused("keep CAP_SYS_ADMIN", error))?;
    }
    if let Some(name) = &setup.hostname {
        sethostname(name).map_err(|error| Refusal::new(format!("set the host name {name}"), error))?;
    }
    if setup.network { network::bring_up() } else { Ok(()) }
}

/// To our own id, not to 0: initdb and others refuse root, files show their owner, and `exec` leaves the operator without
/// capabilities, like a pod under the restricted profile.
fn map_own_id() -> Result<(), Refusal> {
    let (uid, gid) = (geteuid(), getegid());
    let ids = [
        ("setgroups", "deny".to_owned()),
        ("gid_map", format!("{gid} {gid} 1")),
        ("uid_map", format!("{uid} {uid} 1")),
    ];
    for (file, text) in ids {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| refused(file, error))?;
    }
    Ok(())
}

/// The next child is process 1 of a PID namespace. Works once in a process.
pub(super) fn enter_processes() -> Result<(), Refusal> {
    unshare(CloneFlags::CLONE_NEWPID).map_err(|error| refused("unshare processes", error))
}

/// What `exec` leaves to the operator: nothing beyond what its user has.
pub(super) fn drop_capabilities() -> Result<(), Refusal> {
    inherit(CapabilitySet::empty())
        .and_then(|()| capabilities::clear_ambient_capability_set())
        .map_err(|error| Refusal::new("drop capabilities", error))
}

fn inherit(inheritable: CapabilitySet) -> rustix::io::Result<()> {
    let now = capabilities::capabilities(None)?;
    capabilities::set_capabilities(None, CapabilitySets { inheritable, ..now })
}
