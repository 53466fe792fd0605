//! The follower against a server that refuses on purpose.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, Config};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::follow;
use crate::kubelet_stub::world::{Change, News};

/// Every list succeeds, every watch is answered 410: each listing must be followed by another.
#[tokio::test]
async fn a_watch_answered_410_leads_to_a_new_listing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") && stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {}
            let (status, body) = if String::from_utf8_lossy(&request).contains("watch=true") {
                ("410 Gone", r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"","code":410}"#)
            } else {
                ("200 OK", r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#)
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    // Other tests may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = Config::new(url.parse().expect("a valid address"));
    config.default_retry = false;
    let client = Client::try_from(config).expect("a client without TLS");
    let (out, mut news) = mpsc::channel(8);
    let epoch = watch::Sender::new(0);
    tasks.spawn(follow::<Pod>(Api::all(client), epoch.subscribe(), out, News::Pod));
    for _ in 0..2 {
        let heard = tokio::time::timeout(Duration::from_secs(30), news.recv()).await.expect("a listing in time");
        assert!(matches!(heard, Some(News::Pod(Change::Listed(..)))), "{heard:?}");
    }
}
