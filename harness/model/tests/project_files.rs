//! Every suite and scenario of the repository is free of problems, can be planned, written as a plan and read back.

mod common;

use common::{folder, lint_files, read};
use spiritlevel_model::{
    load::{load_expect, load_scenario, load_suite},
    plan::Plan,
    planning::{PlanOptions, plans},
    yaml,
};
use std::path::{Path, PathBuf};

fn suites(under: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(under).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            suites(&path, found);
        } else if entry.file_name() == "spiritlevel.yaml" {
            found.push(path);
        }
    }
}

#[test]
fn every_suite_of_the_repository_is_planned_and_plans_round_trip() {
    let root = folder("../../..");
    let mut files = Vec::new();
    for folder in ["operators-under-test", "scenarios"] {
        suites(&root.join(folder), &mut files);
    }
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let suite = load_suite(&file.display().to_string(), &read(&file));
        assert_eq!(suite.problems, [], "{}", file.display());
        for entry in std::fs::read_dir(file.parent().unwrap()).unwrap().flatten() {
            let path = entry.path();
            let name = path.display().to_string();
            if path.extension().is_none_or(|e| e != "yaml") || !read(&path).contains("kind: Scenario") {
                continue;
            }
            let text = read(&path);
            let scenario = load_scenario(&name, &text, suite.value.as_ref());
            assert_eq!(scenario.problems, [], "{name}");
            let beside = path.with_extension("expect.yaml");
            let expect = std::fs::read_to_string(&beside).ok().map(|t| load_expect(&beside.display().to_string(), &t));
            let problems = lint_files(file.parent().unwrap(), &suite, Some(&scenario), expect.as_ref());
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert!(told.is_empty(), "{}", told.join("\n"));
            let made = plans(&suite, &scenario, expect.as_ref(), &PlanOptions::default()).unwrap();
            assert!(!made.is_empty(), "{name}");
            for plan in made {
                assert!(plan.expect.is_some() || expect.is_none(), "{name}: no expectation for {}", plan.title());
                let written = yaml::to_yaml(&plan).unwrap();
                let (documents, flaws) = yaml::parse(&written);
                assert_eq!(flaws, [], "{name}:\n{written}");
                let read: Plan = serde_json::from_value(documents[0].to_value()).unwrap();
                assert_eq!(read, plan, "{name}:\n{written}");
            }
        }
    }
}
