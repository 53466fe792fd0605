//! Messages between the harness and the parts of a sandbox: a line of JSON over a unix socket, descriptors beside it.
//!
//! Descriptors cross namespaces: a listener stays in the network in which it was made, whoever accepts from it.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The most descriptors beside one message.
const MOST: usize = 4;

/// What a new `__isolate` is to be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Host name and (in `__launch`, `__exec`) processes and mounts of its own.
    pub(crate) namespaces: bool,
    /// A network of its own, with only `lo`.
    pub(crate) network: bool,
    pub(crate) hostname: Option<String>,
}

/// What `__isolate` is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A listener, whose descriptor comes beside the answer.
    Listen { address: SocketAddr },
    /// A connection, whose descriptor comes beside the answer.
    Connect { address: SocketAddr, patience_ms: u64 },
    /// A `__launch`; beside this come its socket to the harness, and the operator's stdout and stderr.
    Launch,
}

/// What `__launch` is asked to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) namespaces: bool,
    pub(crate) command: Vec<String>,
    pub(crate) dir: PathBuf,
    /// Set, or removed when `None`.
    pub(crate) env: Vec<(String, Option<String>)>,
    pub(crate) service_account: Option<PathBuf>,
    pub(crate) hosts: Option<PathBuf>,
}

/// What `__launch` tells.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program runs, under this process number.
    Started { pid: i32 },
    /// It could not be started.
    Refused(Refusal),
    /// It has ended, and everything in its PID namespace and process group with it.
    Exited { code: Option<i32>, signal: Option<i32> },
}

/// Why something could not be done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The step, for people.
    pub(crate) step: String,
    /// The operating system's error number, 0 when there is none.
    pub(crate) errno: i32,
    /// What probably stands behind it.
    pub(crate) why: Option<String>,
    /// Whether the step was the program's own start, after all preparation.
    pub(crate) program: bool,
}

// === impl Refusal ===

impl Refusal {
    pub(crate) fn new(step: impl Into<String>, error: impl Into<io::Error>) -> Self {
        let errno = error.into().raw_os_error().unwrap_or(0);
        Self { step: step.into(), errno, why: None, program: false }
    }

    /// The operating system's reason.
    pub(crate) fn source(&self) -> io::Error {
        match self.errno {
            0 => io::Error::other(self.why.clone().unwrap_or_else(|| self.step.clone())),
            errno => io::Error::from_raw_os_error(errno),
        }
    }
}

/// Sends one message, with at most [`MOST`] descriptors beside it.
pub(crate) fn send(socket: impl AsFd, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    send_bytes(socket, &line, descriptors)
}

/// Sends one message and gives a descriptor away: it is closed here before the other side can see the whole message, so
/// that a listener which the other side closes is closed.
pub(crate) fn give(socket: impl AsFd, message: &impl Serialize, descriptor: OwnedFd) -> io::Result<()> {
    // JSON may begin with white space.
    send_bytes(&socket, b" ", &[descriptor.as_fd()])?;
    drop(descriptor);
    send(socket, message, &[])
}

fn send_bytes(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut sent = 0;
    while sent < bytes.len() {
        let piece = [IoSlice::new(&bytes[sent..])];
        sent += rustix::io::retry_on_intr(|| sendmsg(&socket, &piece, &mut beside, SendFlags::empty()))?;
        beside.clear();
    }
    Ok(())
}

/// Receives one message. Nothing is sent behind it before it is answered, so reading never takes too much.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<(T, Vec<OwnedFd>)> {
    let (mut line, mut descriptors) = (Vec::new(), Vec::new());
    let mut piece = [0; 4096];
    while line.last() != Some(&b'\n') {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let read = rustix::io::retry_on_intr(|| {
            recvmsg(&socket, &mut [IoSliceMut::new(&mut piece)], &mut beside, receive_flags())
        })?;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        if read.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend(&piece[..read.bytes]);
    }
    Ok((serde_json::from_slice(&line)?, descriptors))
}

#[cfg(target_os = "linux")]
fn receive_flags() -> RecvFlags {
    RecvFlags::CMSG_CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn receive_flags() -> RecvFlags {
    RecvFlags::empty()
}
