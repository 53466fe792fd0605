//! One listener per actor: what a run sees of the proxy, and the levers that it pulls.

use crate::{
    Bind, Director, Error,
    connection::{self, Socket},
    path::{Condition, EndStream, Path, lock},
    proxy::Numbers,
    upstream::ApiServer,
};
use rustls::ServerConfig;
use spiritlevel_model::{
    Actor, StreamId,
    fault::{CloseWatch, PartitionAs, Stream},
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// An actor's way to the API server. Everything ends when it is dropped.
pub struct Listener {
    path: Arc<Path>,
    bind: Arc<dyn Bind>,
    socket: Arc<Socket>,
}

impl Listener {
    pub(crate) fn start(
        actor: Actor,
        bind: Arc<dyn Bind>,
        director: Arc<dyn Director>,
        api_server: ApiServer,
        tls: Arc<ServerConfig>,
        numbers: Arc<Numbers>,
    ) -> Result<Self, Error> {
        let bound = listen(&*bind).map_err(|source| Error::Bind { address: bind.address(), source })?;
        let path = Arc::new(Path::new(actor, director, api_server, numbers));
        let socket: Arc<Socket> = Arc::new(Mutex::new(Some(bound)));
        let accept = {
            let bind = bind.clone();
            connection::accept(path.clone(), socket.clone(), TlsAcceptor::from(tls), move || listen(&*bind))
        };
        let stop = path.stop.clone();
        path.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = accept => {}
            }
        });
        Ok(Self { path, bind, socket })
    }

    /// Where clients reach it.
    pub fn address(&self) -> SocketAddr {
        self.bind.address()
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The watches that are open, in order of their opening.
    pub fn streams(&self) -> Vec<Stream> {
        self.path.streams()
    }

    /// Ends an open watch, also one that is withheld or stalled.
    pub fn end_stream(&self, id: StreamId, how: CloseWatch, fault: &str) {
        self.path.end_stream(id, EndStream { how, fault: fault.into() });
    }

    /// Cuts the path. `Refuse`: the socket is closed when this returns, open connections are reset. `Reset`: new
    /// connections too. `Blackhole`: nothing moves, nothing ends. `Slow`: everything is late by two seconds.
    pub fn shut(&self, how: PartitionAs, fault: &str) {
        self.path.set_condition(Condition { cut: Some(how), fault: fault.into() });
        if how == PartitionAs::Refuse {
            lock(&self.socket).take();
        }
        if matches!(how, PartitionAs::Refuse | PartitionAs::Reset) && self.path.reset_connections(Some(fault)) {
            self.path.tell_partition("open connections were reset");
        }
    }

    /// Heals the path. The address is the same as before.
    pub fn open(&self) {
        {
            let mut socket = lock(&self.socket);
            if socket.is_none() {
                // If the port is not free at this moment, the accepting task tries again.
                *socket = listen(&*self.bind).ok();
            }
        }
        self.path.set_condition(Condition::default());
    }

    /// The API server is about to go: the socket closes, open connections are reset, and requests that are upstream go on
    /// and are recorded.
    pub fn begin_outage(&self, cause: &str) {
        // First, so that nobody is accepted after this returns.
        lock(&self.socket).take();
        self.path.begin_outage(cause);
    }

    /// The API server is back, or will be: the socket opens once it takes connections.
    pub fn end_outage(&self) {
        self.path.end_outage();
    }

    /// Nothing new of this actor passes; requests that are upstream go on and are recorded.
    pub fn close_gate(&self) {
        self.path.set_gate(true);
    }

    /// What waited goes on.
    pub fn open_gate(&self) {
        self.path.set_gate(false);
    }

    /// Short requests without a reply yet, those at a closed gate included; watches do not count.
    pub fn in_flight(&self) -> usize {
        self.path.in_flight()
    }

    /// Resets every connection: nothing of a dead process reaches the API server any more.
    pub fn drop_connections(&self) {
        self.path.reset_connections(None);
    }

    /// Ends everything and waits until it has ended.
    pub async fn stop(self) {
        lock(&self.socket).take();
        self.path.stop.cancel();
        self.path.tasks.close();
        self.path.tasks.wait().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.path.stop.cancel();
    }
}

fn listen(bind: &dyn Bind) -> io::Result<TcpListener> {
    let listener = bind.bind()?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}
