//! Many watches at once: whether every event arrives, how late, and at what price.

use crate::{
    support::{ApiServer, event},
    table::{Table, quantiles},
    ways::Way,
};
use std::time::{Duration, Instant};

const WATCHES: usize = 100;

/// Each watch is offered `each` events a second, for some seconds.
pub(crate) async fn measure(server: &ApiServer, ways: &[Way], each: &[u32], seconds: u32) {
    let mut table =
        Table::new(&["offered", "way", "delivered", "of those sent", "lag p50, ms", "lag p99, ms", "its processor"]);
    for each in each {
        for way in ways {
            let run = run(server, way, *each, seconds).await;
            let (p50, p99) = quantiles(run.lags);
            let processor = run.cpu.map_or("–".into(), |c| format!("{:.0} %", c * 100.0));
            table.row([
                &format!("{WATCHES} × {each}/s"),
                way.name,
                &format!("{:.0}/s", run.delivered as f64 / run.took),
                &format!("{} of {}", run.delivered, run.sent),
                &format!("{p50:.1}"),
                &format!("{p99:.1}"),
                &processor,
            ]);
        }
    }
    table.print();
}

struct Run {
    sent: usize,
    delivered: usize,
    /// Seconds from the first sent to the last delivered.
    took: f64,
    lags: Vec<Duration>,
    /// Processors that the process on the way kept busy.
    cpu: Option<f64>,
}

async fn run(server: &ApiServer, way: &Way, each: u32, seconds: u32) -> Run {
    let events = (each * seconds) as usize;
    let origin = Instant::now();
    let mut readers = Vec::new();
    let mut feeds = Vec::new();
    for _ in 0..WATCHES {
        let mut watch = way.client.watch().await.expect("the watch opens");
        feeds.push(server.next_watch().await);
        readers.push(tokio::spawn(async move {
            let mut lags = Vec::with_capacity(events);
            while let Ok(Some(line)) = watch.line().await {
                let sent = sent_at(&line).expect("the event says when it was sent");
                lags.push(origin.elapsed().saturating_sub(sent));
            }
            lags
        }));
    }
    let cpu = way.process.as_ref().map(|p| p.cpu());
    let begun = Instant::now();
    // One event to every watch on each tick.
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / each);
    for _ in 0..events {
        ticks.tick().await;
        for feed in &feeds {
            let now = origin.elapsed().as_nanos() as u64;
            // A watch that broke is missed in what is delivered.
            let _ = feed.send(event("MODIFIED", "p", now).into());
        }
    }
    drop(feeds);
    let mut lags = Vec::with_capacity(events * WATCHES);
    for reader in readers {
        lags.extend(reader.await.expect("no reader panics"));
    }
    let took = begun.elapsed().as_secs_f64();
    let cpu = way.process.as_ref().zip(cpu).map(|(p, before)| p.cpu().saturating_sub(before).as_secs_f64() / took);
    Run { sent: events * WATCHES, delivered: lags.len(), took, lags, cpu }
}

fn sent_at(line: &str) -> Option<Duration> {
    let (_, rest) = line.split_once(r#""resourceVersion":""#)?;
    Some(Duration::from_nanos(rest.split('"').next()?.parse().ok()?))
}
