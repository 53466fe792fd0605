//! The harness's hold on a sandbox: one replica's network and host name, across all starts of its operator.

use crate::wire::{Refusal, Request, Setup, receive, send};
use crate::{Bind, Error, Isolation, Launch, Network, Observer, Process, shim};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, time::Duration};

/// How long the sandbox's process may take to answer; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a connection inside may take.
const DIAL_PATIENCE: Duration = Duration::from_secs(2);
/// A listener lives on for as long as a process that was forked while it was open has not called `exec`: at most as many
/// attempts, with this pause.
const REBIND_TRIES: u32 = 50;
const REBIND_PAUSE: Duration = Duration::from_millis(10);

/// What a sandbox is to be.
#[derive(Clone, Debug)]
pub struct SandboxSpec {
    /// What this machine allows, from [`crate::probe`].
    pub isolation: Isolation,
    /// What the operator asks for.
    pub network: Network,
    /// Leader election often takes the host name as identity: one per replica.
    pub hostname: Option<String>,
    /// The folder shown read-only at the service account's path, see [`crate::ServiceAccountDir`].
    pub service_account: Option<PathBuf>,
    /// The file shown as `/etc/hosts`.
    pub hosts: Option<PathBuf>,
    /// The API server's port on 127.0.0.1 as the operator sees it. In the host's network it is chosen, so as to be unique.
    pub port: u16,
}

/// One replica's network and host name, in which its operator is started again and again. It ends, with all that runs in
/// it, when the last clone of this handle and the last [`Process`] are dropped, or when the harness dies.
#[derive(Clone, Debug)]
pub struct Sandbox(Arc<Resident>);

#[derive(Debug)]
struct Resident {
    spec: SandboxSpec,
    address: SocketAddr,
    pid: u32,
    executable: PathBuf,
    /// Question and answer, one at a time.
    control: Mutex<UnixStream>,
    /// Taken together with the port, given out by the first [`Bind::bind`].
    first: Mutex<Option<TcpListener>>,
    /// Reaped by tokio once it has ended.
    _process: tokio::process::Child,
}

// === impl Sandbox ===

impl Sandbox {
    /// Makes the namespaces, which takes a few milliseconds. Must be called within a tokio runtime.
    pub fn create(mut spec: SandboxSpec) -> Result<Self, Error> {
        let prepare = |step| move |source| Error::Prepare { step, source };
        for path in [&mut spec.service_account, &mut spec.hosts].into_iter().flatten() {
            *path = std::path::absolute(&path).map_err(prepare("find the current folder"))?;
        }
        let executable = spiritlevel_supervise::executable()?;
        let (control, theirs) = UnixStream::pair().map_err(prepare("make a socket"))?;
        control.set_read_timeout(Some(PATIENCE)).map_err(prepare("set a time-out"))?;
        let mut command = tokio::process::Command::new(&executable);
        command.arg0("spiritlevel").arg(shim::ISOLATE).process_group(0);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(prepare("start its process"))?;
        // It holds the other end of the socket, whose closing we must see.
        drop(command);

        let pid = process.id().unwrap_or_default();
        let gone = |source| Error::Gone { pid, executable: executable.clone(), source };
        let namespaces = spec.isolation == Isolation::Full;
        let network = namespaces && spec.network == Network::Isolated;
        let setup = Setup { namespaces, network, hostname: spec.hostname.clone() };
        send(&control, &setup, &[]).map_err(gone)?;
        let (entered, _) = receive::<Result<(), Refusal>>(&control).map_err(gone)?;
        entered.map_err(Error::isolate)?;

        let port = if network { spec.port } else { 0 };
        let mut resident = Resident {
            spec,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            pid,
            executable,
            control: Mutex::new(control),
            first: Mutex::new(None),
            _process: process,
        };
        if port == 0 {
            let listener = resident.listen(resident.address).map_err(prepare("find a free port"))?;
            resident.address = listener.local_addr().map_err(prepare("find a free port"))?;
            resident.first = Mutex::new(Some(listener));
        }
        Ok(Self(Arc::new(resident)))
    }

    /// The network that the operator really has.
    pub fn network(&self) -> Network {
        if self.0.spec.isolation == Isolation::Full { self.0.spec.network } else { Network::Host }
    }

    /// A non-blocking listener inside, at any local address: invented pod addresses (10.1.0.0/16) too.
    pub fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.0.listen(address)
    }

    /// A non-blocking connection to a port inside, such as the operator's webhook or metrics.
    pub fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let patience_ms = DIAL_PATIENCE.as_millis() as u64;
        let stream = TcpStream::from(self.0.descriptor(&Request::Connect { address, patience_ms })?);
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Starts the operator, in a PID and a mount namespace of its own, and returns when its program has been executed.
    /// What was started before may still run.
    pub async fn start(&self, launch: Launch, observer: Observer) -> Result<Process, Error> {
        Process::start(self.clone(), launch, observer).await
    }

    /// The number of the resident process that holds the namespaces.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// What this sandbox was made from.
    pub fn spec(&self) -> &SandboxSpec {
        &self.0.spec
    }

    /// Starts a `__launch` with this socket as stdin and these pipes.
    pub(crate) fn launcher(&self, socket: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> Result<(), Error> {
        let beside = [socket.as_fd(), stdout.as_fd(), stderr.as_fd()];
        self.0.ask(&Request::Launch, &beside).map(drop).map_err(|source| self.gone(source))
    }

    pub(crate) fn gone(&self, source: io::Error) -> Error {
        Error::Gone { pid: self.0.pid, executable: self.0.executable.clone(), source }
    }
}

impl Bind for Sandbox {
    fn bind(&self) -> io::Result<TcpListener> {
        let first = self.0.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = first {
            return Ok(listener);
        }
        for _ in 0..REBIND_TRIES {
            match self.0.listen(self.0.address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => std::thread::sleep(REBIND_PAUSE),
                other => return other,
            }
        }
        self.0.listen(self.0.address)
    }

    fn address(&self) -> SocketAddr {
        self.0.address
    }
}

// === impl Resident ===

impl Resident {
    fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.descriptor(&Request::Listen { address }).map(TcpListener::from)
    }

    fn descriptor(&self, request: &Request) -> io::Result<OwnedFd> {
        self.ask(request, &[])?.pop().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn ask(&self, request: &Request, beside: &[std::os::fd::BorrowedFd<'_>]) -> io::Result<Vec<OwnedFd>> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = send(&*control, request, beside).and_then(|()| receive::<Result<(), Refusal>>(&*control));
        let (answer, descriptors) = answered.inspect_err(|_| {
            // A late answer must not be taken for that of the next question.
            let _ = control.shutdown(std::net::Shutdown::Both);
        })?;
        answer.map(|()| descriptors).map_err(|refusal| refusal.source())
    }
}
