//! What the proxy costs: a GET and a watch event through it, against the same without it, in one run.
//!
//! ```text
//! cargo bench -p spiritlevel-proxy
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use http::Version;
use std::time::{Duration, Instant};
use support::{CONFIGMAPS, Client, World, event};

const ROUNDS: usize = 2000;

fn main() {
    // `cargo test --benches` asks with `--test`: then a few rounds only show that it runs.
    let rounds = if std::env::args().any(|a| a == "--bench") { ROUNDS } else { 20 };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any working machine");
    runtime.block_on(async {
        println!("{rounds} rounds; ms at p50 and p99, and what they are of the direct way");
        let world = World::new().await;
        let clients = [
            ("direct", world.direct()),
            ("proxy h1", world.client(Version::HTTP_11)),
            ("proxy h2", world.client(Version::HTTP_2)),
        ];
        let mut direct = None;
        for (name, client) in &clients {
            let times = gets(client, rounds).await;
            report("GET", name, times, &mut direct);
        }
        let mut direct = None;
        for (name, client) in &clients {
            let times = events(&world, client, rounds).await;
            report("watch event", name, times, &mut direct);
        }
    });
}

async fn gets(client: &Client, rounds: usize) -> Vec<Duration> {
    let url = format!("{CONFIGMAPS}/x");
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds + rounds / 10 {
        let begun = Instant::now();
        client.get(&url).await.expect("the server answers");
        if round >= rounds / 10 {
            times.push(begun.elapsed());
        }
    }
    times
}

async fn events(world: &World, client: &Client, rounds: usize) -> Vec<Duration> {
    let mut watch = client.watch().await.expect("the watch opens");
    let feed = world.server.next_watch().await;
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds + rounds / 10 {
        let line = event("MODIFIED", "p", round as u64).into();
        let begun = Instant::now();
        feed.send(line).expect("the watch is open");
        watch.line().await.expect("the event comes");
        if round >= rounds / 10 {
            times.push(begun.elapsed());
        }
    }
    times
}

fn report(what: &str, name: &str, mut times: Vec<Duration>, direct: &mut Option<(f64, f64)>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    let (p50, p99) = (at(0.5), at(0.99));
    let (d50, d99) = *direct.get_or_insert((p50, p99));
    println!("{what:<12} {name:<9} {p50:>7.3} {p99:>7.3}   ×{:.1} ×{:.1}", p50 / d50, p99 / d99);
}
