//! The inside of a sandbox: three small processes, each our own binary again.

mod exec;
mod isolate;
mod launch;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(target_os = "linux")]
mod refusal;

pub(crate) use exec::exec;
pub(crate) use isolate::isolate;
pub(crate) use launch::launch;
#[cfg(target_os = "linux")]
use mounts::mount_all;
#[cfg(target_os = "linux")]
use namespaces::{enter, enter_processes};
#[cfg(not(target_os = "linux"))]
use portable::{enter, enter_processes, mount_all};

/// The resident process of a sandbox.
pub(crate) const ISOLATE: &str = "__isolate";
/// One start of the operator.
pub(crate) const LAUNCH: &str = "__launch";
/// The process that becomes the operator.
pub(crate) const EXEC: &str = "__exec";
/// Ends with success: what a trial of the sandbox runs.
pub(crate) const TRIAL: &str = "__trial";

/// Our own binary, also when cargo has replaced the file meanwhile.
fn this() -> std::path::PathBuf {
    if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe().unwrap_or_default() }
}
