//! `junit.xml`, which every CI system reads.

use crate::{Detail, Error, Finished, Look, annotation::reason, block::block, summary::Heard};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use spiritlevel_model::verdict::VerdictKind;
use std::{path::Path, time::Duration};

/// Writes the report.
pub(crate) fn write(heard: &Heard, took: Duration, path: &Path) -> Result<(), Error> {
    let text = report(heard, took).to_string()?;
    std::fs::write(path, text).map_err(|source| Error::File { path: path.into(), source })
}

fn report(heard: &Heard, took: Duration) -> Report {
    let mut suites: Vec<TestSuite> = Vec::new();
    let cases = heard.runs.iter().map(|run| (run.title.as_str(), case(run)));
    let skipped = heard.skipped.iter().map(|run| {
        let mut status = TestCaseStatus::skipped();
        status.set_message(run.why.as_str());
        (run.title.as_str(), TestCase::new(run.title.as_str(), status))
    });
    for (title, mut case) in cases.chain(skipped) {
        let (suite, name) = title.split_once('/').unwrap_or(("", title));
        case.name = name.into();
        case.set_classname(suite);
        let index = suites.iter().position(|s| s.name.as_str() == suite).unwrap_or_else(|| {
            suites.push(TestSuite::new(suite));
            suites.len() - 1
        });
        suites[index].add_test_case(case);
    }
    let mut report = Report::new("spiritlevel");
    report.set_time(took).add_test_suites(suites);
    report
}

/// JUnit knows failures, errors and skipped; what is inconclusive is no success, and its type says so.
fn case(run: &Finished) -> TestCase {
    let verdict = &run.verdict;
    let kind = match verdict.outcome() {
        VerdictKind::Pass => None,
        VerdictKind::Fail => Some((NonSuccessKind::Failure, "fail")),
        VerdictKind::Inconclusive => Some((NonSuccessKind::Error, "inconclusive")),
        VerdictKind::Error => Some((NonSuccessKind::Error, "error")),
    };
    let status = match kind {
        None => TestCaseStatus::success(),
        Some((kind, name)) => {
            let mut status = TestCaseStatus::non_success(kind);
            status.set_type(name).set_message(reason(verdict)).set_description(block(run, Detail::Brief, Look::Plain));
            status
        }
    };
    let mut case = TestCase::new(run.title.as_str(), status);
    case.set_time(Duration::from_secs_f64(verdict.duration_ms.max(0.0) / 1000.0));
    case.add_property(("seed", verdict.seed.to_string().as_str()));
    if let Some(file) = &run.file {
        case.extra.insert("file".into(), file.as_str().into());
    }
    case
}

#[cfg(test)]
mod tests {
    use crate::{summary::Heard, testing};
    use expect_test::expect;
    use std::time::Duration;

    #[test]
    fn every_outcome_has_its_place() {
        let runs = vec![testing::orphan(), testing::passed(), testing::inconclusive(), testing::error()];
        let heard = Heard { runs, skipped: vec![testing::skipped()], ..Heard::default() };
        let text = super::report(&heard, Duration::from_millis(23_400)).to_string().unwrap();
        expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="spiritlevel" tests="5" skipped="1" failures="1" errors="2" time="23.400">
                <testsuite name="postgres" tests="5" skipped="1" errors="2" failures="1">
                    <testcase name="crash-after-first-pvc" classname="postgres" time="9.800" file="scenarios/postgres/crash-after-first-pvc.yaml">
                        <properties>
                            <property name="seed" value="42"/>
                        </properties>
                        <failure message="noOrphans: PersistentVolumeClaim shop/pg-1-data-0 (uid 3f0c…) outlived its owner" type="fail"> ✗ postgres/crash-after-first-pvc                                 9.8 s   seed 42
                 FAIL noOrphans  PersistentVolumeClaim shop/pg-1-data-0 (uid 3f0c…) outlived its owner
                      created    by operator/0 at +2.31 s, request 41, without ownerReferences
                      owner      PostgresCluster shop/pg-1 (uid 9a11…) deleted at +8.02 s
                      cause      it has no ownerReferences, and nobody deleted it
                      fault      crash-after-first-pvc fired once, at +2.33 s on request 41, after the write was committed (always legal)
                      replay     spiritlevel replay reports/postgres/crash-after-first-pvc/42
            </failure>
                    </testcase>
                    <testcase name="dropped-watch-events" classname="postgres" time="7.200" file="scenarios/postgres/dropped-watch-events.yaml">
                        <properties>
                            <property name="seed" value="42"/>
                        </properties>
                    </testcase>
                    <testcase name="conflict-on-status" classname="postgres" time="6.100" file="scenarios/postgres/conflict-on-status.yaml">
                        <properties>
                            <property name="seed" value="42"/>
                        </properties>
                        <error message="inconclusive: fault conflict never fired: nothing matched" type="inconclusive"> ? postgres/conflict-on-status                                    6.1 s   seed 42   inconclusive: fault conflict never fired: nothing matched
                      also       the settling did not end within 90 s
                      replay     spiritlevel replay reports/postgres/conflict-on-status/42
            </error>
                    </testcase>
                    <testcase name="no-start" classname="postgres" time="0.300" file="scenarios/postgres/no-start.yaml">
                        <properties>
                            <property name="seed" value="42"/>
                        </properties>
                        <error message="error: the operator ended before the first step with exit code 1; its last lines:" type="error"> ! postgres/no-start                                              0.3 s   seed 42   error: the operator ended before the first step with exit code 1; its last lines:
                      panic: no such file
                      exit
            </error>
                    </testcase>
                    <testcase name="real-data" classname="postgres">
                        <skipped message="needs pods that run (requires.realPods)"/>
                    </testcase>
                </testsuite>
            </testsuites>
        "#]].assert_eq(&text);
    }
}
