//! A suite can start an operator.

use super::{
    celled, names,
    project::{Found, Project},
    resources,
    scene::join,
};
use crate::{
    bindings::{BUILT_IN, mentions_any},
    load::parse_manifests,
    problem::{Path, Problem},
    suite::{Build, Provider, RunAs, Suite},
};

pub(super) fn check(project: &Project<'_>, suite: &Suite) -> Vec<Problem> {
    let file = project.suite;
    let operator = &suite.spec.operator;
    let at = Path::parse("spec.operator");
    let mut problems = Vec::new();
    problems.extend(names::own(file, &suite.metadata));
    problems.extend(resources::in_defaults(project, suite));
    problems.extend(operator.build.iter().flat_map(|b| build(project, &at.key("build"), b)));
    for (name, variant) in &operator.variants {
        let at = at.key("variants").key(name);
        problems.extend(variant.build.iter().flat_map(|b| build(project, &at.key("build"), b)));
    }
    let process = at.key("process");
    if operator.process.replicas == 0 {
        problems.push(file.at_value(&process.key("replicas"), "without replicas there is no operator"));
    }
    let command = process.key("command");
    match operator.process.command.first() {
        None if operator.deployment.is_some() => {}
        None => problems.push(file.at_value(&command, "a command without a program")),
        Some(program) => {
            let from_module = ["binary", "module"].iter().find(|name| program.contains(&format!("(${name}")));
            let built = |b: &Option<Build>| b.as_ref().is_some_and(|b| b.go_module.is_some());
            let by_variant = !operator.variants.is_empty() && operator.variants.values().all(|v| built(&v.build));
            if let Some(name) = from_module.filter(|_| !built(&operator.build) && !by_variant) {
                let message = format!("`(${name})` is nothing without a Go module to build");
                let help = "add `build: {goModule: …}`, or name a program";
                problems.push(file.at_value(&command.index(0), message).with_help(help));
            }
        }
    }
    if operator.run == Some(RunAs::Deployment) && operator.deployment.is_none() {
        let help = "add `deployment: {manifests: […]}`";
        problems.push(file.at_value(&at.key("run"), "there is no deployment to run").with_help(help));
    }
    if let Some(deployment) = &operator.deployment
        && deployment.image_build.is_some()
        && deployment.image.is_none()
    {
        let help = "name it: `image: localhost/NAME:TAG`";
        problems.push(file.at_key(&at.key("deployment"), "the image that is made has no name").with_help(help));
    }
    if !suite.spec.cluster.agent && suite.spec.cluster.provider == Provider::Kind {
        let help = "only k3s can be a control plane alone: `provider: k3s`";
        let at = Path::parse("spec.cluster").key("agent");
        problems.push(file.at_value(&at, "kind has a kubelet on every node").with_help(help));
    }
    let ready = &suite.spec.subject.ready;
    let subject = Path::parse("spec.subject");
    if ready.condition.is_none() && ready.cel.is_none() && !ready.exists {
        let help = "`ready: {condition: Ready}`, `{cel: …}`, or `{exists: true}` for a kind without status";
        problems.push(file.at_key(&subject, "it is not said when a subject is ready").with_help(help));
    }
    let mut expressions =
        celled::in_invariants(&Path::parse("spec.defaults.invariants"), &suite.spec.defaults.invariants);
    expressions.extend(ready.cel.as_deref().map(|text| (subject.key("ready").key("cel"), text)));
    for (path, text) in expressions.into_iter().filter(|(_, text)| !mentions_any(text)) {
        problems.extend(celled::compile(text).map(|message| file.at_value(&path, message)));
    }
    for name in suite.spec.bindings.keys().filter(|name| BUILT_IN.contains(&name.as_str())) {
        let path = Path::parse("spec.bindings").key(name);
        problems.push(file.at_key(&path, format!("`{name}` is bound by the harness already")));
    }
    problems.extend(files(project, suite));
    problems
}

fn build(project: &Project<'_>, path: &Path, build: &Build) -> Vec<Problem> {
    let file = project.suite;
    match (&build.command, &build.produces, &build.go_module) {
        (None, _, None) => {
            let help = "`command` with `produces`, or `goModule`; without `build` the program is there already";
            vec![file.at_key(path, "a build that builds nothing").with_help(help)]
        }
        (Some(_), _, Some(_)) => {
            vec![file.at_key(&path.key("goModule"), "`command` and `goModule` exclude each other")]
        }
        (Some(command), _, None) if command.is_empty() => {
            vec![file.at_value(&path.key("command"), "a command without a program")]
        }
        (Some(_), None, None) => {
            let help = "so that it is seen whether the build worked";
            vec![file.at_key(path, "missing field `produces`").with_help(help)]
        }
        _ => Vec::new(),
    }
}

/// The manifests that a suite names are there; folders are looked into when they are used.
fn files(project: &Project<'_>, suite: &Suite) -> Vec<Problem> {
    let operator = Path::parse("spec.operator");
    let mut named: Vec<(Path, &[String])> = vec![
        (Path::parse("spec.crds"), &suite.spec.crds),
        (Path::parse("spec.before"), &suite.spec.before),
        (operator.key("serviceAccount").key("rbac"), &suite.spec.operator.service_account.rbac),
    ];
    for (name, variant) in &suite.spec.operator.variants {
        let at = operator.key("variants").key(name);
        named.extend(variant.crds.as_deref().map(|files| (at.key("crds"), files)));
        let account = variant.service_account.as_ref();
        named.extend(account.map(|a| (at.key("serviceAccount").key("rbac"), a.rbac.as_slice())));
    }
    let mut problems = Vec::new();
    for (at, files) in named {
        for (i, file) in files.iter().enumerate().filter(|(_, f)| !mentions_any(f)) {
            let path = join(&project.suite_dir, file);
            match (project.look)(&path) {
                Found::File(text) => problems.extend(parse_manifests(&path, &text).err().into_iter().flatten()),
                Found::Folder => {}
                Found::Nothing => {
                    let problem = project.suite.at_value(&at.index(i), format!("there is no file or folder `{path}`"));
                    problems.push(problem.with_help("paths start from the folder of the file they stand in"));
                }
            }
        }
    }
    problems
}
