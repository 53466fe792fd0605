//! The planner against a world in memory: the API server's part is ten lines, a kubelet's is one.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test updates its tables in this form")]

mod world;

use expect_test::{Expect, expect};
use serde_json::json;

use super::next_step;
use crate::children::{BOOTSTRAP_ANNOTATION, COMPLETE_ANNOTATION, Kind};
use crate::crd::{Backup, RestoreFrom, Retention};
use world::World;

/// Disturbs a cluster of that size that is at rest, and tells the steps that bring it to rest again.
fn check(replicas: i32, disturb: impl FnOnce(&mut World), steps: Expect) -> World {
    let mut world = World::at_rest(replicas);
    disturb(&mut world);
    steps.assert_eq(&world.settle().join("\n"));
    world
}

#[test]
fn a_new_cluster_starts_with_its_primary() {
    let mut world = World::new(3);
    expect![[r#"
        report Pending, 0 of 0 ready
        create the credentials
        create ConfigMap pg-config
        create Service pg
        create Service pg-primary
        create PersistentVolumeClaim pg-0-data
        create Pod pg-0
        create PersistentVolumeClaim pg-1-data
        create PersistentVolumeClaim pg-2-data
        create PodDisruptionBudget pg
        report Provisioning, 0 of 1 ready
        make Pod pg-0 a primary, confirmed by alone
        report Provisioning, 1 of 1 ready
        level PersistentVolumeClaim pg-0-data, complete: true
        level Pod pg-0
        create Pod pg-1
        create Pod pg-2
        report Provisioning, 1 of 3 ready
        let Pod pg-0 be confirmed by pg-1,pg-2
        level PersistentVolumeClaim pg-1-data, complete: true
        level PersistentVolumeClaim pg-2-data, complete: true
        report Running, 3 of 3 ready"#]]
    .assert_eq(&world.settle().join("\n"));
    assert_eq!(next_step(&world.cluster, &world.observed()), None);
}

#[test]
fn a_single_instance_needs_no_disruption_budget() {
    let mut world = World::new(1);
    world.settle();
    assert!(!world.has(Kind::PodDisruptionBudget, "pg"));
}

#[test]
fn fail_over_reports_first_and_demotes_before_it_promotes() {
    check(
        3,
        |world| world.set_ready("pg-0", false),
        expect![[r#"
            report Degraded, 2 of 3 ready
            make Pod pg-0 a replica
            make Pod pg-1 a primary, confirmed by pg-0,pg-2
            level PersistentVolumeClaim pg-0-data, complete: false
            let Pod pg-1 be confirmed by pg-2
            report Degraded, 2 of 3 ready
            let Pod pg-1 be confirmed by pg-0,pg-2
            level PersistentVolumeClaim pg-0-data, complete: true
            report Running, 3 of 3 ready"#]],
    );
}

#[test]
fn a_primary_without_a_successor_stays() {
    let world = check(
        1,
        |world| world.set_ready("pg-0", false),
        expect![[r#"
            report Degraded, 0 of 1 ready
            report Running, 1 of 1 ready"#]],
    );
    assert_eq!(world.primaries(), ["pg-0"]);
}

#[test]
fn a_second_primary_steps_down_whoever_made_it_so() {
    let world = check(
        3,
        |world| world.edit(Kind::Pod, "pg-2", |pod| pod["metadata"]["labels"]["role"] = json!("primary")),
        expect![[r#"
            report Provisioning, 3 of 3 ready
            make Pod pg-2 a replica
            report Running, 3 of 3 ready"#]],
    );
    assert_eq!(world.primaries(), ["pg-0"]);
}

#[test]
fn a_lost_pod_is_counted_before_it_is_replaced() {
    check(
        2,
        |world| world.remove(Kind::Pod, "pg-1"),
        expect![[r#"
            report Degraded, 1 of 1 ready
            level PersistentVolumeClaim pg-1-data, complete: false
            let Pod pg-0 be confirmed by alone
            record the replacement of Pod pg-1
            create Pod pg-1
            report Provisioning, 1 of 2 ready
            let Pod pg-0 be confirmed by pg-1
            level PersistentVolumeClaim pg-1-data, complete: true
            report Running, 2 of 2 ready"#]],
    );
}

#[test]
fn a_failed_pod_is_counted_once_and_makes_room() {
    let world = check(
        2,
        |world| world.edit(Kind::Pod, "pg-1", |pod| pod["status"] = json!({"phase": "Failed"})),
        expect![[r#"
            report Degraded, 1 of 2 ready
            level PersistentVolumeClaim pg-1-data, complete: false
            let Pod pg-0 be confirmed by alone
            record the replacement of Pod pg-1
            delete Pod pg-1
            create Pod pg-1
            report Provisioning, 1 of 2 ready
            let Pod pg-0 be confirmed by pg-1
            level PersistentVolumeClaim pg-1-data, complete: true
            report Running, 2 of 2 ready"#]],
    );
    assert_eq!(world.status().replacements.len(), 1);
}

#[test]
fn beyond_the_limit_nothing_is_replaced_and_the_status_says_so() {
    let mut world = check(
        2,
        |world| {
            world.cluster.spec.max_replacements_per_hour = 0;
            world.remove(Kind::Pod, "pg-1");
        },
        expect![[r#"
            report Degraded, 1 of 1 ready
            level PersistentVolumeClaim pg-1-data, complete: false
            let Pod pg-0 be confirmed by alone
            report Degraded, 1 of 1 ready"#]],
    );
    assert_eq!(world.reason("Degraded"), "ReplacementLimit");
    world.cluster.spec.max_replacements_per_hour = 1;
    world.settle();
    assert_eq!(world.status().ready_replicas, 2, "a higher limit lets it go on");
}

#[test]
fn replacements_older_than_an_hour_do_not_count() {
    let mut world = World::at_rest(1);
    world.cluster.spec.max_replacements_per_hour = 1;
    world.remove(Kind::Pod, "pg-0");
    world.settle();
    world.remove(Kind::Pod, "pg-0");
    world.settle();
    assert_eq!(world.reason("Degraded"), "ReplacementLimit");
    world.now += jiff::SignedDuration::from_mins(61);
    world.settle();
    assert_eq!((world.status().ready_replicas, world.status().replacements.len()), (1, 1));
}

#[test]
fn scaling_down_moves_the_primary_then_removes_pod_by_pod() {
    let world = check(
        3,
        |world| {
            world.set_ready("pg-0", false);
            world.settle();
            world.cluster.spec.persistent_volume_claim_retention.when_scaled = Retention::Delete;
            world.cluster.spec.replicas = 1;
            world.new_generation();
        },
        expect![[r#"
            report Provisioning, 1 of 3 ready
            make Pod pg-1 a replica
            make Pod pg-0 a primary, confirmed by pg-1,pg-2
            level PersistentVolumeClaim pg-2-data, complete: false
            let Pod pg-0 be confirmed by pg-1
            delete Pod pg-2
            level PersistentVolumeClaim pg-1-data, complete: false
            let Pod pg-0 be confirmed by alone
            delete Pod pg-1
            delete PersistentVolumeClaim pg-1-data
            delete PersistentVolumeClaim pg-2-data
            delete PodDisruptionBudget pg
            report Running, 1 of 1 ready"#]],
    );
    assert_eq!(world.primaries(), ["pg-0"]);
}

#[test]
fn retained_volumes_stay_and_are_used_again() {
    let mut world = World::at_rest(2);
    world.cluster.spec.replicas = 1;
    world.settle();
    assert!(world.has(Kind::PersistentVolumeClaim, "pg-1-data"));
    let before = world.uid(Kind::PersistentVolumeClaim, "pg-1-data");
    world.cluster.spec.replicas = 2;
    world.settle();
    assert_eq!(world.uid(Kind::PersistentVolumeClaim, "pg-1-data"), before);
}

#[test]
fn a_volume_kept_from_a_former_cluster_is_not_deleted_by_its_successor() {
    let mut world = World::at_rest(2);
    world.recreate_cluster("second");
    world.cluster.spec.replicas = 1;
    world.cluster.spec.persistent_volume_claim_retention.when_scaled = Retention::Delete;
    world.settle();
    assert!(world.has(Kind::PersistentVolumeClaim, "pg-1-data"));
}

#[test]
fn children_of_the_former_cluster_are_waited_for() {
    let mut world = World::at_rest(1);
    let pod = world.uid(Kind::Pod, "pg-0");
    world.recreate_cluster("second");
    world.settle();
    assert_eq!(world.uid(Kind::Pod, "pg-0"), pod, "neither adopted nor deleted");
    assert_eq!(world.reason("Progressing"), "Waiting");
    assert_eq!(world.reason("Degraded"), "AsExpected");
    world.collect_garbage();
    world.settle();
    assert_eq!(world.reason("Ready"), "AllReady");
}

#[test]
fn what_belongs_to_others_is_left_alone() {
    let mut world = World::new(1);
    world.insert(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "pg-config", "namespace": "ns"}, "data": {"precious": "yes"},
    }));
    world.settle();
    assert_eq!(world.reason("Degraded"), "NameTaken");
    assert_eq!(world.get(Kind::ConfigMap, "pg-config")["data"], json!({"precious": "yes"}));
    assert_eq!(world.status().ready_replicas, 1, "the rest goes on");
}

#[test]
fn a_lost_password_is_not_made_up_anew() {
    let world = check(
        1,
        |world| world.remove(Kind::Secret, "pg-credentials"),
        expect![[r#"
            report Degraded, 1 of 1 ready"#]],
    );
    assert_eq!(world.reason("Degraded"), "CredentialsLost");
}

#[test]
fn drift_is_levelled_and_stripped_owners_come_back() {
    check(
        1,
        |world| {
            world.edit(Kind::Service, "pg-primary", |service| service["spec"]["selector"]["extra"] = json!("x"));
            world.edit(Kind::ConfigMap, "pg-config", |config| config["metadata"]["ownerReferences"] = json!([]));
        },
        expect![[r#"
            report Provisioning, 1 of 1 ready
            level ConfigMap pg-config
            level Service pg-primary
            report Running, 1 of 1 ready"#]],
    );
}

#[test]
fn a_new_version_goes_to_replicas_first_and_to_the_primary_after_it_has_handed_over() {
    check(
        3,
        |world| {
            world.cluster.spec.version = "18".to_owned();
            world.new_generation();
        },
        expect![[r#"
            report Provisioning, 3 of 3 ready
            level Pod pg-2
            level Pod pg-1
            make Pod pg-0 a replica
            make Pod pg-1 a primary, confirmed by pg-0,pg-2
            level Pod pg-0
            report Running, 3 of 3 ready"#]],
    );
}

#[test]
fn another_spelling_of_the_size_is_no_difference_and_a_larger_one_is() {
    let world = check(
        1,
        |world| {
            let size = "/spec/resources/requests/storage";
            world.edit(Kind::PersistentVolumeClaim, "pg-0-data", |volume| {
                *volume.pointer_mut(size).expect("a volume has a size") = json!("1024Mi");
            });
        },
        expect![""],
    );
    drop(world);
    check(
        1,
        |world| {
            world.cluster.spec.storage.size = "2Gi".to_owned();
            world.new_generation();
        },
        expect![[r#"
            report Provisioning, 1 of 1 ready
            level PersistentVolumeClaim pg-0-data, complete: true
            report Running, 1 of 1 ready"#]],
    );
}

#[test]
fn a_volume_that_is_to_outlive_the_cluster_loses_its_owner() {
    check(
        1,
        |world| {
            world.cluster.spec.persistent_volume_claim_retention.when_deleted = Retention::Delete;
            world.settle();
            world.cluster.spec.persistent_volume_claim_retention.when_deleted = Retention::Retain;
        },
        expect![[r#"
            report Provisioning, 1 of 1 ready
            let Secret pg-credentials outlive the cluster
            let PersistentVolumeClaim pg-0-data outlive the cluster
            report Running, 1 of 1 ready"#]],
    );
}

#[test]
fn paused_means_reporting_only() {
    let world = check(
        2,
        |world| {
            world.cluster.spec.paused = true;
            world.new_generation();
            world.remove(Kind::Pod, "pg-1");
        },
        expect![[r#"
            report Degraded, 1 of 1 ready"#]],
    );
    assert_eq!(world.reason("Progressing"), "Paused");
}

#[test]
fn nothing_is_done_for_a_cluster_that_goes() {
    let mut world = World::at_rest(1);
    world.remove(Kind::Pod, "pg-0");
    world.cluster.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    assert_eq!(next_step(&world.cluster, &world.observed()), None);
}

#[test]
fn only_who_has_every_acknowledged_row_may_lead() {
    let world = check(
        3,
        |world| {
            world.set_complete("pg-1-data", false);
            world.set_ready("pg-0", false);
        },
        expect![[r#"
            report Degraded, 2 of 3 ready
            make Pod pg-0 a replica
            make Pod pg-2 a primary, confirmed by pg-0
            let Pod pg-2 be confirmed by pg-0,pg-1
            level PersistentVolumeClaim pg-0-data, complete: false
            let Pod pg-2 be confirmed by pg-1
            level PersistentVolumeClaim pg-1-data, complete: true
            report Degraded, 2 of 3 ready
            let Pod pg-2 be confirmed by pg-0,pg-1
            level PersistentVolumeClaim pg-0-data, complete: true
            report Running, 3 of 3 ready"#]],
    );
    assert_eq!(world.primaries(), ["pg-2"]);
}

#[test]
fn without_a_primary_nobody_becomes_incomplete() {
    let mut world = World::at_rest(2);
    world.set_ready("pg-0", false);
    world.set_ready("pg-1", false);
    while let Some(step) = next_step(&world.cluster, &world.observed()) {
        world.perform(step);
    }
    for volume in ["pg-0-data", "pg-1-data"] {
        let annotations = &world.get(Kind::PersistentVolumeClaim, volume)["metadata"]["annotations"];
        assert_eq!(annotations[COMPLETE_ANNOTATION], "true", "{volume}");
    }
}

#[test]
fn a_lost_volume_is_not_taken_for_a_new_database() {
    let world = check(
        1,
        |world| {
            world.remove(Kind::Pod, "pg-0");
            world.remove(Kind::PersistentVolumeClaim, "pg-0-data");
        },
        expect![[r#"
            report Degraded, 0 of 0 ready
            create PersistentVolumeClaim pg-0-data
            record the replacement of Pod pg-0
            create Pod pg-0
            report Degraded, 0 of 1 ready
            report Degraded, 1 of 1 ready"#]],
    );
    assert_eq!(world.reason("Degraded"), "DataLost");
    assert_eq!(world.get(Kind::Pod, "pg-0")["metadata"]["annotations"][BOOTSTRAP_ANNOTATION], "join");
}

#[test]
fn kept_volumes_are_led_by_one_that_has_every_row() {
    let mut world = World::at_rest(2);
    world.set_complete("pg-0-data", false);
    world.recreate_cluster("second");
    world.collect_garbage();
    world.settle();
    assert_eq!(world.primaries(), ["pg-1"]);
    assert_eq!(world.reason("Ready"), "AllReady");
}

#[test]
fn only_the_first_instance_reads_the_dump_that_a_cluster_begins_with() {
    let mut world = World::new(2);
    world.cluster.spec.restore_from = Some(RestoreFrom { cluster: "old".to_owned() });
    world.settle();
    let claims = |pod| world.get(Kind::Pod, pod)["spec"]["volumes"].to_string().matches("old-backup").count();
    assert_eq!((claims("pg-0"), claims("pg-1")), (1, 0));
}

#[test]
fn a_dump_stays_when_there_are_no_more() {
    let mut world = check(
        1,
        |world| world.cluster.spec.backup = Some(Backup { schedule: "0 3 * * *".to_owned() }),
        expect![[r#"
            report Provisioning, 1 of 1 ready
            create PersistentVolumeClaim pg-backup
            create CronJob pg-backup
            report Running, 1 of 1 ready"#]],
    );
    world.cluster.spec.backup = None;
    world.settle();
    assert!(!world.has(Kind::CronJob, "pg-backup"));
    assert!(world.has(Kind::PersistentVolumeClaim, "pg-backup"));
}

/// The law behind all of it: from wherever it was disturbed, it comes back to rest, there are never two primaries, and
/// who may become one confirms what the one before it acknowledges.
#[test]
fn every_disturbance_comes_to_rest_with_one_primary() {
    for seed in 0..60 {
        let mut world = World::at_rest(3);
        world.disturb_at_random(seed);
        world.settle();
        assert_eq!(world.primaries().len(), 1, "seed {seed}");
        assert_eq!(world.reason("Ready"), "AllReady", "seed {seed}");
    }
}
