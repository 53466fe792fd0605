//! Tables: a claim or a volume, and the action that follows.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{next_claim, next_volume, standing};
use crate::kubelet_stub::action::{Action, Write};

#[test]
fn what_the_scheduler_sees_of_a_claim() {
    let check = |claim: Option<Value>, class: Option<Value>, want: Expect| {
        want.assert_eq(&format!("{:?}", standing(parse(claim).as_ref(), parse(class).as_ref(), None)));
    };
    check(None, None, expect!["Missing"]);
    check(Some(pending()), None, expect!["Unbound"]);
    check(Some(pending()), Some(class("Immediate")), expect!["Binding"]);
    check(Some(pending()), Some(class("WaitForFirstConsumer")), expect!["NeedsNode"]);
    let mut selected = pending();
    selected["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!("spiritlevel-node");
    check(Some(selected), Some(class("WaitForFirstConsumer")), expect!["Binding"]);
    let mut nobody = class("Immediate");
    nobody["provisioner"] = json!("kubernetes.io/no-provisioner");
    check(Some(pending()), Some(nobody), expect!["Unbound"]);
    let mut named = pending();
    named["spec"]["volumeName"] = json!("mine");
    check(Some(named), Some(class("Immediate")), expect!["Unbound"]);
    check(Some(bound("1Gi", "1Gi")), None, expect!["Bound"]);
    let mut deleting = bound("1Gi", "1Gi");
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    check(Some(deleting), None, expect!["Deleting"]);
}

#[test]
fn a_volume_is_made_when_the_binder_asks_for_it() {
    check_claim(pending(), Some("Immediate"), None, expect!["await: waits for the persistentvolume-binder"]);
    let mut asked = pending();
    asked["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] = json!("spiritlevel.dev/stub");
    check_claim(
        asked.clone(),
        Some("Immediate"),
        None,
        expect![[
            r#"create {"apiVersion":"v1","kind":"PersistentVolume","metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"spiritlevel.dev/stub"},"name":"pvc-uid-1"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","name":"data","namespace":"ns","resourceVersion":"5","uid":"uid-1"},"csi":{"driver":"stub.spiritlevel.dev","volumeHandle":"pvc-uid-1"},"persistentVolumeReclaimPolicy":"Delete","storageClassName":"standard"}}"#
        ]],
    );
    check_claim(
        asked.clone(),
        Some("Immediate"),
        Some(volume("Pending", "1Gi")),
        expect!["await: waits for the persistentvolume-binder"],
    );
    check_claim(asked, None, None, expect!["rest"]);
    check_claim(pending(), Some("WaitForFirstConsumer"), None, expect!["rest"]);
}

#[test]
fn a_claim_grows_in_three_writes() {
    let now = bound("2Gi", "1Gi");
    check_claim(bound("1024Mi", "1Gi"), None, Some(volume("Bound", "1Gi")), expect!["rest"]);
    check_claim(
        now.clone(),
        None,
        Some(volume("Bound", "1Gi")),
        expect![[
            r#"claim status {"metadata":{"resourceVersion":"5"},"status":{"allocatedResources":{"storage":"2Gi"},"allocatedResourceStatuses":{"storage":"ControllerResizeInProgress"},"conditions":[{"type":"Resizing","status":"True","lastTransitionTime":"2026-11-30T18:00:00Z"}]}}"#
        ]],
    );
    let mut resizing = now;
    resizing["status"]["allocatedResources"] = json!({"storage": "2Gi"});
    resizing["status"]["conditions"] =
        json!([{"type": "Resizing", "status": "True"}, {"type": "example.com/mine", "status": "True"}]);
    check_claim(
        resizing.clone(),
        None,
        Some(volume("Bound", "1Gi")),
        expect![[r#"volume pvc-uid-1 {"metadata":{"resourceVersion":"6"},"spec":{"capacity":{"storage":"2Gi"}}}"#]],
    );
    check_claim(
        resizing,
        None,
        Some(volume("Bound", "2Gi")),
        expect![[
            r#"claim status {"metadata":{"resourceVersion":"5"},"status":{"capacity":{"storage":"2Gi"},"allocatedResources":{"storage":"2Gi"},"allocatedResourceStatuses":{"storage":null},"conditions":[{"status":"True","type":"example.com/mine"}]}}"#
        ]],
    );
}

#[test]
fn a_released_volume_is_reclaimed() {
    let check = |volume: Value, claim: Option<Value>, want: Expect| {
        let volume = serde_json::from_value(volume).expect("the case is a volume");
        want.assert_eq(&render(&next_volume(&volume, parse(claim).as_ref())));
    };
    check(volume("Bound", "1Gi"), Some(bound("1Gi", "1Gi")), expect!["rest"]);
    check(volume("Bound", "1Gi"), None, expect!["await: waits to be released"]);
    check(volume("Released", "1Gi"), None, expect!["delete volume uid-2"]);
    let mut successor = bound("1Gi", "1Gi");
    successor["metadata"]["uid"] = json!("uid-3");
    check(volume("Released", "1Gi"), Some(successor), expect!["delete volume uid-2"]);
    let mut retained = volume("Released", "1Gi");
    retained["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
    check(retained, None, expect!["rest"]);
    let mut by_hand = volume("Released", "1Gi");
    by_hand["metadata"]["annotations"] = json!({});
    check(by_hand, None, expect!["rest"]);
    let mut deleting = volume("Released", "1Gi");
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    check(deleting, None, expect!["await: waits for its protection to be lifted"]);
}

// === the table's frame ===

#[track_caller]
fn check_claim(claim: Value, mode: Option<&str>, volume: Option<Value>, want: Expect) {
    let claim = serde_json::from_value(claim).expect("the case is a claim");
    let now = "2026-11-30T18:00:00Z".parse().expect("a valid time");
    let action = next_claim(&claim, parse(mode.map(class)).as_ref(), parse(volume).as_ref(), now);
    want.assert_eq(&render(&action));
}

fn parse<K: serde::de::DeserializeOwned>(value: Option<Value>) -> Option<K> {
    value.map(|value| serde_json::from_value(value).expect("the case has the form of its kind"))
}

fn render(action: &Action) -> String {
    match action {
        Action::Rest => "rest".to_owned(),
        Action::Await(why) => format!("await: {why}"),
        Action::Write(Write::CreateVolume(volume)) => {
            format!("create {}", serde_json::to_string(volume).expect("a volume is JSON"))
        }
        Action::Write(Write::ClaimStatus { patch }) => format!("claim status {patch}"),
        Action::Write(Write::PatchVolume { name, patch }) => format!("volume {name} {patch}"),
        Action::Write(Write::DeleteVolume { uid }) => format!("delete volume {uid}"),
        other => format!("{other:?}"),
    }
}

fn pending() -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": "data", "uid": "uid-1", "resourceVersion": "5", "annotations": {}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    })
}

fn bound(requested: &str, granted: &str) -> Value {
    let mut claim = pending();
    claim["spec"]["volumeName"] = json!("pvc-uid-1");
    claim["spec"]["resources"]["requests"]["storage"] = json!(requested);
    claim["status"] = json!({"phase": "Bound", "capacity": {"storage": granted}});
    claim
}

fn volume(phase: &str, capacity: &str) -> Value {
    json!({
        "metadata": {
            "name": "pvc-uid-1",
            "uid": "uid-2",
            "resourceVersion": "6",
            "annotations": {"pv.kubernetes.io/provisioned-by": "spiritlevel.dev/stub"},
        },
        "spec": {
            "capacity": {"storage": capacity},
            "claimRef": {"namespace": "ns", "name": "data", "uid": "uid-1"},
            "persistentVolumeReclaimPolicy": "Delete",
        },
        "status": {"phase": phase},
    })
}

fn class(mode: &str) -> Value {
    json!({
        "metadata": {"name": "standard"},
        "provisioner": "spiritlevel.dev/stub",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    })
}
