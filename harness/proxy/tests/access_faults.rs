//! Faults on who may ask, how often and over which connection, and on what lists and discovery say.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use http::{Method, Version};
use serde_json::{Value, json};
use spiritlevel_model::{
    Period,
    fault::{Action, At, Moment},
};
use support::{CONFIGMAPS, PODS, VERSIONS, World, soon};

const SERVICES: &str = "/api/v1/namespaces/a/services";

fn url_of(world: &World, n: usize) -> String {
    world.server.state.urls.lock().unwrap()[n].clone()
}

#[tokio::test]
async fn a_token_that_expired_is_refused_until_another_comes_or_heal() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        assert_eq!(client.get_as(CONFIGMAPS, "old").await, Ok(200));
        world.script.fire(Action::ExpireToken {}, At::BeforeSend);
        assert_eq!(client.get_as(CONFIGMAPS, "old").await, Ok(401), "{version:?}");
        assert_eq!(world.script.performed(), ["expireToken"], "somebody renews it");
        assert_eq!(client.get_as(CONFIGMAPS, "old").await, Ok(401));
        assert_eq!(client.get_as(CONFIGMAPS, "new").await, Ok(200));
        world.script.until_count("reply Forged(401) by f", 2).await;
        assert_eq!(world.script.performed(), ["expireToken"], "once");
        world.script.heal("f");
        soon("the old token", async {
            while client.get_as(CONFIGMAPS, "old").await != Ok(200) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_renewed_token_leaves_the_old_one_some_time() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_2);
    world.script.fire(Action::RotateToken { overlap: Period::millis(50) }, At::BeforeSend);
    assert_eq!(client.get_as(CONFIGMAPS, "old").await, Ok(200));
    assert_eq!(world.script.performed(), ["rotateToken"]);
    soon("the end of the old token", async {
        while client.get_as(CONFIGMAPS, "old").await != Ok(401) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(client.get_as(CONFIGMAPS, "new").await, Ok(200));
}

#[tokio::test]
async fn what_comes_too_often_is_told_to_come_back() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        let mut statuses = Vec::new();
        for _ in 0..3 {
            // Far less than a second, or the test fails here: all three are of one second.
            world.script.fire(Action::Throttle { per_second: 2 }, At::BeforeSend);
            let response = client.send(Method::GET, CONFIGMAPS, "").await.unwrap();
            let back = response.headers().get("retry-after").map(|v| v.to_str().unwrap().to_owned());
            statuses.push((response.status().as_u16(), back));
        }
        assert_eq!(statuses, [(200, None), (200, None), (429, Some("1".into()))], "{version:?}");
    }
}

#[tokio::test]
async fn a_permission_is_gone_in_the_words_of_rbac() {
    let world = World::new().await;
    world.script.fire(Action::DenyVerb {}, At::BeforeSend);
    let (status, body) = world.client(Version::HTTP_2).get(CONFIGMAPS).await.unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, body["reason"].as_str()), (403, Some("Forbidden")));
    assert!(body["message"].as_str().unwrap().contains("cannot"), "{body}");
}

#[tokio::test]
async fn a_connection_takes_no_further_request_and_what_is_open_goes_on() {
    for version in VERSIONS {
        let world = World::new().await;
        let client = world.client(version);
        let mut watch = client.watch().await.unwrap();
        let feed = world.server.next_watch().await;
        world.script.fire(Action::Goaway {}, At::BeforeSend);
        let response = client.send(Method::GET, CONFIGMAPS, "").await.unwrap();
        assert_eq!(response.status(), 200);
        if version == Version::HTTP_11 {
            assert_eq!(response.headers()["connection"], "close");
        }
        drop(response);
        // This client gives up a request that it had not sent yet, where others take another connection by themselves.
        soon("an answer over another connection", async {
            while !matches!(client.get(CONFIGMAPS).await, Ok((200, _))) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        feed.send(support::event("MODIFIED", "a", 6).into()).unwrap();
        assert_eq!(watch.next().await, "a", "{version:?}");
        world.script.until(r#"fault f Effect { what: "the connection takes no further request" }"#).await;
    }
}

#[tokio::test]
async fn a_list_is_empty_and_an_error_stays_one() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_2);
    world.script.fire(Action::EmptyList {}, At::BeforeSend);
    let (status, body) = client.get(SERVICES).await.unwrap();
    let expected = json!({"kind": "ServiceList", "metadata": {"resourceVersion": "7"}, "items": []});
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (200, expected));
    world.script.until(r#"fault f Effect { what: "list services in a was answered empty" }"#).await;
    world.script.fire(Action::EmptyList {}, At::BeforeSend);
    assert_eq!(client.get("/api/v1/namespaces/a/services/missing").await.unwrap().0, 404);
}

#[tokio::test]
async fn a_group_is_in_no_form_of_discovery() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_2);
    let gone = || Action::DiscoveryFailure { group: "db.example.com".into() };
    world.script.fire(gone(), At::BeforeSend);
    let response = client.send(Method::GET, "/apis", "").await.unwrap();
    assert!(!response.headers().contains_key("etag"), "or a client would go on using what it has");
    world.script.fire(gone(), At::BeforeSend);
    let (_, body) = client.get("/apis").await.unwrap();
    let expected = json!({"kind": "APIGroupList", "groups": [{"name": "apps"}]});
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    world.script.fire(gone(), At::BeforeSend);
    assert_eq!(client.get_with("/apis", "if-none-match", "\"1\"").await, Ok(200));
    let (_, headers, _) = world.server.state.requests.lock().unwrap().last().unwrap().clone();
    assert!(!headers.contains_key("if-none-match"), "or nothing would have changed");
    world.script.fire(gone(), At::BeforeSend);
    assert_eq!(client.get("/apis/db.example.com/v1").await, Ok((404, "404 page not found\n".into())));
}

#[tokio::test]
async fn a_request_is_sent_into_the_past_and_the_answer_says_so() {
    let world = World::new().await;
    let client = world.client(Version::HTTP_2);
    let stale = || Action::StaleView { at: Moment::Step("s".into()), kinds: Vec::new(), until: None };
    world.script.rewrite("resourceVersion", "5");
    world.script.rewrite("resourceVersionMatch", "Exact");
    world.script.fire(stale(), At::BeforeSend);
    assert_eq!(client.get(&format!("{SERVICES}?limit=500&resourceVersion=0")).await.unwrap().0, 200);
    assert_eq!(url_of(&world, 0), format!("GET {SERVICES}?limit=500&resourceVersion=5&resourceVersionMatch=Exact"));
    let told = r#"fault f Effect { what: "list services in a was answered as of resourceVersion 5" }"#;
    world.script.until(told).await;

    world.script.fire_on_watch(stale(), At::BeforeSend);
    let initial = format!("{PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    let (status, body) = client.get(&initial).await.unwrap();
    assert_eq!((status, body.contains("sendInitialEvents is forbidden")), (422, true), "so that it lists");
}

#[tokio::test]
async fn a_shortened_watch_has_an_effect_when_it_ends() {
    let world = World::new().await;
    world.script.rewrite("timeoutSeconds", "1");
    world.script.fire_on_watch(Action::ShortWatch { timeout: Period::secs(1) }, At::BeforeSend);
    let mut watch = world.client(Version::HTTP_2).watch().await.unwrap();
    let feed = world.server.next_watch().await;
    assert!(url_of(&world, 0).ends_with("&timeoutSeconds=1"));
    assert!(!world.script.told().iter().any(|t| t.contains("Effect")));
    drop(feed);
    assert_eq!(watch.next().await, "end");
    world.script.until(r#"fault f Effect { what: "the watch of pods ended early" }"#).await;
}

#[tokio::test]
async fn a_decision_can_know_what_a_write_would_make_and_nothing_is_stored_for_it() {
    let world = World::new().await;
    world.script.ask_for_outcomes();
    let client = world.client(Version::HTTP_2);
    let path = format!("{CONFIGMAPS}/x");
    client.whole(Method::PUT, &format!("{path}?fieldManager=m"), r#"{"metadata":{"name":"x"}}"#).await.unwrap();
    let (stored, outcome) = world.script.foreseen();
    assert_eq!(stored.unwrap()["metadata"]["resourceVersion"], "7");
    assert_eq!(outcome.unwrap()["data"]["n"], "new");
    let urls = world.server.state.urls.lock().unwrap().clone();
    let expected = ["GET", "PUT", "PUT"].map(|m| match m {
        "GET" => format!("GET {path}"),
        _ => format!("PUT {path}?fieldManager=m"),
    });
    assert_eq!(urls, [expected[0].clone(), format!("{}&dryRun=All", expected[1]), expected[2].clone()]);
    assert_eq!(world.server.commits(), 1);

    client.whole(Method::DELETE, &path, "").await.unwrap();
    let (stored, outcome) = world.script.foreseen();
    assert!(stored.is_some() && stored == outcome, "a delete makes nothing");
    assert_eq!(world.server.commits(), 2);
}
