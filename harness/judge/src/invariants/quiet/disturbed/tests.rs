//! What follows a restart and a duplicate event, at rest and otherwise.

use crate::testing::{COLLECTOR, OPERATOR, Run, USER, object, owned_by, ready};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use spiritlevel_model::{
    RequestId, Uid,
    fault::At,
    history::{Event, Phase, ProcessEvent, Record, StepState},
};

/// A ready Sample with a child; nothing has been written since +2 s.
struct Scene {
    looks: usize,
    slow: bool,
    run: Run,
    sample: Uid,
    child: Uid,
}

const RESTART: &str = "steps[1].try[0]";
const SAMPLE: &str = "/apis/example.com/v1/namespaces/ns/samples/sample-1";
const FAULTS: &str = r#"[
    {"name": "killed", "match": {"verb": "update"}, "at": "afterCommit", "do": {"crash": {}}},
    {"name": "cut", "match": {"actor": "operator"}, "do": {"partition": {"as": "refuse"}}},
    {"name": "refused", "match": {"verb": "create"}, "do": {"reject": {"status": 500}}},
    {"name": "dropped", "match": {"verb": "watch"}, "do": {"dropEvents": {}}}
]"#;

// === impl Scene ===

impl Scene {
    fn new() -> Self {
        Self::with(json!({}))
    }

    fn with(settings: Value) -> Self {
        let mut run = Run::with(serde_json::from_str(FAULTS).unwrap(), settings);
        let sample = run.at(1.0).create(USER, object("Sample", "sample-1", json!({})));
        let child = object("ConfigMap", "sample-1-settings", owned_by("sample-1", &sample));
        let child = run.at(1.5).create(OPERATOR, child);
        run.at(2.0).patch(OPERATOR, &sample, ready());
        Self { looks: 0, slow: false, run, sample, child }
    }

    /// The step that restarts the operator: down at +5 s, up at +5.2 s.
    fn restart(&mut self) -> &mut Self {
        self.down().up()
    }

    fn down(&mut self) -> &mut Self {
        self.run.at(5.0).step(RESTART, "again", "restartOperator", StepState::Started).ended(OPERATOR, RESTART);
        self
    }

    fn up(&mut self) -> &mut Self {
        self.run.at(5.2).started(OPERATOR, RESTART).step(RESTART, "again", "restartOperator", StepState::Done);
        self
    }

    /// The step that shows the Sample once more, at +5 s.
    fn duplicate(&mut self, touch: bool) -> &mut Self {
        let step = |run: &mut Run, state| {
            run.step(RESTART, "again", "duplicateReconcile", state);
        };
        step(self.run.at(5.0), StepState::Started);
        if touch {
            let patch = json!({"metadata": {"annotations": {"spiritlevel.dev/touched": "1"}}});
            self.run.patch("harness/touch", &self.sample, patch);
        }
        step(&mut self.run, StepState::Done);
        self
    }

    /// The operator counts its looks, at +5.5 s.
    fn write(&mut self) -> &mut Self {
        self.looks += 1;
        self.run.at(5.5).patch(OPERATOR, &self.sample, json!({"status": {"reconciles": self.looks}}));
        self
    }

    fn settle(&mut self) -> &Run {
        let run = self.run.at(6.0).settle(Phase::Settle, 3.0, true);
        if let Some(Record { event: Event::Settled(settled), .. }) = run.history.last_mut()
            && self.slow
        {
            settled.window_ms = 4000.0;
        }
        run
    }
}

fn check(scene: &mut Scene, expected: Expect) {
    expected.assert_eq(&scene.settle().text("quiet"));
}

#[test]
fn a_write_after_a_restart_at_rest_is_named_with_the_step() {
    check(
        Scene::new().restart().write(),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after operator/0 was started again at +5.20 s, although everything was at rest: request 5
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              step: again (restartOperator) began at +5.00 s
              -> step again
        "#]],
    );
    check(Scene::new().restart(), expect![[""]]);
}

#[test]
fn a_write_after_a_duplicate_is_named_with_the_step() {
    check(
        Scene::new().duplicate(true).write(),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after the duplicate reconcile of step again, although everything was at rest: request 6
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              step: again (duplicateReconcile) began at +5.00 s
              -> step again
        "#]],
    );
    check(
        Scene::new().duplicate(false).write(),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after the duplicate reconcile of step again, although everything was at rest: request 5
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              step: again (duplicateReconcile) began at +5.00 s
              -> step again
        "#]],
    );
    check(Scene::new().duplicate(true), expect![[""]]);
}

#[test]
fn what_is_made_deleted_or_written_often_is_told_by_object() {
    let mut scene = Scene::new();
    scene.restart();
    let Scene { run, sample, child, .. } = &mut scene;
    run.at(5.5).delete(OPERATOR, child);
    let again = run.create(OPERATOR, object("ConfigMap", "sample-1-settings", owned_by("sample-1", sample)));
    run.patch(OPERATOR, &again, json!({"data": {"a": "1", "b": "2"}}));
    run.create(OPERATOR, object("Secret", "sample-1-token", owned_by("sample-1", sample)));
    check(
        &mut scene,
        expect![[r#"
            violation quiet: ConfigMap ns/sample-1-settings (uid 0000…) was written 3 times by the operator after operator/0 was started again at +5.20 s, although everything was at rest: requests 5, 6, 7
              because the object is deleted and made again
              changed: data: nothing → {"a":"1","b":"2"}
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              step: again (restartOperator) began at +5.00 s
              -> step again

            violation quiet: Secret ns/sample-1-token (uid 0000…) was written once by the operator after operator/0 was started again at +5.20 s, although everything was at rest: request 8
              because the object is made, and nobody had taken it away
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              step: again (restartOperator) began at +5.00 s
              -> step again
        "#]],
    );
}

#[test]
fn so_many_writes_as_are_allowed_are_no_finding() {
    let two = || Scene::with(json!({"invariants": {"quiet": {"maxEffectiveWrites": 2}}}));
    check(two().restart().write().write(), expect![[""]]);
    check(
        two().restart().write().write().write(),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written 3 times by the operator after operator/0 was started again at +5.20 s, although everything was at rest: requests 5, 6, 7
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1 → 2 → 3
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              step: again (restartOperator) began at +5.00 s
              -> step again
        "#]],
    );
}

#[test]
fn a_crash_at_rest_is_named_with_the_fault() {
    let killed = |on: fn(&mut Scene) -> RequestId| {
        let mut scene = Scene::new();
        scene.run.at(5.0);
        let request = on(&mut scene);
        scene.run.armed("killed").fired("killed", Some(request), Some(At::AfterCommit));
        scene.run.ended(OPERATOR, "killed").effect("killed", "it ended").at(5.2).started(OPERATOR, "killed");
        scene.write();
        scene
    };
    check(
        &mut killed(|s| s.run.request(OPERATOR, "PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/leader")),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after operator/0 was started again at +5.20 s, although everything was at rest: request 6
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              fault: killed fired once, at +5.00 s on request 5, after the write was committed (always legal)
              -> fault killed
        "#]],
    );
    // On a write that matters it is no rest.
    check(&mut killed(|s| s.run.patch(OPERATOR, &s.child, json!({}))), expect![[""]]);
}

#[test]
fn the_step_that_started_it_is_named_and_not_what_happened_long_before() {
    let mut scene = Scene::new();
    scene.run.armed("cut").at(1.2).fired("cut", None, None).healed("cut");
    for state in [StepState::Started, StepState::Done] {
        scene.run.at(5.0).step("steps[1]", "down", "stopOperator", state);
    }
    scene.run.ended(OPERATOR, "steps[1]");
    for state in [StepState::Started, StepState::Done] {
        scene.run.at(5.2).step("steps[2]", "up", "startOperator", state);
    }
    scene.run.started(OPERATOR, "steps[2]");
    check(
        scene.write(),
        expect![[r#"
        violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after operator/0 was started again at +5.20 s, although everything was at rest: request 5
          because status.reconciles changes, and nothing else did
          changed: status.reconciles: nothing → 1
          rest: nothing had been written for 3.0 s
          window: +5.00 s to +9.00 s
          step: up (startOperator) began at +5.20 s
          -> step up
    "#]],
    );
}

#[test]
fn each_step_or_fault_is_told_once_for_an_object_and_a_loop_as_a_loop() {
    let mut scene = Scene::new();
    for at in [5.0, 9.0] {
        scene.run.armed("killed").at(at).fired("killed", None, None).ended(OPERATOR, "killed");
        scene.run.at(at + 0.2).started(OPERATOR, "killed").at(at + 0.5);
        scene.run.patch(OPERATOR, &scene.sample, json!({"status": {"reconciles": at}}));
    }
    scene.run.at(13.0);
    assert_eq!(scene.run.settle(Phase::Settle, 3.0, true).text("quiet").matches("violation").count(), 1);

    let mut scene = Scene::new();
    scene.restart().run.phase(Phase::Heal).phase(Phase::Settle);
    for n in 0..12 {
        scene.run.at(6.0 + f64::from(n)).patch(OPERATOR, &scene.sample, json!({"status": {"n": n % 2}}));
    }
    let text = scene.run.settled(Phase::Settle, 12.0, false).text("quiet");
    assert!(text.starts_with("violation quiet: Sample ns/sample-1 was written 11 times"), "{text}");
    assert_eq!(text.matches("violation").count(), 1, "{text}");
}

#[test]
fn an_operator_that_ends_by_itself_was_started_again_as_well() {
    let mut scene = Scene::new();
    let exited = ProcessEvent::Exited { code: Some(0), signal: None, expected: false, last_lines: Vec::new() };
    scene.run.at(5.0).process(exited).at(5.2).process(ProcessEvent::Started { pid: 2 });
    check(
        scene.write(),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after operator/0 was started again at +5.20 s, although everything was at rest: request 5
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
        "#]],
    );
}

#[test]
fn any_replica_counts_also_while_the_other_is_down() {
    let mut scene = Scene::new();
    scene.run.at(2.0).started("operator/1", "arrange");
    scene.down();
    scene.run.at(5.1).patch("operator/1", &scene.sample, json!({"status": {"leader": 1}}));
    check(
        scene.up(),
        expect![[r#"
        violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after operator/0 ended at +5.00 s, although everything was at rest: request 5
          because status.leader changes, and nothing else did
          changed: status.leader: nothing → 1
          rest: nothing had been written for 3.0 s
          window: +5.00 s to +9.00 s
          step: again (restartOperator) began at +5.00 s
          -> step again
    "#]],
    );

    let mut scene = Scene::new();
    scene.run.at(2.0).started("operator/1", "arrange");
    scene.restart();
    scene.run.at(5.5).patch("operator/1", &scene.sample, json!({"status": {"leader": 1}}));
    check(
        &mut scene,
        expect![[r#"
        violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after operator/0 was started again at +5.20 s, although everything was at rest: request 5
          because status.leader changes, and nothing else did
          changed: status.leader: nothing → 1
          rest: nothing had been written for 3.0 s
          window: +5.00 s to +9.00 s
          step: again (restartOperator) began at +5.00 s
          -> step again
    "#]],
    );

    // Both at the same time are one disturbance.
    let mut scene = Scene::new();
    scene.run.at(2.0).started("operator/1", "arrange");
    scene.down();
    scene.run.ended("operator/1", RESTART);
    scene.up();
    scene.run.at(5.3).started("operator/1", RESTART);
    check(
        scene.write(),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after operator/0 and operator/1 were started again by +5.30 s, although everything was at rest: request 5
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1
              rest: nothing had been written for 3.0 s
              window: +5.00 s to +9.00 s
              step: again (restartOperator) began at +5.00 s
              -> step again
        "#]],
    );
}

#[test]
fn a_duplicate_shortly_after_a_restart_tells_of_both() {
    let mut scene = Scene::new();
    scene.restart();
    scene.run.at(5.3).step("steps[2]", "seen", "duplicateReconcile", StepState::Started);
    scene.run.step("steps[2]", "seen", "duplicateReconcile", StepState::Done);
    check(
        scene.write(),
        expect![[r#"
            violation quiet: Sample ns/sample-1 (uid 0000…) was written once by the operator after the duplicate reconcile of step seen, although everything was at rest: request 5
              because status.reconciles changes, and nothing else did
              changed: status.reconciles: nothing → 1
              rest: nothing had been written for 3.3 s
              before: shortly before, operator/0 was started again at +5.20 s
              window: +5.30 s to +9.00 s
              step: seen (duplicateReconcile) began at +5.30 s
              -> step seen
        "#]],
    );
}

/// A case: its name, and what happens besides.
type Prepared = (&'static str, fn(&mut Scene));

/// A change that the operator has to act on.
fn spec() -> Value {
    json!({"spec": {"text": "new"}})
}

/// What is none of the operator's business does not disturb the rest.
#[test]
fn routine_other_runs_and_what_was_heard_leave_it_at_rest() {
    let cases: [Prepared; 11] = [
        ("a pause", |s| {
            for signal in ["STOP", "CONT"] {
                s.run.at(2.2).process(ProcessEvent::Signalled { signal: signal.into() });
            }
        }),
        ("a lease", |s| {
            let lease = s.run.at(4.5).create(OPERATOR, object("Lease", "leader", json!({})));
            s.run.at(4.9).patch(OPERATOR, &lease, json!({"spec": {"renewTime": 1}}));
        }),
        ("a cluster-scoped object of another run", |s| {
            s.run.at(4.5).version_of_another_run(object("ClusterRole", "theirs", json!({})));
        }),
        ("a touch", |s| {
            s.run.at(4.5).patch(
                "harness/touch",
                &s.sample,
                json!({"metadata": {"annotations": {"spiritlevel.dev/touched": "1"}}}),
            );
        }),
        ("a touch of a child that was taken back", |s| {
            for touched in [json!("1"), Value::Null] {
                let patch = json!({"metadata": {"annotations": {"spiritlevel.dev/touched": touched}}});
                s.run.at(2.5).patch("harness/conflict", &s.child, patch);
            }
        }),
        ("the pod that it runs in", |s| {
            let pod = object("Pod", "operator-0", json!({"metadata": {"namespace": "ns-operator"}}));
            let pod = s.run.at(4.5).create("kubelet", pod);
            s.run.patch("kubelet", &pod, json!({"status": {"phase": "Running"}}));
        }),
        ("a step that only looks", |s| {
            s.run.at(4.5).step("steps[0]", "wait", "await", StepState::Started);
            s.run.step("steps[0]", "wait", "await", StepState::Done);
        }),
        ("a change that was delivered", |s| {
            let stream = s.run.at(2.5).watch("secrets");
            let secret = s.run.create(USER, object("Secret", "given", json!({})));
            s.run.deliver(stream, &secret);
        }),
        ("a change that was delivered before it was recorded", |s| {
            let stream = s.run.at(2.2).watch("secrets");
            let secret = s.run.at(2.5).create(USER, object("Secret", "given", json!({})));
            s.run.deliver(stream, &secret);
            // Request, answer, version, reply, frame.
            let n = s.run.history.len();
            let (version, frame) = (s.run.history[n - 3].event.clone(), s.run.history[n - 1].event.clone());
            s.run.history[n - 3].event = frame;
            s.run.history[n - 1].event = version;
        }),
        ("a child that came back", |s| {
            s.run.at(2.5).patch(USER, &s.child, json!({"data": {"text": "theirs"}}));
            s.run.patch(OPERATOR, &s.child, json!({"data": {"text": "ours"}}));
        }),
        ("a failed write that succeeded later, and a fault that is over", |s| {
            s.run.armed("cut").at(2.2).fired("cut", None, None);
            s.run.refused(OPERATOR, "PATCH", SAMPLE, 500, "InternalError");
            s.run.healed("cut").at(2.5).patch(OPERATOR, &s.sample, json!({"status": {"n": 1}}));
        }),
    ];
    for (name, prepare) in cases {
        let mut scene = Scene::new();
        prepare(&mut scene);
        let text = scene.restart().write().settle().text("quiet");
        assert!(text.starts_with("violation quiet: Sample ns/sample-1 "), "{name}: {text:?}");
        assert_eq!(text.matches("violation").count(), 1, "{name}: {text}");
    }
}

/// Where it was not at rest, or something else happened, nobody is blamed.
#[test]
fn without_rest_nothing_is_judged() {
    let before: [Prepared; 16] = [
        ("the operator wrote shortly before", |s| {
            s.run.at(3.5).patch(OPERATOR, &s.child, json!({"data": {"a": "1"}}));
        }),
        ("somebody else wrote shortly before", |s| {
            s.run.at(3.5).patch("some-controller", &s.child, json!({"data": {"a": "1"}}));
        }),
        ("a script ran shortly before", |s| {
            s.run.at(2.5).step("steps[0]", "do", "script", StepState::Started);
            s.run.at(3.5).step("steps[0]", "do", "script", StepState::Done);
        }),
        ("the subject is not ready", |s| {
            s.run.at(2.1).patch(OPERATOR, &s.sample, json!({"status": {"conditions": []}}));
        }),
        ("a second subject is on its way out", |s| {
            let finalizers = json!({"metadata": {"finalizers": ["a/b"]}});
            let second = s.run.at(2.1).create(USER, object("Sample", "sample-2", finalizers));
            s.run.delete(USER, &second);
            s.run.request(OPERATOR, "GET", SAMPLE);
        }),
        ("a child is on its way out", |s| {
            let finalizers = json!({"metadata": {"finalizers": ["a/b"]}});
            let child = s.run.at(2.1).create(OPERATOR, object("Secret", "sample-1-token", finalizers));
            s.run.delete(OPERATOR, &child);
        }),
        ("a child waits for the garbage collector", |s| {
            let gone = Uid("gone".into());
            s.run.at(2.1).create(OPERATOR, object("Secret", "sample-1-token", owned_by("sample-0", &gone)));
        }),
        ("a fault still lasts", |s| {
            s.run.armed("cut").at(1.2).fired("cut", None, None);
        }),
        ("a fault was lifted shortly before", |s| {
            s.run.armed("cut").at(1.2).fired("cut", None, None).at(3.5).healed("cut");
        }),
        ("an event was dropped", |s| {
            s.run.armed("dropped").at(1.2).fired("dropped", None, None).healed("dropped");
        }),
        ("a fault fired shortly before", |s| {
            s.run.armed("refused").at(3.5).fired("refused", None, None);
        }),
        ("a write of the operator failed in a way that may pass", |s| {
            s.run.at(2.1).refused(OPERATOR, "POST", "/api/v1/namespaces/ns/secrets", 500, "InternalError");
        }),
        ("a change was not heard of", |s| {
            s.run.at(2.5).create(USER, object("Secret", "given", json!({})));
        }),
        ("what a controller did to a child was not heard of", |s| {
            s.run.at(2.5).patch("job-controller", &s.child, json!({"data": {"done": "yes"}}));
        }),
        ("the operator was seen to react slowly", |s| {
            s.slow = true;
        }),
        ("a child that somebody changed was not mended", |s| {
            s.run.at(2.5).patch(USER, &s.child, json!({"data": {"text": "theirs"}}));
            s.run.request(OPERATOR, "GET", SAMPLE);
        }),
    ];
    for (name, prepare) in before {
        for duplicate in [false, true] {
            let mut scene = Scene::new();
            prepare(&mut scene);
            if duplicate {
                scene.duplicate(true)
            } else {
                scene.restart()
            };
            assert_eq!(scene.write().settle().text("quiet"), "", "{name}, duplicate: {duplicate}");
        }
    }
}

#[test]
fn what_happens_in_between_is_a_reason_to_write() {
    let touched = json!({"metadata": {"annotations": {"spiritlevel.dev/touched": "1"}}});
    let cases: [Prepared; 13] = [
        ("the user changes the subject while it is down", |s| {
            s.down();
            s.run.at(5.1).patch(USER, &s.sample, spec());
            s.up();
        }),
        ("the user changes the subject after the other replica wrote", |s| {
            s.run.at(2.0).started("operator/1", "arrange");
            s.down();
            s.run.at(5.05).patch("operator/1", &s.sample, json!({"status": {"leader": 1}}));
            s.run.at(5.1).patch(USER, &s.sample, spec());
            s.up();
        }),
        ("the user changes the subject", |s| {
            s.restart();
            s.run.at(5.3).patch(USER, &s.sample, spec());
        }),
        ("a controller writes", |s| {
            s.restart();
            s.run.at(5.3).patch("some-controller", &s.child, json!({"data": {"a": "1"}}));
        }),
        ("a child is collected", |s| {
            s.restart();
            s.run.at(5.3).delete(COLLECTOR, &s.child);
        }),
        ("a step begins that does something", |s| {
            s.restart();
            s.run.at(5.3).step("steps[2]", "do", "script", StepState::Started);
        }),
        ("a fault fires", |s| {
            s.restart();
            s.run.armed("refused").at(5.3).fired("refused", None, None);
        }),
        ("the operator is ended for good", |s| {
            s.run.at(2.0).started("operator/1", "arrange");
            s.restart();
            s.run.at(5.3).ended("operator/1", "steps[2]");
        }),
        ("the probe begins", |s| {
            s.restart();
            s.run.at(5.3).phase(Phase::Probe);
        }),
        ("the settling is over", |s| {
            s.restart();
            s.run.at(5.3).settled(Phase::Settle, 0.1, false);
        }),
        ("a write whose outcome is not known may be the other's", |s| {
            s.restart();
            s.run.at(5.4).request(USER, "PATCH", SAMPLE);
        }),
        ("the operator still wrote when it was told to end", |s| {
            s.run.at(5.0).process_of(OPERATOR, ProcessEvent::Signalled { signal: "TERM".into() }, Some(RESTART));
            s.run.patch(OPERATOR, &s.sample, json!({"status": {"phase": "Ending"}}));
            let exited = ProcessEvent::Exited { code: Some(0), signal: None, expected: true, last_lines: Vec::new() };
            s.run.process_of(OPERATOR, exited, None).at(5.2).started(OPERATOR, RESTART);
        }),
        ("a write was under way when it was killed", |s| {
            s.run.at(4.9).request(OPERATOR, "PATCH", SAMPLE);
            s.restart();
        }),
    ];
    for (name, disturb) in cases {
        let mut scene = Scene::new();
        disturb(&mut scene);
        assert_eq!(scene.write().settle().text("quiet"), "", "{name}");
    }
    // A copied touch is a reason for whatever else is written.
    let mut scene = Scene::new();
    scene.duplicate(true);
    scene.run.at(5.3).patch(OPERATOR, &scene.child, touched.clone());
    check(scene.write(), expect![[""]]);
    // And so is one that is taken away again, and one on an object that is made.
    let mut scene = Scene::new();
    let removed = json!({"metadata": {"annotations": {"spiritlevel.dev/touched": null}}});
    scene.duplicate(true);
    scene.run.at(5.3).patch(OPERATOR, &scene.sample, removed);
    check(scene.write(), expect![[""]]);
    let mut scene = Scene::new();
    scene.duplicate(true);
    scene.run.at(5.3).create(OPERATOR, object("Secret", "sample-1-copy", touched));
    check(scene.write(), expect![[""]]);
}

#[test]
fn routine_in_the_wake_is_no_unrest() {
    let mut scene = Scene::new();
    scene.restart();
    let lease = scene.run.at(5.4).create(OPERATOR, object("Lease", "leader", json!({})));
    for n in 0..4 {
        scene.run.at(5.5).patch(OPERATOR, &lease, json!({"spec": {"renewTime": n}}));
    }
    scene.run.patch(OPERATOR, &scene.child, json!({}));
    check(&mut scene, expect![[""]]);
}
