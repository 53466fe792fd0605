//! Long lists: the time of one, and the most memory that the process on the way needed for it.

use crate::{support::ApiServer, support::Client, table::Table, ways};
use http::{Method, Version};
use http_body_util::BodyExt;
use std::time::Instant;

/// Lists of so many objects of 2 KB, each by a new process.
pub(crate) async fn measure(server: &ApiServer, counts: &[usize]) {
    let mut table = Table::new(&["list of", "way", "bytes, MB", "time, ms", "time of direct", "peak memory, MB"]);
    for count in counts {
        let direct = Client::new(&server.url(), &server.ca_pem, Version::HTTP_11);
        let (bytes, d) = list(&direct, *count).await;
        table.row([&count.to_string(), "direct", &megabytes(bytes), &format!("{d:.0}"), "×1.00", "–"]);
        for (name, version) in [("proxy, HTTP/1.1", Version::HTTP_11), ("proxy, HTTP/2", Version::HTTP_2)] {
            let (url, ca_pem, process) = ways::proxy(server);
            let (through, t) = list(&Client::new(&url, &ca_pem, version), *count).await;
            assert_eq!(through, bytes, "the list has changed on its way");
            let memory = format!("{:.1}", process.peak_memory());
            let ratio = format!("×{:.2}", t / d);
            table.row([&count.to_string(), name, &megabytes(bytes), &format!("{t:.0}"), &ratio, &memory]);
        }
    }
    table.print();
}

/// Bytes, and the median time of some lists in ms.
async fn list(client: &Client, count: usize) -> (usize, f64) {
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..5 {
        let begun = Instant::now();
        let url = format!("/api/v1/namespaces/a/pods?count={count}");
        let mut body = client.send(Method::GET, &url, "").await.expect("the server answers").into_body();
        bytes = 0;
        while let Some(frame) = body.frame().await {
            bytes += frame.expect("the list is whole").data_ref().map_or(0, bytes::Bytes::len);
        }
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    (bytes, times[times.len() / 2])
}

fn megabytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
