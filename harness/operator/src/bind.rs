//! Where the operator finds its API server.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// An address that can be listened on, given up and listened on again: the operator's view of its API server.
///
/// Whether a connection is accepted, refused or reset is thus real, in whichever network the operator lives.
pub trait Bind: Send + Sync {
    /// A non-blocking listener at [`Bind::address`]. Connections are refused until this is called, and again once the
    /// listener is dropped.
    fn bind(&self) -> io::Result<TcpListener>;

    /// The address as the operator sees it; it never changes.
    fn address(&self) -> SocketAddr;
}
