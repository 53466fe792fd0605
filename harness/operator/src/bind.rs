//! Where the operator finds its API server.

use rustix::net::{Shutdown, shutdown};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;

/// An address that can be listened on, given up and listened on again: the operator's view of its API server.
///
/// Whether a connection is accepted, refused or reset is thus real, in whichever network the operator lives.
pub trait Bind: Send + Sync {
    /// A non-blocking listener at [`Bind::address`]. Connections are refused until this is called, and again after
    /// [`stop_listening`].
    fn bind(&self) -> io::Result<TcpListener>;

    /// The address as the operator sees it; it never changes.
    fn address(&self) -> SocketAddr;
}

/// Refuses connections from now on, and resets those not yet accepted. Then drop the listener.
///
/// Dropping alone does this a moment later when the harness is just starting another process, which holds a copy of every
/// descriptor until its `exec`.
pub fn stop_listening(listener: impl AsFd) -> io::Result<()> {
    match shutdown(listener, Shutdown::Both) {
        // What macOS says of any listener; there dropping has to do.
        Err(rustix::io::Errno::NOTCONN) => Ok(()),
        other => Ok(other?),
    }
}
