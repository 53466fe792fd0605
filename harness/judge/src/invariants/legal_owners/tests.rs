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
    check(
        "ConfigMap",
        elsewhere,
        |uid| reference("example.com/v1", "Sample", "sample-1", &uid.0),
        expect![[r#"
        violation legalOwners: ConfigMap other/child has an ownerReference to Sample sample-1 that does not resolve
          because the owner lies in namespace ns: the garbage collector deletes the object at once
          written: by operator/0 at +1.50 s, request 3
          reference: apiVersion example.com/v1, kind Sample, name sample-1, uid 00000001-sample-1
          deleted: by garbage-collector at +2.00 s
    "#]],
    );
    check(
        "ClusterRole",
        json!({}),
        |uid| reference("example.com/v1", "Sample", "sample-1", &uid.0),
        expect![[r#"
        violation legalOwners: ClusterRole child has an ownerReference to Sample sample-1 that does not resolve
          because a Sample lies in a namespace, the object does not: the garbage collector never deletes the object
          written: by operator/0 at +1.50 s, request 3
          reference: apiVersion example.com/v1, kind Sample, name sample-1, uid 00000001-sample-1
          deleted: by garbage-collector at +2.00 s
    "#]],
    );
    check(
        "ConfigMap",
        json!({}),
        |uid| reference("v1", "Secret", "sample-1", &uid.0),
        expect![[r#"
        violation legalOwners: ConfigMap ns/child has an ownerReference to Secret sample-1 that does not resolve
          because the uid 0000… is that of Sample ns/sample-1, not of a Secret: the garbage collector deletes the object at once
          written: by operator/0 at +1.50 s, request 3
          reference: apiVersion v1, kind Secret, name sample-1, uid 00000001-sample-1
          deleted: by garbage-collector at +2.00 s
    "#]],
    );
    check(
        "ConfigMap",
        json!({}),
        |uid| reference("example.com/v1", "Sampel", "sample-1", &uid.0),
        expect![[r#"
        violation legalOwners: ConfigMap ns/child has an ownerReference to Sampel sample-1 that does not resolve
          because no kind Sampel of example.com/v1 is served: the garbage collector never deletes the object
          written: by operator/0 at +1.50 s, request 3
          reference: apiVersion example.com/v1, kind Sampel, name sample-1, uid 00000001-sample-1
          deleted: by garbage-collector at +2.00 s
    "#]],
    );
    check(
        "ConfigMap",
        json!({}),
        |uid| reference("example.com/v1", "Sample", "sample-2", &uid.0),
        expect![[r#"
        violation legalOwners: ConfigMap ns/child has an ownerReference to Sample sample-2 that does not resolve
          because the uid 0000… is that of Sample ns/sample-1, not of sample-2: the garbage collector deletes the object at once
          written: by operator/0 at +1.50 s, request 3
          reference: apiVersion example.com/v1, kind Sample, name sample-2, uid 00000001-sample-1
          deleted: by garbage-collector at +2.00 s
    "#]],
    );
    check(
        "ConfigMap",
        json!({}),
        |_| reference("example.com/v1", "Sample", "sample-1", "no-such-uid"),
        expect![[r#"
        violation legalOwners: ConfigMap ns/child has an ownerReference to Sample sample-1 that does not resolve
          because no object has the uid no-such-uid: the garbage collector deletes the object at once
          written: by operator/0 at +1.50 s, request 3
          reference: apiVersion example.com/v1, kind Sample, name sample-1, uid no-such-uid
          deleted: by garbage-collector at +2.00 s
    "#]],
    );
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
    expect![[r#"
        warning legalOwners: ConfigMap ns/child has an ownerReference to Sample sample-1 that does not resolve
          because the owner was deleted at +1.20 s, before: the garbage collector deletes the object at once
          written: by operator/0 at +1.50 s, request 4
          reference: apiVersion example.com/v1, kind Sample, name sample-1, uid 00000001-sample-1
    "#]]
    .assert_eq(&run.text("legalOwners"));
}
