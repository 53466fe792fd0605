use crate::{ControlPlane, Detail, Event, Output, Reporter, Settings, Surroundings, Tally, testing};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use spiritlevel_model::verdict::VerdictKind;
use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// What is told of these events, and what is left in `summary.json`.
fn told(settings: Settings, events: Vec<Event>) -> (String, String, Value, Tally) {
    let (out, err) = (Page::default(), Page::default());
    let settings = Settings { harness: "0.1.0".into(), ..settings };
    let mut reporter = Reporter::to(settings, Box::new(out.clone()), Box::new(err.clone()));
    for event in events {
        reporter.hear(event);
    }
    let dir = tempfile::tempdir().unwrap();
    let tally = reporter.finish(dir.path(), Duration::from_millis(23_400)).unwrap();
    let summary = std::fs::read_to_string(dir.path().join("summary.json")).unwrap();
    assert!(std::fs::read_to_string(dir.path().join("junit.xml")).unwrap().starts_with("<?xml"));
    let text = |page: &Page| page.text().replace(&dir.path().display().to_string(), "reports");
    (text(&out), text(&err), serde_json::from_str(&summary).unwrap(), tally)
}

fn check(settings: Settings, events: Vec<Event>, expected: Expect) {
    expected.assert_eq(&told(settings, events).0);
}

fn ready() -> Event {
    let took = Duration::from_millis(4600);
    Event::ControlPlaneReady(ControlPlane { provider: "local".into(), version: "v1.36.3".into(), took })
}

fn finished(run: crate::Finished) -> Event {
    Event::RunFinished(Box::new(run))
}

fn all() -> Vec<Event> {
    let runs = [testing::orphan(), testing::passed(), testing::inconclusive(), testing::error(), testing::expected()];
    let mut events = vec![ready()];
    events.extend(runs.into_iter().map(finished));
    events.push(Event::RunSkipped(testing::skipped()));
    events
}

#[test]
fn each_outcome_has_its_line_and_reasons_stand_below() {
    let settings = Settings { suite: Some("postgres-cluster".into()), ..Settings::default() };
    check(
        settings,
        all(),
        expect![[r#"
            spiritlevel 0.1.0 · local control plane v1.36.3, ready in 4.6 s, garbage collection proven · postgres-cluster

             ✗ postgres/crash-after-first-pvc                                 9.8 s   seed 42
                 FAIL noOrphans  PersistentVolumeClaim shop/pg-1-data-0 (uid 3f0c…) outlived its owner
                      created    by operator/0 at +2.31 s, request 41, without ownerReferences
                      owner      PostgresCluster shop/pg-1 (uid 9a11…) deleted at +8.02 s
                      cause      it has no ownerReferences, and nobody deleted it
                      fault      crash-after-first-pvc fired once, at +2.33 s on request 41, after the write was committed (always legal)
                      replay     spiritlevel replay reports/postgres/crash-after-first-pvc/42

             ✓ postgres/dropped-watch-events                                  7.2 s   seed 42   3 faults fired, settled after 1.9 s
             ? postgres/conflict-on-status                                    6.1 s   seed 42   inconclusive: fault conflict never fired: nothing matched
                      also       the settling did not end within 90 s
                      replay     spiritlevel replay reports/postgres/conflict-on-status/42

             ! postgres/no-start                                              0.3 s   seed 42   error: the operator ended before the first step with exit code 1; its last lines:
                      panic: no such file
                      exit

             ✓ postgres/no-owner [bug]                                        7.2 s   seed 42   (fails as expected: noOrphans ×2, heals)   settled after 1.9 s
             – postgres/real-data                                         skipped: needs pods that run (requires.realPods)

            1 failed, 1 error, 2 passed, 1 inconclusive, 1 skipped · reports/summary.json
        "#]],
    );
}

#[test]
fn verbose_tells_what_was_found_where_it_was_expected() {
    let settings = Settings { detail: Detail::Verbose, ..Settings::default() };
    check(
        settings,
        vec![ready(), finished(testing::expected())],
        expect![[r"
        spiritlevel 0.1.0 · local control plane v1.36.3, ready in 4.6 s, garbage collection proven

         ✓ postgres/no-owner [bug]                                        7.2 s   seed 42   (fails as expected: noOrphans ×2, heals)   settled after 1.9 s
             FAIL noOrphans  ConfigMap a/one outlived its owner
             FAIL noOrphans  ConfigMap a/two outlived its owner
             FAIL heals  ConfigMap a/one did not come back

        1 passed · reports/summary.json
    "]],
    );
}

#[test]
fn what_was_expected_and_did_not_come_is_a_failure() {
    check(
        Settings::default(),
        vec![ready(), finished(testing::mismatch())],
        expect![[r"
        spiritlevel 0.1.0 · local control plane v1.36.3, ready in 4.6 s, garbage collection proven

         ✗ postgres/no-owner [bug]                                        7.2 s   seed 42
             EXPECTATION expected the verdict fail, got pass
             EXPECTATION expected noOrphans on ConfigMap sample-1-settings, it holds
                  replay     spiritlevel replay 'reports/postgres/no-owner [bug]/42'

        1 failed · reports/summary.json
    "]],
    );
}

#[test]
fn many_findings_stay_on_one_screen() {
    let many: Vec<Value> =
        (0..20).map(|i| testing::finding("noOrphans", &format!("ConfigMap a/c-{i} outlived its owner"))).collect();
    let run = testing::run("many", json!({"verdict": "fail", "findings": many}));
    let (text, ..) = told(Settings::default(), vec![finished(run)]);
    assert!(text.lines().count() < 24, "{text}");
    assert!(text.contains("11 more findings"), "{text}");
}

#[test]
fn the_same_long_reason_is_told_once() {
    let mut second = testing::error();
    second.title = "postgres/other".into();
    let (text, _, summary, _) = told(Settings::default(), vec![finished(testing::error()), finished(second)]);
    assert_eq!(text.matches("panic: no such file").count(), 1, "{text}");
    assert!(text.contains("its last lines: (as for postgres/no-start)"), "{text}");
    assert_eq!(summary["runs"][0]["reasons"], summary["runs"][1]["reasons"]);
}

#[test]
fn json_has_one_document_a_line_and_nothing_else() {
    let settings = Settings { output: Output::Json, ..Settings::default() };
    let (text, ..) = told(settings, all());
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = lines.iter().map(|l| l["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run", "run", "run", "run", "run", "skipped", "summary"]);
    assert_eq!(lines[0]["verdict"]["findings"][0]["invariant"], "noOrphans");
    assert_eq!(lines[4]["outcome"], "pass");
    assert_eq!(lines[6]["counts"], json!({"passed": 2, "failed": 1, "inconclusive": 1, "errors": 1, "skipped": 1}));
}

#[test]
fn the_summary_file_has_every_run_and_the_worst_outcome() {
    let (_, _, summary, tally) = told(Settings::default(), all());
    assert_eq!(tally.worst(), VerdictKind::Fail);
    assert_eq!(summary["schemaVersion"], 1);
    assert_eq!(summary["outcome"], "fail");
    assert_eq!(summary["kubernetes"], "v1.36.3");
    assert_eq!(summary["runs"].as_array().unwrap().len(), 5);
    assert_eq!(summary["runs"][0]["dir"], "reports/postgres/crash-after-first-pvc/42");
    assert_eq!(summary["skipped"][0]["title"], "postgres/real-data");
}

#[test]
fn annotations_are_only_for_github() {
    let surroundings = Surroundings { github: true, ..Surroundings::default() };
    let (text, ..) = told(Settings { surroundings, ..Settings::default() }, all());
    let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("::")).collect();
    expect![[r"
        ::error file=scenarios/postgres/crash-after-first-pvc.yaml,title=postgres/crash-after-first-pvc::noOrphans: PersistentVolumeClaim shop/pg-1-data-0 (uid 3f0c…) outlived its owner
        ::warning file=scenarios/postgres/conflict-on-status.yaml,title=postgres/conflict-on-status::inconclusive: fault conflict never fired: nothing matched
        ::error file=scenarios/postgres/no-start.yaml,title=postgres/no-start::error: the operator ended before the first step with exit code 1; its last lines:
    "]].assert_eq(&(lines.join("\n") + "\n"));
    assert!(!told(Settings::default(), all()).0.contains("::"));
}

#[test]
fn progress_and_notices_go_beside_the_results() {
    let events = vec![
        Event::Progress("building etcd".into()),
        Event::Notice("operators run in this machine's network".into()),
        Event::CleanupFailed { of: "postgres/drift".into(), why: "namespace a is still there".into() },
    ];
    let (text, aside, summary, tally) = told(Settings::default(), events);
    expect![[r"
         … building etcd
        note: operators run in this machine's network
        note: clearing up after postgres/drift failed: namespace a is still there
    "]]
    .assert_eq(&aside);
    expect![[r"
        spiritlevel 0.1.0

        nothing was run · reports/summary.json
    "]]
    .assert_eq(&text);
    assert_eq!(summary["cleanupFailures"].as_array().unwrap().len(), 1);
    assert_eq!(tally.worst(), VerdictKind::Pass);
}

#[test]
fn colours_change_no_character() {
    let surroundings = Surroundings { colour: true, ..Surroundings::default() };
    let (coloured, ..) = told(Settings { surroundings, ..Settings::default() }, all());
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    assert_eq!(plain, told(Settings::default(), all()).0);
}
