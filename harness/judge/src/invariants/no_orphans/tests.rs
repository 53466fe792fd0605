//! Violating and satisfying histories.

use crate::testing::{COLLECTOR, OPERATOR, Run, USER, object, owned_by, ready, text};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use spiritlevel_model::{
    Uid,
    fault::At,
    finding::FindingClass,
    history::{Phase, ProcessEvent, StepState},
};

fn check(run: &Run, expected: Expect) {
    expected.assert_eq(&run.text("noOrphans"));
}

fn sample(run: &mut Run, name: &str) -> Uid {
    let uid = run.at(1.0).create(USER, object("Sample", name, json!({})));
    run.patch(OPERATOR, &uid, ready());
    uid
}

#[test]
fn what_the_collector_takes_leaves_nothing() {
    let mut run = Run::new();
    let uid = sample(&mut run, "sample-1");
    let child = run.create(OPERATOR, object("ConfigMap", "sample-1-settings", owned_by("sample-1", &uid)));
    run.finish(&[&uid], &[&child]);
    check(&run, expect![[""]]);
    assert_eq!(run.judge().findings, []);
}

#[test]
fn a_child_without_owner_references_stays_and_says_why() {
    let mut run = Run::new();
    let uid = sample(&mut run, "sample-1");
    run.at(2.31).create(OPERATOR, object("ConfigMap", "sample-1-settings", json!({})));
    run.create(OPERATOR, object("Secret", "generated", json!({"metadata": {"labels": {"app": "sample-1"}}})));
    run.create(OPERATOR, object("Secret", "mention", json!({"metadata": {"annotations": {"by": uid.0.clone()}}})));
    run.finish(&[&uid], &[]);
    check(
        &run,
        expect![[r#"
        violation noOrphans: ConfigMap ns/sample-1-settings (uid 0000…) outlived its owner
          because it has no ownerReferences, and nobody deleted it
          created: by operator/0 at +2.31 s, request 4, without ownerReferences
          owner: Sample ns/sample-1 (uid 0000…) deleted at +5.31 s
          tie: it carries the name of Sample ns/sample-1

        violation noOrphans: Secret ns/generated (uid 0000…) outlived its owner
          because it has no ownerReferences, and nobody deleted it
          created: by operator/0 at +2.31 s, request 5, without ownerReferences
          owner: Sample ns/sample-1 (uid 0000…) deleted at +5.31 s
          tie: it carries the name of Sample ns/sample-1

        violation noOrphans: Secret ns/mention (uid 0000…) outlived its owner
          because it has no ownerReferences, and nobody deleted it
          created: by operator/0 at +2.31 s, request 6, without ownerReferences
          owner: Sample ns/sample-1 (uid 0000…) deleted at +5.31 s
    "#]],
    );
}

#[test]
fn only_what_came_with_the_subject_counts() {
    let mut run = Run::new();
    run.create(OPERATOR, object("ConfigMap", "sample-1-before", json!({})));
    let uid = sample(&mut run, "sample-1");
    run.create(USER, object("ConfigMap", "sample-1-input", json!({})));
    run.create(OPERATOR, object("Lease", "sample-1-lock", json!({})));
    run.create("root-ca-certificate-publisher", object("ConfigMap", "kube-root-ca.crt", json!({})));
    run.create(OPERATOR, object("ConfigMap", "shared-settings", json!({})));
    run.create(OPERATOR, object("ConfigMap", "sample-10", json!({})));
    run.version_of_another_run(object("ClusterRole", "sample-1-role", json!({})));
    run.finish(&[&uid], &[]);
    check(&run, expect![[""]]);
}

#[test]
fn below_a_dead_child_and_made_too_late_counts_as_well() {
    let mut run = Run::new();
    let uid = sample(&mut run, "sample-1");
    let set = run.create(OPERATOR, object("StatefulSet", "sample-1", owned_by("sample-1", &uid)));
    let above = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "sample-1", "uid": set.0}]}});
    let claim = run.create("statefulset-controller", object("PersistentVolumeClaim", "data", above));
    run.patch(OPERATOR, &claim, json!({"metadata": {"finalizers": ["example.com/keep"]}}));
    run.settle(Phase::Settle, 2.0, true).phase(Phase::Teardown).delete(USER, &uid).delete(COLLECTOR, &set);
    run.delete(COLLECTOR, &claim);
    run.create(OPERATOR, object("ConfigMap", "sample-1-late", owned_by("sample-1", &uid)));
    run.settle(Phase::SettleTeardown, 3.0, false);
    check(
        &run,
        expect![[r#"
        violation noOrphans: ConfigMap ns/sample-1-late (uid 0000…) outlived its owner
          because it was created by operator/0 after its owner was deleted at +3.00 s; its owner Sample sample-1 (uid 0000…) is gone, and it was not collected yet
          created: by operator/0 at +3.00 s, request 10
          owner: Sample ns/sample-1 (uid 0000…) deleted at +3.00 s; the garbage collector was idle from +3.00 s

        violation noOrphans: PersistentVolumeClaim ns/data (uid 0000…) outlived its owner
          because it is terminating, and the finalizer example.com/keep is still there
          created: by statefulset-controller at +1.00 s, request 5
          owner: Sample ns/sample-1 (uid 0000…) deleted at +3.00 s; the garbage collector was idle from +3.00 s
    "#]],
    );
}

fn retaining(retain: Value) -> Run {
    let mut run = Run::with(json!([]), json!({"invariants": {"noOrphans": retain}}));
    let uid = run.at(1.0).create(USER, object("Sample", "sample-1", json!({"spec": {"keep": true}})));
    run.patch(OPERATOR, &uid, ready());
    let labels = json!({"metadata": {"labels": {"role": "data"}}});
    run.create(OPERATOR, object("PersistentVolumeClaim", "data-sample-1-0", labels));
    run.finish(&[&uid], &[]);
    run
}

#[test]
fn retained_objects_may_stay() {
    let stays = |retain: Value| {
        retaining(retain).judge().findings.iter().filter(|f| f.class == FindingClass::Violation).count()
    };
    for (retain, findings) in [
        (json!([{"resource": "persistentvolumeclaims"}]), 0),
        (json!([{"resource": "secrets"}]), 1),
        (json!([{"resource": "*", "name": "data-*", "labels": {"role": "data"}}]), 0),
        (json!([{"resource": "*", "labels": {"role": "other"}}]), 1),
        (json!([{"resource": "*", "when": "subject.spec.keep"}]), 0),
        (json!([{"resource": "*", "when": "!subject.spec.keep"}]), 1),
        (json!([{"resource": "*", "when": "subject.spec.other"}]), 1),
    ] {
        assert_eq!(stays(retain.clone()), findings, "{retain}");
    }
    check(
        &retaining(json!([{"resource": "*", "when": "subject.spec.other"}])),
        expect![[r#"
        warning noOrphans: retain *: "subject.spec.other" cannot be answered: No such key: other; guard optional fields with has()
          because the rule cannot be applied

        violation noOrphans: PersistentVolumeClaim ns/data-sample-1-0 (uid 0000…) outlived its owner
          because it has no ownerReferences, and nobody deleted it
          created: by operator/0 at +1.00 s, request 4, without ownerReferences
          owner: Sample ns/sample-1 (uid 0000…) deleted at +4.00 s
          tie: it carries the name of Sample ns/sample-1
    "#]],
    );
}

#[test]
fn one_more_for_each_subject_is_a_leak_and_a_constant_set_is_not() {
    let mut run = Run::new();
    let uid = sample(&mut run, "sample-1");
    run.create(OPERATOR, object("ConfigMap", "backup-7f3", json!({})));
    run.create(OPERATOR, object("ConfigMap", "shared", json!({})));
    run.settle(Phase::Settle, 2.0, true).phase(Phase::Probe);
    let second = run.create("harness/probe", object("Sample", "sample-1-second", json!({})));
    run.patch(OPERATOR, &second, ready());
    run.create(OPERATOR, object("ConfigMap", "backup-9a1", json!({})));
    run.settle(Phase::SettleProbe, 2.0, true);
    run.finish(&[&uid, &second], &[]);
    check(
        &run,
        expect![[r#"
        violation noOrphans: ConfigMap ns/backup-7f3 (uid 0000…) stayed, and so did one more for the second subject: backup-9a1
          because the operator makes one for each subject and never deletes it; nothing ties it to its subject
          created: by operator/0 at +1.00 s, request 4
    "#]],
    );
}

#[test]
fn a_failed_deletion_is_named_with_the_fault() {
    let fault = json!([{"name": "refused", "match": {"verb": "delete"}, "do": {"reject": {"status": 500}}}]);
    let mut run = Run::with(fault, json!({}));
    let uid = sample(&mut run, "sample-1");
    run.create(OPERATOR, object("Secret", "sample-1-token", json!({})));
    let id =
        run.at(3.0).refused(OPERATOR, "DELETE", "/api/v1/namespaces/ns/secrets/sample-1-token", 500, "InternalError");
    run.fired("refused", Some(id), Some(At::BeforeSend)).effect("refused", "500 was delivered");
    run.finish(&[&uid], &[]);
    check(
        &run,
        expect![[r#"
        violation noOrphans: Secret ns/sample-1-token (uid 0000…) outlived its owner
          because it has no ownerReferences, and delete secrets ns/sample-1-token by operator/0 failed once (500 InternalError) at +3.00 s, request 5
          created: by operator/0 at +1.00 s, request 4, without ownerReferences
          owner: Sample ns/sample-1 (uid 0000…) deleted at +6.00 s
          tie: it carries the name of Sample ns/sample-1
          refused: delete secrets ns/sample-1-token by operator/0 failed once (500 InternalError) at +3.00 s, request 5
          fault: refused fired once, at +3.00 s on request 5, before the write was sent (always legal)
          -> fault refused
    "#]],
    );
}

#[test]
fn a_deletion_while_the_operator_was_down_is_blamed_on_the_step() {
    let mut run = Run::new();
    let uid = sample(&mut run, "sample-1");
    run.create(OPERATOR, object("ConfigMap", "sample-1-settings", json!({})));
    run.at(4.0).step("steps[1].try[0]", "operator-down", "stopOperator", StepState::Started);
    run.process(ProcessEvent::Exited { code: None, signal: Some(9), expected: true, last_lines: vec![] });
    run.step("steps[1].try[0]", "operator-down", "stopOperator", StepState::Done);
    run.step("steps[1].try[1]", "operator-down", "delete", StepState::Started);
    run.delete(USER, &uid).step("steps[1].try[1]", "operator-down", "delete", StepState::Done);
    run.process(ProcessEvent::Started { pid: 2 });
    run.finish(&[], &[]);
    check(
        &run,
        expect![[r#"
        violation noOrphans: ConfigMap ns/sample-1-settings (uid 0000…) outlived its owner
          because it has no ownerReferences, and nobody deleted it
          created: by operator/0 at +1.00 s, request 4, without ownerReferences
          owner: Sample ns/sample-1 (uid 0000…) deleted at +4.00 s
          tie: it carries the name of Sample ns/sample-1
          step: operator-down deleted the subject at +4.00 s while no operator ran
          -> step operator-down
    "#]],
    );
}

#[test]
fn under_a_fault_that_breaks_the_contract_it_is_robustness() {
    let dropped = json!([{"name": "dropped", "match": {"resource": "samples.example.com"}, "do": {"dropEvents": {}}}]);
    for (more, class) in [
        (json!({}), FindingClass::Robustness),
        (json!({"scenario": {"gate": ["always", "never"]}}), FindingClass::Violation),
    ] {
        let mut run = Run::with(dropped.clone(), more);
        let uid = sample(&mut run, "sample-1");
        run.fired("dropped", None, None).effect("dropped", "an event was never delivered");
        run.create(OPERATOR, object("ConfigMap", "sample-1-settings", json!({})));
        run.finish(&[&uid], &[]);
        let judgement = run.judge();
        let classes: Vec<FindingClass> = judgement.findings.iter().map(|f| f.class).collect();
        assert_eq!(classes, [class], "{:?}", judgement.findings.iter().map(text).collect::<Vec<_>>());
        let pass = class == FindingClass::Robustness;
        assert_eq!(judgement.verdict.verdict.to_string(), if pass { "pass" } else { "fail" });
    }
}

#[test]
fn what_hangs_on_another_orphan_is_counted_there() {
    let mut run = Run::new();
    let uid = sample(&mut run, "sample-1");
    let set = run.create(OPERATOR, object("StatefulSet", "sample-1", json!({})));
    let above = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "sample-1", "uid": set.0}]}});
    run.create("statefulset-controller", object("ConfigMap", "sample-1-revision", above));
    run.finish(&[&uid], &[]);
    check(
        &run,
        expect![[r#"
        violation noOrphans: StatefulSet ns/sample-1 (uid 0000…) outlived its owner
          because it has no ownerReferences, and nobody deleted it
          created: by operator/0 at +1.00 s, request 4, without ownerReferences
          owner: Sample ns/sample-1 (uid 0000…) deleted at +4.00 s
          tie: it carries the name of Sample ns/sample-1
          below: what hangs on it stays as well: 1 more
    "#]],
    );
}
