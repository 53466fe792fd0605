//! Suites, scenarios and expectations with lint: every problem has its place in the file, a file is either read or told
//! what is wrong with it, and what was read is read back the same. Input: the text of a file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use spiritlevel_model::{
    lint::{Found, Project, ProjectScenario, lint},
    load::{Loaded, load_expect, load_scenario, load_suite},
    planning::{PlanOptions, plans},
    problem::Problem,
    scenario::Scenario,
    suite::Suite,
    yaml,
};
use std::{fmt::Debug, sync::LazyLock};

static SUITE: LazyLock<Loaded<Suite>> =
    LazyLock::new(|| load_suite("spiritlevel.yaml", include_str!("../../model/tests/wellformed/spiritlevel.yaml")));
static SCENARIO: LazyLock<Loaded<Scenario>> = LazyLock::new(|| {
    load_scenario("smallest.yaml", include_str!("../../model/tests/wellformed/smallest.yaml"), SUITE.value.as_ref())
});

fuzz_target!(|text: &str| {
    let name = "f.yaml";
    if text.contains("kind: Suite") {
        let suite = load_suite(name, text);
        check(text, &suite, |again| load_suite(name, again));
        let project = Project { suite: &suite, suite_dir: String::new(), scenarios: Vec::new(), look: &look };
        placed(text, name, &lint(&project));
    } else if text.contains("kind: Scenario") {
        let scenario = load_scenario(name, text, SUITE.value.as_ref());
        check(text, &scenario, |again| load_scenario(name, again, SUITE.value.as_ref()));
        lint_scenario(text, name, ProjectScenario { scenario: &scenario, dir: String::new(), expect: None });
        // Its matrix may be large; what is looked at is one plan, and whether the rest can be made.
        if scenario.value.as_ref().is_some_and(|s| s.spec.matrix.values().map(Vec::len).product::<usize>() < 16) {
            let _ = plans(&SUITE, &scenario, None, &PlanOptions::default());
        }
    } else {
        let expect = load_expect(name, text);
        check(text, &expect, |again| load_expect(name, again));
        lint_scenario(text, name, ProjectScenario { scenario: &SCENARIO, dir: String::new(), expect: Some(&expect) });
    }
});

fn lint_scenario(text: &str, name: &str, item: ProjectScenario<'_>) {
    let project = Project { suite: &SUITE, suite_dir: String::new(), scenarios: vec![item], look: &look };
    placed(text, name, &lint(&project));
}

fn look(path: &str) -> Found {
    match path {
        "" | "." | "crds" => Found::Folder,
        "pg-1.yaml" => Found::File("apiVersion: v1\nkind: Pod\nmetadata: {name: ($cluster)}\n".into()),
        _ => Found::Nothing,
    }
}

fn check<T: Clone + Debug + PartialEq + Serialize>(text: &str, loaded: &Loaded<T>, read: impl Fn(&str) -> Loaded<T>) {
    placed(text, "f.yaml", &loaded.problems);
    assert_eq!(loaded.value.is_some(), loaded.problems.is_empty(), "neither read nor told why:\n{text}");
    let Some(value) = &loaded.value else { return };
    let written = yaml::to_yaml(value).expect("what was read can be written");
    let again = read(&written);
    assert_eq!(again.value.as_ref(), Some(value), "written as\n{written}\nand then {:?}", again.problems);
}

fn placed(text: &str, file: &str, problems: &[Problem]) {
    // A carriage return alone ends a line of YAML too.
    let lines = text.split(['\n', '\r']).count();
    for problem in problems.iter().filter(|p| p.file == file) {
        let span = problem.span;
        assert!(!problem.message.is_empty());
        assert!(span.line >= 1 && span.column >= 1 && span.line <= lines + 1, "{problem:?} is nowhere in\n{text}");
        assert!(
            text.get(span.offset..span.offset + span.length).is_some(),
            "{problem:?} is nowhere in the {} bytes of\n{text}",
            text.len()
        );
    }
}
