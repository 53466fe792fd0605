//! Client connections: accept, TLS, HTTP/1.1 or HTTP/2, and the ways in which a partition treats them.

use crate::{
    body::{Body, Cut},
    exchange,
    path::{Path, lock},
    wire::Wire,
};
use http::{Request, Response};
use hyper::{body::Incoming, rt::Executor, service::service_fn};
use hyper_util::rt::TokioIo;
use spiritlevel_model::fault::PartitionAs;
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, OnceLock, Weak},
    task::Poll,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long to wait before trying again to bind or accept.
const AGAIN: Duration = Duration::from_millis(20);
/// Long enough for any client that means it.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// The socket at which connections arrive; gone while they are to be refused.
pub(crate) type Socket = Mutex<Option<TcpListener>>;

/// One client connection.
pub(crate) struct Connection {
    pub(crate) number: u64,
    /// Weak: the socket must close as soon as nobody serves it.
    stream: Weak<TcpStream>,
    /// Ends whoever serves it, tunnels too.
    pub(crate) ended: CancellationToken,
    /// The fault that ended it.
    fault: OnceLock<Option<String>>,
    /// It takes no further request.
    last: CancellationToken,
    /// Nobody reads or writes it any more, as if its bytes were lost.
    stalled: CancellationToken,
}

impl Connection {
    /// Ends the connection with a TCP reset.
    pub(crate) fn reset(&self, fault: Option<&str>) {
        if self.fault.set(fault.map(Into::into)).is_ok() {
            self.reset_when_closed();
            self.ended.cancel();
        }
    }

    /// What is open goes on to its end, and nothing new begins.
    pub(crate) fn go_away(&self) {
        self.last.cancel();
    }

    /// Not a byte more in either direction, until it is reset.
    pub(crate) fn stall(&self) {
        self.stalled.cancel();
    }

    /// Whether it is.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.is_cancelled()
    }

    /// Whenever the socket closes, by a reset instead of a FIN.
    pub(crate) fn reset_when_closed(&self) {
        if let Some(stream) = self.stream.upgrade() {
            // Fails only for a socket that is closed already.
            let _ = stream.set_zero_linger();
        }
    }

    /// The fault that ended the connection, if one did.
    pub(crate) fn ended_by(&self) -> Option<&str> {
        self.fault.get()?.as_deref()
    }
}

/// Accepts until the listener is stopped.
pub(crate) async fn accept(
    path: Arc<Path>,
    socket: Arc<Socket>,
    tls: TlsAcceptor,
    rebind: impl Fn() -> std::io::Result<TcpListener>,
) {
    let mut condition = path.condition();
    let mut server_down = path.server_down();
    for number in 0.. {
        let stream = loop {
            let server_down_now = *server_down.borrow_and_update();
            let refuses = server_down_now || condition.borrow_and_update().cut == Some(PartitionAs::Refuse);
            if refuses {
                lock(&socket).take();
            }
            if !refuses && lock(&socket).is_none() {
                // Healed, but the port was not free at once.
                match rebind() {
                    Ok(bound) => *lock(&socket) = Some(bound),
                    Err(e) => {
                        tracing::warn!(actor = %path.actor, error = %e, "cannot listen again yet");
                        tokio::time::sleep(AGAIN).await;
                        continue;
                    }
                }
            }
            let next = std::future::poll_fn(|cx| match &*lock(&socket) {
                Some(listener) => listener.poll_accept(cx),
                None => Poll::Pending,
            });
            tokio::select! {
                accepted = next => match accepted {
                    Ok((stream, _)) => break stream,
                    // Out of descriptors, or the client was quicker: neither is about this listener.
                    Err(_) => tokio::time::sleep(AGAIN).await,
                },
                _ = condition.changed() => {}
                _ = server_down.changed() => {}
            }
        };
        if path.cut() == Some(PartitionAs::Reset) {
            let _ = stream.set_zero_linger();
            path.tell_partition("a new connection was reset");
            continue;
        }
        let _ = stream.set_nodelay(true);
        let stream = Arc::new(stream);
        let connection = Arc::new(Connection {
            number,
            stream: Arc::downgrade(&stream),
            ended: path.stop.child_token(),
            fault: OnceLock::new(),
            last: CancellationToken::new(),
            stalled: CancellationToken::new(),
        });
        path.add_connection(connection.clone());
        path.tasks.spawn(serve(path.clone(), connection, stream, tls.clone()));
    }
}

/// Serves one connection; while bytes vanish nobody reads or writes it.
async fn serve(path: Arc<Path>, connection: Arc<Connection>, stream: Arc<TcpStream>, tls: TlsAcceptor) {
    let mut condition = path.condition();
    let mut work = pin!(speak(path.clone(), connection.clone(), Wire(stream.clone()), tls));
    loop {
        let vanishes = condition.borrow_and_update().cut == Some(PartitionAs::Blackhole);
        tokio::select! {
            () = connection.ended.cancelled() => break,
            () = &mut work, if !vanishes && !connection.stalled.is_cancelled() => break,
            () = connection.stalled.cancelled(), if !connection.stalled.is_cancelled() => {}
            _ = condition.changed() => {}
            _ = stream.readable(), if vanishes => {
                path.tell_partition("bytes of the client vanished");
                // Still readable, and still not read.
                tokio::select! {
                    () = connection.ended.cancelled() => break,
                    _ = condition.changed() => {}
                }
            }
        }
    }
    path.remove_connection(connection.number);
}

async fn speak(path: Arc<Path>, connection: Arc<Connection>, wire: Wire, tls: TlsAcceptor) {
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(wire)).await else { return };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let tasks = Tasks(path.tasks.clone(), connection.ended.clone());
    let last = connection.last.clone();
    let service = service_fn(move |request| exchange(path.clone(), connection.clone(), request));
    let io = TokioIo::new(stream);
    // An error here is a client that went away, or an exchange that a fault cut off.
    if http2 {
        let served = hyper::server::conn::http2::Builder::new(tasks)
            // Every watch is a stream of its own, and every faulty exchange a reset by us.
            .max_concurrent_streams(10_000)
            .max_local_error_reset_streams(None)
            .max_header_list_size(1 << 20)
            .serve_connection(io, service);
        let mut served = pin!(served);
        tokio::select! {
            _ = &mut served => {}
            () = last.cancelled() => {
                served.as_mut().graceful_shutdown();
                let _ = served.await;
            }
        }
    } else {
        let mut served = pin!(hyper::server::conn::http1::Builder::new().serve_connection(io, service).with_upgrades());
        tokio::select! {
            _ = &mut served => {}
            () = last.cancelled() => {
                served.as_mut().graceful_shutdown();
                let _ = served.await;
            }
        }
    }
}

/// Lets each exchange run as a task of its own: a request that is upstream goes on, and is recorded, when its client is
/// gone.
async fn exchange(
    path: Arc<Path>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Cut> {
    let (reply, replied) = oneshot::channel();
    let stop = path.stop.clone();
    let run = exchange::run(path.clone(), connection, request, reply);
    path.tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = run => {}
        }
    });
    replied.await.unwrap_or(Err(Cut))
}

/// Where hyper runs the streams of an HTTP/2 connection: counted, and gone with their connection.
#[derive(Clone)]
struct Tasks(TaskTracker, CancellationToken);

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        let ended = self.1.clone();
        self.0.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                _ = future => {}
            }
        });
    }
}
