//! The proxy in front of any API server, without a fault: prints what it sees, a JSON record a line.
//!
//! ```text
//! cargo run -p spiritlevel-proxy --example forward URL CA-FILE CA-FILE-TO-WRITE [OUTPUT-OF-EVERY-EXEC]
//! ```

use futures::future::BoxFuture;
use spiritlevel_model::{
    Actor,
    fault::{Exchange, Firing, Frame, FrameFate, Stream, Until},
    history::Event,
};
use spiritlevel_proxy::{Director, ExecAnswer, HostPort, Proxy, Upstream};
use std::{error::Error, sync::Arc};

struct Onlooker {
    exec: Option<ExecAnswer>,
}

impl Director for Onlooker {
    fn on_request(&self, _: &Exchange<'_>) -> Option<Firing> {
        None
    }

    fn on_frame(&self, _: &Stream, _: &Frame<'_>) -> FrameFate {
        FrameFate::Deliver
    }

    fn on_stream_end(&self, _: &Stream) {}

    fn perform<'a>(&'a self, _: &'a Firing, _: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn released<'a>(&'a self, _: &'a str, _: &'a Until) -> BoxFuture<'a, String> {
        Box::pin(std::future::ready("nothing".into()))
    }

    fn healed<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn actor(&self, listener: &Actor, _: Option<&str>) -> Actor {
        listener.clone()
    }

    fn exec(&self, _: &Exchange<'_>) -> Option<ExecAnswer> {
        self.exec.clone()
    }

    fn record(&self, event: Event) {
        if let Ok(line) = serde_json::to_string(&event) {
            println!("{line}");
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next =
        |what: &str| arguments.next().ok_or_else(|| format!("give URL CA-FILE CA-FILE-TO-WRITE: {what} is missing"));
    let (url, ca, write) = (next("the URL")?, next("the CA file")?, next("the file to write")?);
    let proxy = Proxy::new(Upstream { url, ca_pem: std::fs::read_to_string(ca)? })?;
    std::fs::write(write, proxy.ca_pem())?;
    let exec = arguments.next().map(|output| ExecAnswer { exit_code: 0, stdout: output.into_bytes() });
    let listener = proxy.listen(Actor::operator(0), Arc::new(HostPort::new()), Arc::new(Onlooker { exec }))?;
    eprintln!("{}", listener.url());
    tokio::signal::ctrl_c().await?;
    listener.stop().await;
    Ok(())
}
