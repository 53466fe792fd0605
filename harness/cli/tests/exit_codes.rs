//! Exit codes and words of the real binary, for all that needs no control plane.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

const SUITE: &str = "\
apiVersion: spiritlevel/v1alpha1
kind: Suite
metadata: {name: s}
spec:
  cluster: {provider: local}
  operator:
    process: {command: [./operator]}
  subject: {apiVersion: example.com/v1, kind: Thing, ready: {exists: true}}
";

const SCENARIO: &str = "\
apiVersion: spiritlevel/v1alpha1
kind: Scenario
metadata: {name: one}
spec:
  steps:
    - apply: {resource: {apiVersion: example.com/v1, kind: Thing, metadata: {name: t}}}
";

/// How a command ended.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn spiritlevel(dir: &Path, arguments: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_spiritlevel"))
        .args(arguments)
        .current_dir(dir)
        .env_remove("GITHUB_ACTIONS")
        .output()
        .expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ended { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

/// A folder with `s/spiritlevel.yaml`, `s/one.yaml` and an empty folder.
fn project(scenario: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for folder in ["s", "empty", "bare"] {
        std::fs::create_dir(dir.path().join(folder)).expect("a folder");
    }
    std::fs::write(dir.path().join("s/spiritlevel.yaml"), SUITE).expect("a file");
    std::fs::write(dir.path().join("bare/spiritlevel.yaml"), SUITE).expect("a file");
    std::fs::write(dir.path().join("s/one.yaml"), scenario).expect("a file");
    dir
}

#[test]
fn mistakes_on_the_command_line_are_4_and_say_what_to_do() {
    let dir = project(SCENARIO);
    for (arguments, said) in [
        (&["run"][..], "a suite's folder or a folder of suites"),
        (&["lint"], "a suite's folder or a folder of suites"),
        (&["run", "nope"], "there is no nope"),
        (&["run", "empty"], "no spiritlevel.yaml in empty or above"),
        (&["run", "bare"], "there is no scenario in bare"),
        (&["lint", "bare"], "there is no scenario in bare"),
        (&["run", "s", "--filter", "zzz"], "nothing is selected by --filter zzz"),
        (&["run", "s", "--filter", "zzz"], "s/one"),
        (&["run", "s", "--shard", "2/2"], "nothing is selected by --shard 2/2"),
        (&["run", "s", "--shard", "3/2"], "1 ≤ i ≤ n"),
        (&["run", "s", "--deadline", "ten"], "\"1m30s\""),
        (&["run", "s", "--timeout-scale", "0"], "above 0"),
        (&["run", "s", "--jobs", "0"], "at least 1"),
        (&["run", "s", "--output", "xml"], "text, json"),
        (&["walk"], "unrecognized subcommand"),
        (&[], "Usage: spiritlevel"),
        (&["judge", "empty"], "give a run's folder"),
        (&["judge", "nope"], "give a run's folder"),
        (&["replay", "s/one.yaml"], "not a plan"),
    ] {
        let ended = spiritlevel(dir.path(), arguments);
        assert_eq!(ended.code, 4, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(said), "{arguments:?} does not say {said:?}:\n{}", ended.err);
        assert_eq!(ended.out, "", "{arguments:?}");
    }
}

#[test]
fn questions_are_answered_with_0() {
    let dir = project(SCENARIO);
    for (arguments, said) in [
        (&["--help"][..], "Exit codes: 0 pass"),
        (&["run", "--help"], "--timeout-scale"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["invariants"], "noOrphans       on"),
        (&["invariants", "--output", "json"], "\"onByDefault\": true"),
        (&["schema"], "\"suite\""),
        (&["schema", "scenario"], "a scenario file: one story"),
        (&["completions", "bash"], "_spiritlevel"),
        (&["lint", "s"], "1 scenario in 1 suite: 0 errors"),
    ] {
        let ended = spiritlevel(dir.path(), arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
        assert!(ended.out.contains(said), "{arguments:?} does not say {said:?}:\n{}", ended.out);
    }
}

#[test]
fn lint_tells_every_mistake_with_its_place_and_run_does_not_begin() {
    let wrong = SCENARIO.replace("steps:", "sed: 1\n  replicas: many\n  steps:");
    let dir = project(&wrong);
    let linted = spiritlevel(dir.path(), &["lint", "s"]);
    assert_eq!(linted.code, 4, "{}", linted.err);
    for said in ["unknown field `sed`", "did you mean `seed`?", "s/one.yaml:5:3", "s/one.yaml:6:13"] {
        assert!(linted.err.contains(said), "{said:?} in:\n{}", linted.err);
    }
    assert!(linted.out.contains("2 errors"), "{}", linted.out);
    let run = spiritlevel(dir.path(), &["run", "s"]);
    assert_eq!(run.code, 4, "{}", run.err);
    assert!(run.err.contains("unknown field `sed`") && run.err.contains("2 problems"), "{}", run.err);
    assert!(!dir.path().join("reports").exists());
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/orphan")
}

#[test]
fn a_recorded_run_is_judged_the_same_twice_and_as_it_was() {
    let dir = recorded();
    let (first, second) = (spiritlevel(&dir, &["judge", "."]), spiritlevel(&dir, &["judge", "."]));
    assert_eq!(first.code, 1, "{}", first.err);
    assert_eq!((first.code, &first.out, &first.err), (second.code, &second.out, &second.err));
    assert!(first.out.contains("FAIL noOrphans"), "{}", first.out);
    assert!(
        first.err.contains("byte for byte"),
        "after a change of the judge's words: spiritlevel judge . --output json > verdict.json\n{}\n{}",
        first.out,
        first.err
    );
    let (first, second) = (
        spiritlevel(&dir, &["judge", ".", "--output", "json"]),
        spiritlevel(&dir, &["judge", ".", "--output", "json"]),
    );
    assert_eq!((first.code, &first.out), (1, &second.out));
    assert!(first.out.contains("\"invariant\": \"noOrphans\""), "{}", first.out);
}

#[test]
fn a_history_that_was_cut_off_is_inconclusive_or_an_error_and_never_a_pass() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy(recorded().join("plan.yaml"), dir.path().join("plan.yaml")).expect("a file");
    let history = std::fs::read_to_string(recorded().join("history.jsonl")).expect("a file");
    let half = &history[..history.len() / 8];
    std::fs::write(dir.path().join("history.jsonl"), half).expect("a file");
    let ended = spiritlevel(dir.path(), &["judge", "."]);
    assert_eq!(ended.code, 3, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("the run was broken off"), "{}", ended.out);

    std::fs::write(dir.path().join("history.jsonl"), format!("nonsense\n{history}")).expect("a file");
    let ended = spiritlevel(dir.path(), &["judge", "."]);
    assert_eq!(ended.code, 4, "{}", ended.err);
    assert!(ended.err.contains("line 1"), "{}", ended.err);
}

#[test]
fn a_recorded_plan_needs_its_suite() {
    let ended = spiritlevel(&recorded(), &["replay", "."]);
    assert_eq!(ended.code, 4, "{}", ended.err);
    assert!(ended.err.contains("relative to the folder in which `spiritlevel run` was started"), "{}", ended.err);
}

#[test]
fn a_folder_without_the_programs_is_an_error_that_names_them() {
    let dir = project(SCENARIO);
    let output = Command::new(env!("CARGO_BIN_EXE_spiritlevel"))
        .args(["run", "s"])
        .current_dir(dir.path())
        .env("SPIRITLEVEL_ASSETS", dir.path().join("empty"))
        .output()
        .expect("the binary starts");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("has no executable file etcd, kube-apiserver, kube-controller-manager"), "{out}");
    assert!(out.contains("1 error"), "{out}");
    let summary = std::fs::read_to_string(dir.path().join("reports/summary.json")).expect("a summary");
    assert!(summary.contains("\"outcome\": \"error\""), "{summary}");
}
