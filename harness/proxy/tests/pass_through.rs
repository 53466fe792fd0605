//! Without a fault the proxy changes nothing, and records everything.

mod support;

use bytes::Bytes;
use http::{Method, Version};
use http_body_util::BodyExt;
use std::sync::atomic::Ordering;
use support::{CONFIGMAPS, PODS, VERSIONS, World, event, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn reads_and_writes_pass_and_are_recorded() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        assert_eq!(client.get(&format!("{CONFIGMAPS}/x")).await.unwrap().0, 200);
        let body = r#"{"metadata":{"name":"x"},  "data": {}}"#;
        assert_eq!(client.whole(Method::POST, CONFIGMAPS, body).await.unwrap().0, 201);
        assert_eq!(client.get(&format!("{CONFIGMAPS}/missing")).await.unwrap().0, 404);
        assert_eq!(
            world.script.told(),
            [
                "request get configmaps a/x",
                "answer 200 x@7",
                "reply Delivered(200)",
                "request create configmaps a/x",
                "answer 201 x@10",
                "reply Delivered(201)",
                "request get configmaps a/missing",
                "answer 404",
                "reply Delivered(404)",
            ],
            "{version:?}"
        );
        let sent = world.server.state.requests.lock().unwrap()[1].clone();
        assert_eq!(sent.2, body.as_bytes(), "bodies pass untouched");
        let http = if version == Version::HTTP_2 { "2" } else { "1.1" };
        assert!(world.script.speech().iter().all(|s| s.http == http && s.upgrade.is_none()), "{version:?}");
        assert_eq!(world.listener.in_flight(), 0);
    }
}

#[tokio::test]
async fn watch_events_pass_however_they_are_cut_into_chunks() {
    for version in VERSIONS {
        let world = World::new().await;
        let mut watch = world.client(version).watch().await.unwrap();
        let feed = world.server.next_watch().await;
        let text = event("ADDED", "p1", 6) + &event("MODIFIED", "p1", 7) + &event("DELETED", "pé", 8);
        for chunk in text.as_bytes().chunks(7) {
            feed.send(Bytes::copy_from_slice(chunk)).unwrap();
        }
        let mut lines = Vec::new();
        for _ in 0..3 {
            lines.push(soon("an event", watch.line()).await.unwrap().unwrap());
        }
        assert_eq!(lines.join("\n") + "\n", text, "bytes pass untouched");
        assert_eq!(world.listener.streams().len(), 1);
        drop(feed);
        assert_eq!(watch.next().await, "end");
        world.script.until("closed").await;
        assert_eq!(
            world.script.told(),
            [
                "request watch pods in a",
                "answer 200",
                "opened pods",
                "reply Delivered(200)",
                "frame Added p1 Delivered",
                "frame Modified p1 Delivered",
                "frame Deleted pé Delivered",
                "closed Server",
            ],
            "{version:?}"
        );
        assert!(world.listener.streams().is_empty());
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_watch_at_the_server() {
    for version in VERSIONS {
        let world = World::new().await;
        let watch = world.client(version).watch().await.unwrap();
        let feed = world.server.next_watch().await;
        drop(watch);
        world.script.until("closed Client").await;
        soon("the server's end", feed.closed()).await;
    }
}

#[tokio::test]
async fn a_long_list_is_never_held_back() {
    for version in VERSIONS {
        let world = World::new().await;
        let url = "/api/v1/namespaces/a/secrets";
        let response = soon("the first byte", world.client(version).send(Method::GET, url, "")).await.unwrap();
        let mut body = response.into_body();
        let mut length = 0;
        while length < 4 << 20 {
            length += soon("half of the list", body.frame()).await.unwrap().unwrap().data_ref().unwrap().len();
        }
        assert_eq!(world.listener.in_flight(), 1);
        world.server.state.let_list_go.notify_one();
        while let Some(frame) = soon("the rest of the list", body.frame()).await {
            length += frame.unwrap().data_ref().unwrap().len();
        }
        assert_eq!(length, 8 << 20);
        world.script.until("reply Delivered(200)").await;
        assert_eq!(world.listener.in_flight(), 0);
    }
}

#[tokio::test]
async fn a_write_without_its_client_goes_on_and_is_recorded() {
    for version in VERSIONS {
        let world = World::new().await;
        world.server.state.slow_writes.store(true, Ordering::SeqCst);
        let client = world.client(version);
        let post =
            tokio::spawn(async move { client.whole(Method::POST, CONFIGMAPS, r#"{"metadata":{"name":"x"}}"#).await });
        world.script.until("request create").await;
        soon("the write at the server", async {
            while world.server.state.requests.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        post.abort();
        let _ = post.await;
        world.listener.drop_connections();
        world.server.state.let_write_go.notify_one();
        world.script.until("reply Gone").await;
        assert_eq!(world.script.told()[1], "answer 201 x@10");
    }
}

#[tokio::test]
async fn objects_are_asked_for_as_json() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_2);
    for (path, asked, sent) in [
        (format!("{CONFIGMAPS}/x"), "application/vnd.kubernetes.protobuf, */*", Some("application/json")),
        (
            PODS.into(),
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("application/json;as=Table;v=v1;g=meta.k8s.io"),
        ),
        ("/openapi/v2".into(), "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", None),
    ] {
        client.get_with(&path, "accept", asked).await.unwrap();
        let headers = world.server.state.requests.lock().unwrap().last().unwrap().1.clone();
        assert_eq!(headers["accept"], sent.unwrap_or(asked), "{path}");
        assert_eq!(
            world.script.speech().last().unwrap().accept.as_deref(),
            Some(asked),
            "recorded as the client said it"
        );
    }
}

#[tokio::test]
async fn upgraded_connections_are_tunnelled() {
    let world = World::new().await;
    let mut tls = support::tls(world.proxy.ca_pem());
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let tcp = tokio::net::TcpStream::connect(world.listener.address()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(tls));
    let mut stream = connector.connect("kubernetes.default.svc".try_into().unwrap(), tcp).await.unwrap();
    let request =
        format!("POST {PODS}/p/exec?command=ls HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon("the answer", stream.read_u8()).await.unwrap());
    }
    assert!(String::from_utf8_lossy(&head).starts_with("HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream.write_all(b"hello").await.unwrap();
    let mut echo = [0; 5];
    soon("the echo", stream.read_exact(&mut echo)).await.unwrap();
    assert_eq!(&echo, b"hello");
    world.listener.shut(spiritlevel_model::fault::PartitionAs::Refuse, "f");
    assert!(soon("the reset", stream.read_u8()).await.is_err(), "a partition reaches tunnels");
}

#[tokio::test]
async fn a_watch_over_websocket_is_asked_for_again_as_a_plain_stream() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_11);
    let path = format!("{PODS}?watch=true");
    let response = client.send_upgrade(&path, "websocket").await.unwrap();
    // As fabric8's client falls back: 200, and all of it is there.
    assert_eq!(response.status(), 200);
    let body = soon("the end of the answer", response.into_body().collect()).await.unwrap();
    assert!(body.to_bytes().is_empty());
    assert!(world.server.state.requests.lock().unwrap().is_empty(), "the API server has no stream that nobody reads");
    assert_eq!(world.script.speech()[0].upgrade.as_deref(), Some("websocket"), "that the client asked for it is known");
    let _watch = client.watch().await.unwrap();
    world.script.until("opened pods").await;
}

#[tokio::test]
async fn two_hundred_watches_at_once() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        let mut watches = Vec::new();
        let mut feeds = Vec::new();
        for _ in 0..200 {
            watches.push(soon("a watch", client.watch()).await.unwrap());
            feeds.push(world.server.next_watch().await);
        }
        assert_eq!(world.listener.streams().len(), 200);
        for (i, feed) in feeds.iter().enumerate() {
            feed.send(event("ADDED", &format!("p{i}"), 6).into()).unwrap();
        }
        let mut names = Vec::new();
        for watch in &mut watches {
            names.push(watch.next().await);
        }
        let expected: Vec<String> = (0..200).map(|i| format!("p{i}")).collect();
        assert_eq!(names, expected, "{version:?}");
    }
}

#[tokio::test]
async fn a_dead_api_server_is_dead_never_502() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        let mut watch = client.watch().await.unwrap();
        let _feed = world.server.next_watch().await;
        world.server.kill();
        assert_eq!(watch.next().await, "broken", "{version:?}");
        assert!(soon("an end", client.get(CONFIGMAPS)).await.is_err());
        world.script.until("answer none").await;
        world.script.until("reply Broken").await;
        let refused = async {
            while !client.get(CONFIGMAPS).await.unwrap_err().contains("refused") {
                tokio::task::yield_now().await;
            }
        };
        soon("refused connections", refused).await;
        world.server.revive().await;
        let back = async {
            while client.get(&format!("{CONFIGMAPS}/x")).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        soon("the server's return", back).await;
    }
}
