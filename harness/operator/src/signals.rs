//! Signals to every process of an operator, from outside its namespaces.
//!
//! User namespaces do not matter here: the kernel compares real user ids, and the operator runs under ours.

use crate::Error;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long all threads may take to stop, in steps of 1 ms.
const STOP_PATIENCE_MS: u64 = 2000;
/// After this many, a thread that waits uninterruptibly counts as stopped: with SIGSTOP pending it comes back to none of
/// its own instructions. Such is the parent of a `vfork` whose child has been stopped before it could `exec`; Go and Rust
/// start programs that way.
const UNINTERRUPTIBLE_AFTER_MS: u64 = 20;

/// A PID namespace, held open: its number can be given to no other while we look for its members.
#[derive(Clone, Debug)]
pub(crate) struct PidNamespace {
    link: PathBuf,
    _held: Arc<File>,
}

// === impl PidNamespace ===

impl PidNamespace {
    /// The one of a process, unless it is ours too.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let held = File::open(process.join("ns/pid")).ok()?;
        // The number cannot have changed since: a process keeps its PID namespace, and this one is ours to start.
        let link = namespace(&process)?;
        (Some(&link) != namespace(Path::new("/proc/self")).as_ref()).then(|| Self { link, _held: Arc::new(held) })
    }
}

/// The process group first, which is atomic, then who left it (`setsid`): the same PID namespace. Without a namespace the
/// group is all there is. SIGSTOP returns when every thread has stopped; `kill` alone only asks. Blocks.
pub(crate) fn signal_all(pid: i32, of: Option<&PidNamespace>, signal: Signal) -> Result<usize, Error> {
    killpg(Pid::from_raw(pid), signal).map_err(|error| Error::Signal { pid, source: error.into() })?;
    for waited_ms in 0..STOP_PATIENCE_MS {
        let all = members(pid, of);
        let (todo, done): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|process| signal != Signal::SIGSTOP || runs(process, waited_ms));
        for process in todo.iter().filter_map(|process| process.file_name()?.to_str()?.parse().ok()) {
            // It may just have ended.
            let _ =
                kill(Pid::from_raw(process), signal).inspect_err(|error| tracing::debug!(process, %error, "signal"));
        }
        if signal != Signal::SIGSTOP || todo.is_empty() {
            return Ok(todo.len() + done.len());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Error::StillRunning { pid, waited_ms: STOP_PATIENCE_MS })
}

/// The folders under `/proc` of the operator's processes.
fn members(pid: i32, of: Option<&PidNamespace>) -> Vec<PathBuf> {
    match of {
        Some(of) => {
            entries(Path::new("/proc")).filter(|process| namespace(process).as_ref() == Some(&of.link)).collect()
        }
        None => entries(Path::new("/proc")).filter(|process| field(process, GROUP) == Some(pid.to_string())).collect(),
    }
}

/// Whether some thread of the process is neither stopped nor dead.
fn runs(process: &Path, waited_ms: u64) -> bool {
    let mut states = entries(&process.join("task")).filter_map(|task| field(&task, STATE));
    states.any(|state| match &state[..] {
        "t" | "T" | "Z" | "X" => false,
        "D" => waited_ms < UNINTERRUPTIBLE_AFTER_MS,
        _ => true,
    })
}

fn namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/pid")).ok()
}

/// Places in `/proc/N/stat` behind the name, see proc_pid_stat(5).
const STATE: usize = 0;
const GROUP: usize = 2;

fn field(of: &Path, place: usize) -> Option<String> {
    let stat = fs::read_to_string(of.join("stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').nth(place)?.to_owned())
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}
