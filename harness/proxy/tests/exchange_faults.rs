//! Each fault on an exchange, over both HTTP versions: what the client sees, what the server did, what is recorded.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use http::{Method, Version};
use spiritlevel_model::{
    Period,
    fault::{Action, At, DisconnectAs, PartitionAs, Signal, Until},
};
use std::{sync::atomic::Ordering, time::Duration};
use support::{CONFIGMAPS, VERSIONS, World, soon};

const BODY: &str = r#"{"metadata":{"name":"x","resourceVersion":"5"}}"#;

fn reject(status: u16) -> Action {
    Action::Reject { status, reason: None, retry_after: None, message: None, by: None, named: None }
}

fn disconnect(how: DisconnectAs) -> Action {
    Action::Disconnect { how }
}

/// `status REASON` or `broken`.
fn seen(result: Result<(u16, String), String>) -> String {
    match result {
        Ok((status, body)) => {
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            match body["reason"].as_str() {
                Some(reason) => format!("{status} {reason}"),
                None => status.to_string(),
            }
        }
        Err(_) => "broken".into(),
    }
}

struct Case {
    action: Action,
    at: At,
    client: &'static str,
    commits: u64,
    /// After `request create configmaps a/x`.
    told: &'static [&'static str],
}

#[tokio::test]
async fn what_a_client_sees_of_each_fault() {
    use At::{AfterCommit, AfterReply, BeforeSend};
    const CUT: &str = r#"fault f Effect { what: "the exchange was cut off" }"#;
    const E504: &str = r#"fault f Effect { what: "the request was answered 504" }"#;
    const E409: &str = r#"fault f Effect { what: "the request was answered 409" }"#;
    const DONE: &str = "answer 201 x@10";
    const RELEASED: &str = r#"fault f Released { request: Some(RequestId(1)), by: "1ms" }"#;
    let cases = [
        Case {
            action: reject(409),
            at: BeforeSend,
            client: "409 Conflict",
            commits: 0,
            told: &[E409, "reply Forged(409) by f"],
        },
        Case {
            action: reject(409),
            at: AfterCommit,
            client: "409 Conflict",
            commits: 1,
            told: &[DONE, E409, "reply Forged(409) by f"],
        },
        Case {
            action: disconnect(DisconnectAs::Reset),
            at: BeforeSend,
            client: "broken",
            commits: 0,
            told: &[CUT, "reply Broken by f"],
        },
        Case {
            action: disconnect(DisconnectAs::Reset),
            at: AfterCommit,
            client: "broken",
            commits: 1,
            told: &[DONE, CUT, "reply Broken by f"],
        },
        Case {
            action: disconnect(DisconnectAs::Timeout504),
            at: BeforeSend,
            client: "504 Timeout",
            commits: 0,
            told: &[E504, "reply Forged(504) by f"],
        },
        Case {
            action: disconnect(DisconnectAs::Timeout504),
            at: AfterCommit,
            client: "504 Timeout",
            commits: 1,
            told: &[DONE, E504, "reply Forged(504) by f"],
        },
        Case {
            action: Action::Delay { by: Period::millis(1) },
            at: BeforeSend,
            client: "201",
            commits: 1,
            told: &[RELEASED, DONE, "reply Delivered(201)"],
        },
        Case {
            action: Action::Delay { by: Period::millis(1) },
            at: AfterCommit,
            client: "201",
            commits: 1,
            told: &[DONE, RELEASED, "reply Delivered(201)"],
        },
        Case {
            action: Action::Mark {},
            at: AfterCommit,
            client: "201",
            commits: 1,
            told: &[DONE, "reply Delivered(201)"],
        },
        Case {
            action: Action::Mark {},
            at: AfterReply,
            client: "201",
            commits: 1,
            told: &[DONE, "reply Delivered(201)"],
        },
        Case {
            action: Action::Pause { lasts: Period::secs(1) },
            at: AfterCommit,
            client: "201",
            commits: 1,
            told: &[DONE, "reply Delivered(201)"],
        },
    ];
    for version in VERSIONS {
        for case in &cases {
            let world = World::new().await;
            world.script.fire(case.action.clone(), case.at);
            let label = format!("{version:?} {:?} {:?}", case.action, case.at);
            let result = soon(&label, world.client(version).whole(Method::POST, CONFIGMAPS, BODY)).await;
            assert_eq!(seen(result), case.client, "{label}");
            world.script.until("reply").await;
            assert_eq!(world.server.commits(), case.commits, "{label}");
            assert_eq!(world.script.told()[1..], *case.told, "{label}");
            if matches!(case.action, Action::Mark {} | Action::Pause { .. }) {
                world.script.until_performed(case.action.name()).await;
            }
            assert_eq!(
                seen(soon("the next", world.client(version).whole(Method::POST, CONFIGMAPS, BODY)).await),
                "201",
                "once"
            );
        }
    }
}

#[tokio::test]
async fn a_cut_exchange_leaves_the_others_of_an_http2_connection_alone() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_2);
    let mut watch = client.watch().await.unwrap();
    let feed = world.server.next_watch().await;
    world.script.fire(disconnect(DisconnectAs::Reset), At::AfterCommit);
    let error = client.whole(Method::POST, CONFIGMAPS, BODY).await.unwrap_err();
    assert!(error.contains("INTERNAL_ERROR") || error.contains("unexpected internal error"), "{error}");
    feed.send(support::event("ADDED", "p", 6).into()).unwrap();
    assert_eq!(watch.next().await, "p");
}

#[tokio::test]
async fn a_lost_request_over_http1_is_a_tcp_reset() {
    let world = World::new().await;
    world.script.fire(disconnect(DisconnectAs::Reset), At::BeforeSend);
    let error = world.client(Version::HTTP_11).whole(Method::POST, CONFIGMAPS, BODY).await.unwrap_err();
    assert!(error.to_lowercase().contains("reset"), "{error}");
}

#[tokio::test]
async fn a_hang_lasts_until_the_client_goes_or_it_is_healed() {
    for version in VERSIONS {
        for at in [At::BeforeSend, At::AfterCommit] {
            let world = World::new().await;
            world.script.fire(disconnect(DisconnectAs::Hang), at);
            let client = world.client(version);
            let request = client.whole(Method::POST, CONFIGMAPS, BODY);
            assert!(tokio::time::timeout(Duration::from_millis(200), request).await.is_err(), "{version:?} {at:?}");
            world.script.until(r#"fault f Effect { what: "the client gave up" }"#).await;
            world.script.until("reply Gone").await;
            assert_eq!(world.server.commits(), u64::from(at == At::AfterCommit));

            world.script.fire(disconnect(DisconnectAs::Hang), at);
            let client = world.client(version);
            let request = tokio::spawn(async move { client.whole(Method::POST, CONFIGMAPS, BODY).await });
            world.script.until_count("request create", 2).await;
            world.script.heal("f");
            assert!(soon("the end of the hang", request).await.unwrap().is_err());
            world.script.until("reply Broken by f").await;
        }
    }
}

#[tokio::test]
async fn a_timeout_ends_as_504_when_it_is_healed() {
    let world = World::new().await;
    world.script.fire(disconnect(DisconnectAs::Timeout), At::AfterCommit);
    world.script.heal("f");
    assert_eq!(seen(world.client(Version::HTTP_2).whole(Method::POST, CONFIGMAPS, BODY).await), "504 Timeout");
    assert_eq!(world.server.commits(), 1);
}

#[tokio::test]
async fn a_conflict_is_the_servers_own() {
    for version in VERSIONS {
        let world = World::new().await;
        world.script.fire(Action::Conflict {}, At::BeforeSend);
        world.server.state.conflict.store(true, Ordering::SeqCst);
        let url = format!("{CONFIGMAPS}/x");
        assert_eq!(seen(world.client(version).whole(Method::PUT, &url, BODY).await), "409 Conflict");
        assert_eq!(world.script.performed(), ["conflict"]);
        assert_eq!(
            world.script.told(),
            [
                "request update configmaps a/x",
                "answer 409 x@0",
                r#"fault f Effect { what: "the API server answered 409" }"#,
                "reply Delivered(409) by f",
            ]
        );
        world.script.fire(Action::Conflict {}, At::BeforeSend);
        assert_eq!(seen(world.client(version).whole(Method::PUT, &url, BODY).await), "200");
        assert!(!world.script.told().last().unwrap().contains("by f"), "no 409, no effect");
    }
}

#[tokio::test]
async fn a_hold_waits_for_its_condition() {
    for version in VERSIONS {
        for at in [At::BeforeSend, At::AfterCommit] {
            let world = World::new().await;
            world.script.fire(Action::Hold { until: Until::Step("s".into()) }, at);
            let client = world.client(version);
            let request = tokio::spawn(async move { client.whole(Method::POST, CONFIGMAPS, BODY).await });
            world.script.until(if at == At::BeforeSend { "request" } else { "answer 201" }).await;
            assert_eq!(world.server.commits(), u64::from(at == At::AfterCommit));
            assert_eq!(world.listener.in_flight(), 1);
            world.script.heal("f");
            assert_eq!(seen(soon("the held exchange", request).await.unwrap()), "201");
            world.script.until(r#"fault f Released { request: Some(RequestId(1)), by: "condition" }"#).await;
            assert_eq!(world.server.commits(), 1);
        }
    }
}

#[tokio::test]
async fn a_crash_lets_nothing_of_the_dead_process_pass() {
    for version in VERSIONS {
        for (at, commits) in [(At::BeforeSend, 0), (At::AfterCommit, 1), (At::AfterReply, 1)] {
            let label = format!("{version:?} {at:?}");
            let world = World::new().await;
            let client = world.client(version);
            let mut watch = client.watch().await.unwrap();
            let _feed = world.server.next_watch().await;
            world.script.fire(Action::Crash { signal: Signal::Kill, restart_after: None }, at);
            let first = {
                let client = client.clone();
                tokio::spawn(async move { client.whole(Method::POST, CONFIGMAPS, BODY).await })
            };
            world.script.until_performed("crash").await;
            // While it dies, what it still sends waits at the gate.
            let second = tokio::spawn(async move { client.whole(Method::POST, CONFIGMAPS, BODY).await });
            let arrived = async {
                while world.listener.in_flight() < if at == At::AfterReply { 1 } else { 2 } {
                    tokio::task::yield_now().await;
                }
            };
            soon("the second request at the gate", arrived).await;
            world.script.heal("killed");
            let first = soon("the end of the first", first).await.unwrap();
            assert_eq!(first.is_ok(), at == At::AfterReply, "{label}");
            assert!(soon("the end of the second", second).await.unwrap().is_err(), "{label}");
            assert_eq!(watch.next().await, "broken", "{label}");
            world.script.until("closed Client").await;
            assert_eq!(world.server.commits(), commits, "{label}");
            let creates = world.script.told().iter().filter(|t| t.starts_with("request create")).count();
            assert_eq!(creates, 1, "{label}: the second never arrived");
            assert_eq!(
                seen(world.client(version).get(&format!("{CONFIGMAPS}/x")).await),
                "200",
                "its successor passes"
            );
        }
    }
}

#[tokio::test]
async fn a_partition_can_begin_at_an_exchange() {
    for version in VERSIONS {
        for (at, commits) in [(At::BeforeSend, 0), (At::AfterCommit, 1)] {
            let world = World::new().await;
            world.script.fire(Action::Partition { how: PartitionAs::Refuse }, at);
            let client = world.client(version);
            assert!(soon("an end", client.whole(Method::POST, CONFIGMAPS, BODY)).await.is_err());
            world.script.until("reply Broken by f").await;
            assert_eq!(world.server.commits(), commits, "{version:?} {at:?}");
            assert!(soon("refusal", client.get(CONFIGMAPS)).await.unwrap_err().contains("refused"));
            world.listener.open();
            assert_eq!(seen(soon("the healed path", client.get(&format!("{CONFIGMAPS}/x"))).await), "200");
        }
    }
}

#[tokio::test]
async fn an_actors_gate_holds_new_requests_and_lets_old_ones_end() {
    let world = World::new().await;
    world.server.state.slow_writes.store(true, Ordering::SeqCst);
    let client = world.client(Version::HTTP_2);
    let ask = |client: support::Client| tokio::spawn(async move { client.whole(Method::POST, CONFIGMAPS, BODY).await });
    let old = ask(client.clone());
    world.script.until("request create").await;
    world.listener.close_gate();
    let new = ask(client);
    soon("two requests", async {
        while world.listener.in_flight() < 2 || world.server.state.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    world.server.state.let_write_go.notify_one();
    assert_eq!(seen(soon("the old one", old).await.unwrap()), "201");
    assert_eq!(world.script.told().len(), 3, "the new one has not been let in");
    world.listener.open_gate();
    world.script.until_count("request create", 2).await;
    world.server.state.let_write_go.notify_one();
    assert_eq!(seen(soon("the new one", new).await.unwrap()), "201");
}
