//! What the proxy costs: GET, PUT and watch events through it, against the same without it and through toxiproxy, in one
//! run; many watches; long lists. Prints the tables of `benches/README.md`.
//!
//! ```text
//! cargo bench -p spiritlevel-proxy
//! ```

mod fanout;
mod latency;
mod lists;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;
mod ways;

use support::ApiServer;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [serve, url] = arguments.as_slice()
        && serve == "--serve"
    {
        return ways::serve(url.clone());
    }
    // Without `--bench` few rounds only show that it runs.
    let whole = arguments.iter().any(|a| a == "--bench");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any working machine");
    runtime.block_on(async {
        let server = ApiServer::start().await;
        let ways = ways::ways(&server);
        latency::measure(&server, &ways, if whole { 2000 } else { 50 }).await;
        let (each, seconds): (&[u32], u32) = if whole { (&[10, 100, 1000], 5) } else { (&[10], 1) };
        fanout::measure(&server, &ways, each, seconds).await;
        lists::measure(&server, if whole { &[1000, 10_000] } else { &[100] }).await;
    });
}
