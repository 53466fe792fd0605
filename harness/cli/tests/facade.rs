//! The facade, as a test of an operator's author would use it.

use spiritlevel::{
    Suite,
    model::{suite::Provider, verdict::VerdictKind},
    run,
};
use std::path::{Path, PathBuf};

fn specimens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../operators-under-test/specimens")
}

fn reports() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("facade")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_cleans_up_after_itself() {
    let outcome =
        run(Suite::at(specimens().join("s01")).variant("fixed").report_dir(reports())).await.expect("runs are made");
    outcome.assert_passed();
    assert_eq!(outcome.runs.len(), 1);
    assert_eq!(outcome.worst(), VerdictKind::Pass);
    assert!(outcome.runs[0].dir.join("history.jsonl").is_file());
}

#[tokio::test]
async fn a_choice_of_nothing_is_an_error() {
    let error = run(Suite::at(specimens().join("s01")).filter("no such scenario")).await.expect_err("nothing to run");
    assert_eq!(error.to_string(), "nothing is selected");
}

#[tokio::test]
async fn a_control_plane_alone_skips_what_needs_real_pods() {
    let containers = specimens().join("../../scenarios/containers/rows-and-rest.yaml");
    let alone = Suite::at(containers).provider(Provider::K3s).without_agent().report_dir(reports());
    let outcome = run(alone).await.expect("nothing has to be started for this");
    let [(title, why)] = outcome.skipped.as_slice() else { panic!("it is skipped: {outcome}") };
    assert_eq!(title, "containers/rows-and-rest");
    assert_eq!(why, "needs pods that run (requires.realPods); provider k3s without its agent has a kubelet stub");
    assert!(outcome.runs.is_empty());
}
