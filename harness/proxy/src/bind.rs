//! Where a listener's socket comes from. Sockets are made anew after a partition, so a place to bind is what is handed
//! over, not a socket: inside an operator's network namespace, or on this machine's loopback.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    sync::Mutex,
};

/// A place to listen at, again and again.
pub trait Bind: Send + Sync {
    /// A new listening socket at [`Bind::address`].
    fn bind(&self) -> io::Result<TcpListener>;

    /// The address as clients reach it.
    fn address(&self) -> SocketAddr;
}

/// A port of 127.0.0.1, chosen by the kernel at the first bind and kept from then on.
#[derive(Debug)]
pub struct HostPort {
    address: Mutex<SocketAddr>,
}

impl HostPort {
    /// No port yet.
    pub fn new() -> Self {
        Self::on(Ipv4Addr::LOCALHOST.into())
    }

    /// At another address of this machine, such as the one that pods reach; no port yet.
    pub fn on(address: IpAddr) -> Self {
        Self { address: Mutex::new(SocketAddr::from((address, 0))) }
    }
}

impl Default for HostPort {
    fn default() -> Self {
        Self::new()
    }
}

impl Bind for HostPort {
    fn bind(&self) -> io::Result<TcpListener> {
        let mut address = self.address.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let listener = TcpListener::bind(*address)?;
        *address = listener.local_addr()?;
        Ok(listener)
    }

    fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
