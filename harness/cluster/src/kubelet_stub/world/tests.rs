//! What the stub makes of news that come late, twice, or in the wrong order.

use std::time::Duration;

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use serde_json::json;

use super::{Change, Key, News, Now, World};
use crate::kubelet_stub::{
    action::{Action, Write},
    cache::Listing,
    rules::{KubeletRules, PodPhase, PodState},
};

#[test]
fn nothing_is_known_before_every_kind_was_listed() {
    let mut world = World::default();
    assert_eq!(world.busy("ns", at(0)), ["the kubelet stub has not yet listed pods, claims and volumes"]);
    let mut world = listed(Vec::new());
    assert_eq!(world.busy("ns", at(0)), Vec::<String>::new());
    world.distrust();
    assert!(!world.busy("ns", at(0)).is_empty());
}

#[test]
fn time_counts_from_the_stage_not_from_the_last_event() {
    let mut world = listed(vec![pod("a", "uid-1", 1, Some("spiritlevel-node"))]);
    assert_eq!(world.busy("ns", at(150)), ["pod a: starting"]);
    let mut touched = pod("a", "uid-1", 2, Some("spiritlevel-node"));
    touched.metadata.annotations = Some([("touched".to_owned(), "yes".to_owned())].into());
    world.hear(News::Pod(Change::Applied(Box::new(touched))), at(150));
    assert!(matches!(world.next(&key("a"), at(200)), Action::Write(Write::PodStatus { .. })));
    assert_eq!(world.busy("elsewhere", at(200)), Vec::<String>::new());
}

#[test]
fn an_old_version_replaces_no_newer_one() {
    let mut world = listed(vec![pod("a", "uid-1", 5, Some("spiritlevel-node"))]);
    assert!(world.hear(News::Pod(Change::Applied(Box::new(pod("a", "uid-1", 4, None)))), at(0)).is_empty());
    assert!(matches!(world.next(&key("a"), at(0)), Action::Wait(..)));
}

#[test]
fn the_dead_stay_dead() {
    let first = pod("a", "uid-1", 5, None);
    let mut world = listed(vec![first.clone()]);
    world.hear(News::Pod(Change::Deleted(Box::new(first))), at(0));
    // The answer to a read that was under way.
    world.hear(News::Pod(Change::Applied(Box::new(pod("a", "uid-1", 6, None)))), at(0));
    assert!(matches!(world.next(&key("a"), at(0)), Action::Rest));
    world.hear(News::Pod(Change::Applied(Box::new(pod("a", "uid-2", 7, None)))), at(0));
    assert!(matches!(world.next(&key("a"), at(0)), Action::Write(Write::Bind { uid }) if uid == "uid-2"));
}

#[test]
fn a_listing_continues_history_or_replaces_it() {
    let mut world = listed(vec![pod("a", "uid-1", 5, Some("spiritlevel-node"))]);
    let older = || vec![pod("a", "uid-1", 4, None)];
    world.hear(News::Pod(Change::Listed(older(), Listing::Continues)), at(0));
    assert!(matches!(world.next(&key("a"), at(0)), Action::Wait(..)));
    world.hear(News::Pod(Change::Listed(older(), Listing::Replaces)), at(0));
    assert!(matches!(world.next(&key("a"), at(0)), Action::Write(Write::Bind { .. })));
    world.hear(News::Pod(Change::Listed(Vec::new(), Listing::Continues)), at(0));
    assert!(matches!(world.next(&key("a"), at(0)), Action::Rest));
}

#[test]
fn an_end_is_for_one_pod_and_a_stay_for_the_name() {
    let (ended, stuck) = (PodState::Evicted, PodState::Phase(PodPhase::Pending));
    let name = |name: &str| ("ns".to_owned(), name.to_owned());
    let mut world = listed(Vec::new());
    world.set_pod(name("a"), Some(ended));
    world.set_pod(name("b"), Some(stuck));
    for (uid, version) in [("1", 1), ("2", 3)] {
        for pod_name in ["a", "b"] {
            let uid = format!("{pod_name}-{uid}");
            world.hear(
                News::Pod(Change::Applied(Box::new(pod(pod_name, &uid, version, Some("spiritlevel-node"))))),
                at(0),
            );
        }
        let failed = |action| matches!(action, Action::Write(Write::PodStatus { patch, .. }) if patch["status"]["phase"] == "Failed");
        assert_eq!(failed(world.next(&key("a"), at(200))), version == 1);
        assert!(matches!(world.next(&key("b"), at(200)), Action::Rest));
    }
    world.forget("ns");
    assert!(matches!(world.next(&key("b"), at(200)), Action::Write(Write::PodStatus { .. })));
}

#[test]
fn rules_are_of_a_namespace() {
    let mut world = listed(vec![pod("a", "uid-1", 1, Some("spiritlevel-node"))]);
    let slow = KubeletRules { pod_ready_after: Duration::from_secs(60), ..KubeletRules::default() };
    world.set_rules("elsewhere", slow.clone());
    assert!(matches!(world.next(&key("a"), at(200)), Action::Write(_)));
    world.set_rules("ns", slow);
    assert!(matches!(world.next(&key("a"), at(200)), Action::Wait(..)));
}

#[test]
fn a_report_that_the_server_does_not_keep_is_not_repeated() {
    let mut world = listed(vec![pod("a", "uid-1", 1, Some("spiritlevel-node"))]);
    world.settle(key("a"), "1".to_owned());
    assert!(matches!(world.next(&key("a"), at(200)), Action::Rest));
    world.hear(News::Pod(Change::Applied(Box::new(pod("a", "uid-1", 2, Some("spiritlevel-node"))))), at(200));
    assert!(matches!(world.next(&key("a"), at(200)), Action::Write(_)));
}

#[test]
fn only_a_running_pod_can_be_killed() {
    let mut world = listed(vec![pod("a", "uid-1", 1, Some("spiritlevel-node"))]);
    assert!(!world.kill_pod(&("ns".to_owned(), "a".to_owned()), at(0)));
    let mut running = pod("a", "uid-1", 2, Some("spiritlevel-node"));
    let status = json!({
        "phase": "Running",
        "containerStatuses": [{
            "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}},
        }],
    });
    running.status = serde_json::from_value(status).expect("the literal is a status");
    world.hear(News::Pod(Change::Applied(Box::new(running))), at(0));
    assert!(world.kill_pod(&("ns".to_owned(), "a".to_owned()), at(0)));
    assert_eq!(world.busy("ns", at(0)), ["pod a: its container is to die"]);
}

fn listed(pods: Vec<Pod>) -> World {
    let mut world = World::default();
    world.hear(News::Pod(Change::Listed(pods, Listing::Continues)), at(0));
    world.hear(News::Claim(Change::Listed(Vec::new(), Listing::Continues)), at(0));
    world.hear(News::Volume(Change::Listed(Vec::new(), Listing::Continues)), at(0));
    world.hear(News::Class(Change::Listed(Vec::new(), Listing::Continues)), at(0));
    world
}

fn pod(name: &str, uid: &str, version: u32, node: Option<&str>) -> Pod {
    let pod = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string()},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": "Pending"},
    });
    serde_json::from_value(pod).expect("the literal is a Pod")
}

fn key(name: &str) -> Key {
    Key::Pod(("ns".to_owned(), name.to_owned()))
}

fn at(millis: u64) -> Now {
    Now { elapsed: Duration::from_millis(millis), wall: Timestamp::UNIX_EPOCH }
}
