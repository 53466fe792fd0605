//! What the format allows is read, without a single problem, and plans made of it are read back unchanged.

mod common;

use common::{folder, lint_files, read};
use serde_json::json;
use spiritlevel_model::{
    load::{load_expect, load_scenario, load_suite},
    plan::Plan,
    planning::{PlanOptions, plans},
    verdict::VerdictKind,
    yaml,
};

#[test]
fn everything_is_read_planned_and_read_back() {
    let dir = folder("wellformed");
    let suite = load_suite("spiritlevel.yaml", &read(&dir.join("spiritlevel.yaml")));
    for (name, runs) in [("smallest", 2), ("everything", 16)] {
        let scenario = load_scenario(name, &read(&dir.join(format!("{name}.yaml"))), suite.value.as_ref());
        let beside = dir.join(format!("{name}.expect.yaml"));
        let expect = beside.exists().then(|| load_expect("expect", &read(&beside)));
        assert_eq!(lint_files(&dir, &suite, Some(&scenario), expect.as_ref()), [], "{name}");
        let options = PlanOptions { repeat: if name == "everything" { 2 } else { 1 }, ..PlanOptions::default() };
        let made = plans(&suite, &scenario, expect.as_ref(), &options).unwrap();
        assert_eq!(made.len(), runs, "{name}");
        let mut namespaces: Vec<&str> = made.iter().map(|p| p.namespace.as_str()).collect();
        namespaces.dedup();
        assert_eq!(namespaces.len(), runs, "{name}: every run has a namespace of its own");
        for plan in &made {
            let written = yaml::to_yaml(plan).unwrap();
            let read: Plan = serde_json::from_value(yaml::parse(&written).0[0].to_value()).unwrap();
            assert_eq!(read, *plan, "{written}");
            // Nothing is left open but what the run alone knows.
            for open in written.split("($").skip(1).map(|s| s.split([')', '.', ' ']).next().unwrap()) {
                assert!(
                    ["binary", "module", "kubeconfig", "uid", "error", "stdout", "x"].contains(&open),
                    "{open} in\n{written}"
                );
            }
        }
    }
}

#[test]
fn a_plan_has_its_variant_its_values_and_its_expectation() {
    let dir = folder("wellformed");
    let suite = load_suite("spiritlevel.yaml", &read(&dir.join("spiritlevel.yaml")));
    let scenario = load_scenario("s", &read(&dir.join("everything.yaml")), suite.value.as_ref());
    let expect = load_expect("e", &read(&dir.join("everything.expect.yaml")));
    let made = plans(&suite, &scenario, Some(&expect), &PlanOptions::default()).unwrap();
    let titles: Vec<String> = made.iter().map(Plan::title).collect();
    assert_eq!(titles[3], "postgres/missed-events-and-crash [broken] (replicas=3, lag=2s)");
    let (one, broken, fixed) = (&made[0], &made[2], &made[4]);
    assert_eq!(broken.process.command[5..], ["--build", "broken"]);
    assert_eq!(broken.process.command[2], broken.namespace);
    assert_eq!(broken.process.env["EXTRA"], "1");
    assert_eq!(broken.process.env["SEED"], "seed-42");
    assert_eq!(broken.process.replicas, 1, "the scenario's count");
    assert_eq!(fixed.process.command, ["($binary)", "--webhook", "($module)/config"]);
    assert!(fixed.suite.operator.service_account.cluster_admin);
    assert_eq!(broken.operator_namespace, format!("{}-system", broken.namespace));
    assert_eq!(broken.bindings["namespaces"]["other"], json!(format!("{}-other", broken.namespace)));
    assert_eq!(broken.bindings["primary"], "pg-1-0");
    let crash = &broken.scenario.faults[1].matches;
    assert_eq!((crash.name.as_deref(), crash.nth), (Some("pg-1-2"), Some(3)));
    assert_eq!(json!(broken.scenario.faults[3].action)["reject"]["status"], 503);
    let wanted = broken.expect.as_ref().unwrap();
    assert_eq!(
        (wanted.verdict, wanted.findings[0].object.as_ref().unwrap().name.as_deref()),
        (VerdictKind::Fail, Some("pg-1-2-data"))
    );
    assert!(one.expect.is_none(), "no entry applies to replicas=1");
    assert_eq!(fixed.expect.as_ref().unwrap().verdict, VerdictKind::Pass);

    let again = plans(&suite, &scenario, Some(&expect), &PlanOptions::default()).unwrap();
    assert_eq!(again, made, "planning is repeatable");
    let other = plans(
        &suite,
        &scenario,
        None,
        &PlanOptions { nonce: 1, variants: vec!["fixed".into()], ..PlanOptions::default() },
    );
    let other = other.unwrap();
    assert_eq!(other.len(), 4);
    assert!(other[0].namespace != made[4].namespace && other[0].seed == made[4].seed);
}
