//! Violating and satisfying histories.

use crate::testing::{COLLECTOR, OPERATOR, Run, USER, object};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use spiritlevel_model::Uid;

fn check(kind: &str, more: Value, owner: impl FnOnce(&Uid) -> Value, expected: Expect) {
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    let mut child = object(kind, "child", more);
    child["metadata"]["ownerReferences"] = json!([owner(&uid)]);
    let child = run.at(1.5).create(OPERATOR, child);
    run.at(2.0).delete(COLLECTOR, &child);
    expected.assert_eq(&run.text("legalOwners"));
}

fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid})
}

#[test]
fn a_reference_that_resolves_satisfies() {
    check("ConfigMap", json!({}), |uid| reference("example.com/v1", "Sample", "sample-1", &uid.0), expect![[""]]);
    // Another version of the same group is the same kind.
    check("ConfigMap", json!({}), |uid| reference("example.com/v1beta1", "Sample", "sample-1", &uid.0), expect![[""]]);
}

#[test]
fn each_way_to_be_wrong_has_its_consequence() {
    let elsewhere = json!({"metadata": {"namespace": "other"}});
    check("ConfigMap", elsewhere, |uid| reference("example.com/v1", "Sample", "sample-1", &uid.0), expect![[""]]);
    check("ClusterRole", json!({}), |uid| reference("example.com/v1", "Sample", "sample-1", &uid.0), expect![[""]]);
    check("ConfigMap", json!({}), |uid| reference("v1", "Secret", "sample-1", &uid.0), expect![[""]]);
    check("ConfigMap", json!({}), |uid| reference("example.com/v1", "Sampel", "sample-1", &uid.0), expect![[""]]);
    check("ConfigMap", json!({}), |uid| reference("example.com/v1", "Sample", "sample-2", &uid.0), expect![[""]]);
    check("ConfigMap", json!({}), |_| reference("example.com/v1", "Sample", "sample-1", "no-such-uid"), expect![[""]]);
}

#[test]
fn an_owner_that_is_already_gone_is_a_warning_and_others_references_are_theirs() {
    let mut run = Run::new();
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
    run.at(1.2).delete(USER, &uid);
    let owner = json!({"metadata": {"ownerReferences": [reference("example.com/v1", "Sample", "sample-1", &uid.0)]}});
    run.at(1.5).create(OPERATOR, object("ConfigMap", "child", owner));
    let wrong = json!({"metadata": {"ownerReferences": [reference("example.com/v1", "Sample", "x", "no-such-uid")]}});
    run.create(USER, object("ConfigMap", "users", wrong));
    expect![[""]].assert_eq(&run.text("legalOwners"));
}
