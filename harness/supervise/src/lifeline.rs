//! Two ways in which a process learns that the one it serves is gone.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use std::os::fd::AsFd;
use std::{io, process::Stdio};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// The harness's end of a pipe that becomes a child's stdin. Closed by the kernel however the harness ends.
///
/// It is close-on-exec, so no other child of the harness keeps it open.
#[derive(Debug)]
#[must_use = "dropping the lifeline ends the child"]
pub struct Lifeline {
    _writer: io::PipeWriter,
}

// === impl Lifeline ===

impl Lifeline {
    /// A new pipe: our end, and the stdin for the child.
    pub fn new() -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self { _writer: writer }, reader.into()))
    }
}

/// In the re-executed process: returns when the other end of stdin, a lifeline, is closed.
///
/// Needs no thread, which a process that has unshared its PID namespace can no longer make. A stdin that is no pipe
/// returns at once: ending too early beats a program that nobody ends.
pub async fn harness_gone() {
    let receiver = io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
    let Ok(mut receiver) = receiver else {
        tracing::warn!("the lifeline on stdin is no pipe");
        return;
    };
    let mut ignored = [0; 64];
    while receiver.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

/// Asks the kernel for SIGKILL when the thread that started this process ends. Nothing outside Linux.
///
/// A change of credentials clears it, so it comes last before `exec`; then ask [`parent_alive`].
pub fn die_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// Whether the other end of stdin, a pipe, is still open: the parent may have died before [`die_with_parent`] took
/// effect, and `getppid()` cannot tell in a PID namespace of one's own.
pub fn parent_alive() -> bool {
    let stdin = io::stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    retry_on_intr(|| poll(&mut ends, Some(&now))).is_ok_and(|gone| gone == 0)
}
