//! How long a GET, a PUT and a watch event take, each way in turn, so that what else the machine does meets them all.

use crate::{
    support::{ApiServer, CONFIGMAPS, event},
    table::{Table, quantiles},
    ways::Way,
};
use http::Method;
use std::time::{Duration, Instant};

/// So many of one way before the next has its turn.
const BLOCK: usize = 50;

pub(crate) async fn measure(server: &ApiServer, ways: &[Way], rounds: usize) {
    let mut table = Table::new(&["", "way", "p50, ms", "p99, ms", "p50 of direct", "p99 of direct"]);
    let url = format!("{CONFIGMAPS}/x");
    let body = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "a", "resourceVersion": "7"},
        "data": {"text": "x".repeat(1000)},
    });
    let body = body.to_string();
    for (what, method, body) in [("GET", Method::GET, ""), ("PUT", Method::PUT, body.as_str())] {
        let mut times = vec![Vec::with_capacity(rounds); ways.len()];
        // The first block of each only opens connections.
        for block in 0..=rounds.div_ceil(BLOCK) {
            for (way, times) in ways.iter().zip(&mut times) {
                for _ in 0..BLOCK {
                    let begun = Instant::now();
                    way.client.whole(method.clone(), &url, body).await.expect("the server answers");
                    if block > 0 {
                        times.push(begun.elapsed());
                    }
                }
            }
        }
        rows(&mut table, what, ways, times);
    }

    let mut watches = Vec::new();
    for way in ways {
        let watch = way.client.watch().await.expect("the watch opens");
        watches.push((watch, server.next_watch().await));
    }
    let mut times = vec![Vec::with_capacity(rounds); ways.len()];
    for block in 0..=rounds.div_ceil(BLOCK) {
        for ((watch, feed), times) in watches.iter_mut().zip(&mut times) {
            for round in 0..BLOCK {
                let line = event("MODIFIED", "p", round as u64).into();
                let begun = Instant::now();
                feed.send(line).expect("the watch is open");
                watch.line().await.expect("the event comes");
                if block > 0 {
                    times.push(begun.elapsed());
                }
            }
        }
    }
    rows(&mut table, "watch event", ways, times);
    table.print();
}

fn rows(table: &mut Table, what: &str, ways: &[Way], times: Vec<Vec<Duration>>) {
    let mut direct = None;
    for (way, times) in ways.iter().zip(times) {
        let (p50, p99) = quantiles(times);
        let (d50, d99) = *direct.get_or_insert((p50, p99));
        let ratio = |a: f64, b: f64| format!("×{:.2}", a / b);
        table.row([what, way.name, &format!("{p50:.3}"), &format!("{p99:.3}"), &ratio(p50, d50), &ratio(p99, d99)]);
    }
}
