//! A TCP relay that can be cut: connections end, new ones are closed at once, until it is mended.

use std::{io, net::SocketAddr};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// Ends with its value.
pub(crate) struct Relay {
    address: SocketAddr,
    whole: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn start(upstream: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (whole, state) = watch::channel(true);
        let upstream = upstream.trim_end_matches('/').to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((downstream, _)) = listener.accept().await {
                connections.spawn(carry(downstream, upstream.clone(), state.clone()));
            }
        });
        Ok(Self { address, whole, _tasks: tasks })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn carry(mut downstream: TcpStream, upstream: String, mut whole: watch::Receiver<bool>) {
    if !*whole.borrow() {
        return;
    }
    let Ok(mut upstream) = TcpStream::connect(upstream).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut downstream, &mut upstream) => {}
        _ = whole.wait_for(|whole| !whole) => {}
    }
}
