//! The path between an actor and the API server is cut, in each way, and healed.

mod support;

use http::{Method, Version};
use spiritlevel_model::fault::PartitionAs;
use std::time::Duration;
use support::{CONFIGMAPS, VERSIONS, World, event, soon};

#[tokio::test]
async fn refused_and_reset_connections_are_real() {
    for version in VERSIONS {
        for (how, error) in [(PartitionAs::Refuse, "refused"), (PartitionAs::Reset, "reset")] {
            let label = format!("{version:?} {how:?}");
            let world = World::new().await;
            let client = world.client(version);
            let mut watch = client.watch().await.unwrap();
            let feed = world.server.next_watch().await;
            world.listener.shut(how, "f");
            assert_eq!(watch.next().await, "broken", "{label}");
            soon("the server's end of the watch", feed.closed()).await;
            for _ in 0..2 {
                let seen = soon("an error", client.get(CONFIGMAPS)).await.unwrap_err();
                assert!(seen.to_lowercase().contains(error), "{label}: {seen}");
            }
            world.script.until("closed Fault by f").await;
            world.script.until(r#"fault f Effect { what: "open connections were reset" }"#).await;
            let address = world.listener.address();
            world.listener.open();
            assert_eq!(
                soon("the healed path", client.get(&format!("{CONFIGMAPS}/x"))).await.unwrap().0,
                200,
                "{label}"
            );
            assert_eq!(world.listener.address(), address);
        }
    }
}

#[tokio::test]
async fn in_a_black_hole_nothing_moves_and_nothing_ends() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        let mut watch = client.watch().await.unwrap();
        let feed = world.server.next_watch().await;
        world.listener.shut(PartitionAs::Blackhole, "f");
        feed.send(event("ADDED", "p", 6).into()).unwrap();
        world.script.until("fault f Effect").await;
        // An open connection and a new one.
        for client in [client.clone(), world.client(version)] {
            let request = client.get(CONFIGMAPS);
            assert!(tokio::time::timeout(Duration::from_millis(200), request).await.is_err(), "{version:?}");
        }
        assert!(tokio::time::timeout(Duration::from_millis(50), watch.line()).await.is_err(), "{version:?}");
        assert_eq!(world.server.state.requests.lock().unwrap().len(), 1, "only the watch");
        assert!(!world.script.told().iter().any(|t| t.starts_with("frame") || t.starts_with("closed")));
        world.listener.open();
        assert_eq!(watch.next().await, "p", "{version:?}");
        assert_eq!(soon("the healed path", client.get(&format!("{CONFIGMAPS}/x"))).await.unwrap().0, 200);
    }
}

#[tokio::test]
async fn on_a_slow_path_everything_comes_late_until_it_is_healed() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        world.listener.shut(PartitionAs::Slow, "f");
        let url = format!("{CONFIGMAPS}/x");
        let begun = std::time::Instant::now();
        assert_eq!(client.get(&url).await.unwrap().0, 200);
        assert!(begun.elapsed() >= Duration::from_secs(2), "{version:?}");
        world.script.until(r#"fault f Effect { what: "an exchange was late" }"#).await;
        let late = tokio::spawn({
            let (client, url) = (client.clone(), url.clone());
            async move { client.get(&url).await }
        });
        world.listener.open();
        assert_eq!(soon("the healed path", late).await.unwrap().unwrap().0, 200);
    }
}

#[tokio::test]
async fn a_write_under_way_is_recorded_when_its_connection_is_reset() {
    for version in VERSIONS {
        let world = World::new().await;
        world.server.state.slow_writes.store(true, std::sync::atomic::Ordering::SeqCst);
        let client = world.client(version);
        let post =
            tokio::spawn(async move { client.whole(Method::POST, CONFIGMAPS, r#"{"metadata":{"name":"x"}}"#).await });
        soon("the write at the server", async {
            while world.server.state.requests.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        world.listener.shut(PartitionAs::Reset, "f");
        assert!(soon("the reset", post).await.unwrap().is_err());
        world.server.state.let_write_go.notify_one();
        world.script.until("reply Broken by f").await;
        assert!(world.script.told().contains(&"answer 201 x@10".into()), "{version:?}");
    }
}

#[tokio::test]
async fn in_an_outage_connections_are_refused_although_the_server_is_there() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        let mut watch = client.watch().await.unwrap();
        world.listener.begin_outage("steps[0]");
        assert_eq!(watch.next().await, "broken", "{version:?}");
        for _ in 0..2 {
            let seen = soon("an error", client.get(CONFIGMAPS)).await.unwrap_err();
            assert!(seen.to_lowercase().contains("refused"), "{version:?}: {seen}");
        }
        world.script.until("closed Fault by steps[0]").await;
        world.listener.end_outage();
        let again = async {
            while client.get(&format!("{CONFIGMAPS}/x")).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        soon("the end of the outage", again).await;
    }
}

#[tokio::test]
async fn a_stopped_listener_is_gone() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_2);
    let mut watch = client.watch().await.unwrap();
    let support::World { listener, script, .. } = world;
    drop(script);
    let listener = std::sync::Arc::into_inner(listener).unwrap();
    soon("the stop", listener.stop()).await;
    assert_eq!(watch.next().await, "broken");
    assert!(client.get(CONFIGMAPS).await.unwrap_err().contains("refused"));
}
