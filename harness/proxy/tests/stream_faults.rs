//! Each fault on a watch stream, over both HTTP versions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use http::Version;
use spiritlevel_model::{
    Period,
    fault::{CloseWatch, FrameFate, Until},
};
use support::{CONFIGMAPS, VERSIONS, World, event};

fn send(feed: &tokio::sync::mpsc::UnboundedSender<bytes::Bytes>, names: &[&str]) {
    for (i, name) in names.iter().enumerate() {
        feed.send(event("MODIFIED", name, 6 + i as u64).into()).unwrap();
    }
}

#[tokio::test]
async fn every_way_in_which_a_watch_ends() {
    for version in VERSIONS {
        for (how, seen) in [
            (CloseWatch::Clean, &["a", "b", "end"][..]),
            (CloseWatch::Expire, &["a", "b", "end"]),
            (CloseWatch::Error410, &["a", "b", "ERROR 410", "end"]),
            (CloseWatch::Reset, &["a", "b", "broken"]),
        ] {
            let world = World::new().await;
            world.script.on_frames(move |f| match f.name {
                Some("b") => FrameFate::CloseAfter { fault: "f".into(), how },
                _ => FrameFate::Deliver,
            });
            let mut watch = world.client(version).watch().await.unwrap();
            let feed = world.server.next_watch().await;
            send(&feed, &["a", "b", "c"]);
            for expected in seen {
                assert_eq!(watch.next().await, *expected, "{version:?} {how:?}");
            }
            world.script.until("closed Fault by f").await;
            world.script.until(r#"fault f Effect { what: "ended the watch of pods by operator/0" }"#).await;
            assert!(!world.script.told().iter().any(|t| t.starts_with("frame Modified c")), "{version:?} {how:?}");
            feed.closed().await;
        }
    }
}

#[tokio::test]
async fn a_watch_can_be_ended_from_outside() {
    for version in VERSIONS {
        for (how, seen) in
            [(CloseWatch::Clean, "end"), (CloseWatch::Reset, "broken"), (CloseWatch::Error410, "ERROR 410")]
        {
            let world = World::new().await;
            let mut watch = world.client(version).watch().await.unwrap();
            let feed = world.server.next_watch().await;
            send(&feed, &["a"]);
            assert_eq!(watch.next().await, "a");
            let id = world.listener.streams()[0].id;
            world.listener.end_stream(id, how, "f");
            assert_eq!(watch.next().await, seen, "{version:?} {how:?}");
            world.script.until("closed Fault by f").await;
        }
    }
}

#[tokio::test]
async fn a_withheld_stream_gives_nothing_until_it_is_ended() {
    for version in VERSIONS {
        let world = World::new().await;
        world.script.on_frames(|f| match f.name {
            Some("b") => FrameFate::Withhold { fault: "f".into() },
            _ => FrameFate::Deliver,
        });
        let mut watch = world.client(version).watch().await.unwrap();
        let feed = world.server.next_watch().await;
        send(&feed, &["a", "b", "c"]);
        // Its source ends as after timeoutSeconds: the client must not see that either.
        drop(feed);
        world.script.until("frame Modified c Withheld by f").await;
        assert_eq!(watch.next().await, "a");
        let id = world.listener.streams()[0].id;
        world.listener.end_stream(id, CloseWatch::Error410, "f");
        assert_eq!(watch.next().await, "ERROR 410");
        assert_eq!(watch.next().await, "end");
        let told = world.script.told();
        assert_eq!(
            told[4..],
            [
                "frame Modified a Delivered",
                "frame Modified b Withheld by f",
                r#"fault f Effect { what: "kept MODIFIED pods a/b at 7 from operator/0" }"#,
                "frame Modified c Withheld by f",
                "closed Fault by f",
                r#"fault f Effect { what: "ended the watch of pods by operator/0" }"#,
            ],
            "{version:?}"
        );
    }
}

#[tokio::test]
async fn a_stalled_stream_keeps_what_comes() {
    for version in VERSIONS {
        let world = World::new().await;
        let mut watch = world.client(version).watch().await.unwrap();
        let feed = world.server.next_watch().await;
        let id = world.listener.streams()[0].id;
        world.listener.end_stream(id, CloseWatch::Stall, "f");
        send(&feed, &["a"]);
        world.script.until("frame Modified a Withheld by f").await;
        world.listener.end_stream(id, CloseWatch::Reset, "f");
        assert_eq!(watch.next().await, "broken");
    }
}

#[tokio::test]
async fn a_stalled_connection_answers_nothing_and_ends_by_a_reset() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        let mut watch = client.watch().await.unwrap();
        let feed = world.server.next_watch().await;
        let id = world.listener.streams()[0].id;
        world.listener.end_stream(id, CloseWatch::StallConnection, "f");
        world.script.until(r#"fault f Effect { what: "a connection was stalled" }"#).await;
        send(&feed, &["a"]);
        world.script.until("frame Modified a Delivered").await;
        if version == Version::HTTP_2 {
            // On the same connection nothing of a later request is even read.
            let requests = world.script.told().iter().filter(|t| t.starts_with("request")).count();
            let mut later = Box::pin(client.get(CONFIGMAPS));
            assert!(futures::poll!(&mut later).is_pending());
            tokio::task::yield_now().await;
            assert_eq!(world.script.told().iter().filter(|t| t.starts_with("request")).count(), requests);
        }
        world.listener.end_stream(id, CloseWatch::Reset, "f");
        assert_eq!(watch.next().await, "broken", "{version:?}");
        world.script.until("closed Fault by f").await;
    }
}

#[tokio::test]
async fn an_event_is_given_twice_in_its_place() {
    for version in VERSIONS {
        let world = World::new().await;
        world.script.on_frames(|f| match f.name {
            Some("b") => FrameFate::Duplicate { fault: "f".into() },
            _ => FrameFate::Deliver,
        });
        let mut watch = world.client(version).watch().await.unwrap();
        let feed = world.server.next_watch().await;
        send(&feed, &["a", "b", "c"]);
        for expected in ["a", "b", "b", "c"] {
            assert_eq!(watch.next().await, expected, "{version:?}");
        }
        world.script.until_count("frame Modified b Delivered by f", 2).await;
    }
}

#[tokio::test]
async fn a_dropped_event_is_the_only_one_missing() {
    for version in VERSIONS {
        let world = World::new().await;
        world.script.on_frames(|f| match f.name {
            Some("b") => FrameFate::Drop { fault: "f".into() },
            _ => FrameFate::Deliver,
        });
        let mut watch = world.client(version).watch().await.unwrap();
        let feed = world.server.next_watch().await;
        send(&feed, &["a", "b", "c"]);
        assert_eq!((watch.next().await, watch.next().await), ("a".into(), "c".into()));
        world.script.until(r#"fault f Effect { what: "dropped MODIFIED pods a/b at 7 from operator/0" }"#).await;
    }
}

#[tokio::test]
async fn delayed_events_keep_their_order_and_go_by_condition_or_time() {
    for version in VERSIONS {
        for (by, until) in
            [(None, Some(Until::Step("s".into()))), (Some(Period::millis(30)), None), (Some(Period::secs(3600)), None)]
        {
            let label = format!("{version:?} {by:?} {until:?}");
            let world = World::new().await;
            let fate = FrameFate::Delay { fault: "f".into(), by, until };
            world.script.on_frames(move |f| if f.name == Some("a") { FrameFate::Deliver } else { fate.clone() });
            let mut watch = world.client(version).watch().await.unwrap();
            let feed = world.server.next_watch().await;
            send(&feed, &["a", "b", "c"]);
            world.script.until("frame Modified c Held by f").await;
            assert_eq!(watch.next().await, "a");
            if by != Some(Period::millis(30)) {
                assert!(!world.script.told().iter().any(|t| t.contains("b Delivered")), "{label}");
                world.script.heal("f");
            }
            assert_eq!((watch.next().await, watch.next().await), ("b".into(), "c".into()), "{label}");
            send(&feed, &["d"]);
            assert_eq!(watch.next().await, "d", "{label}");
            world.script.until("fault f Released").await;
            world.script.until("frame Modified c Delivered by f").await;
        }
    }
}

#[tokio::test]
async fn what_is_no_watch_event_passes_unasked() {
    let world = World::new().await;
    let mut watch = world.client(Version::HTTP_2).watch().await.unwrap();
    let feed = world.server.next_watch().await;
    feed.send("nonsense\nno newline".into()).unwrap();
    drop(feed);
    assert_eq!(watch.line().await.unwrap().as_deref(), Some("nonsense"));
    assert_eq!(watch.line().await.unwrap(), None);
}
