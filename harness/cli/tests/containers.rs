//! Stories with real kubelets, real pods and a real PostgreSQL, a bounded set of them: `cargo test --test containers`. One at a
//! time, since each has half a dozen databases. Without Docker, or without images, each is skipped with the reason.

mod session;

use spiritlevel::{Suite, model::suite::Provider};
use std::process::ExitCode;

fn main() -> ExitCode {
    let beside = |path: &str| (Suite::at(format!("scenarios/containers/{path}.yaml")).provider(Provider::K3s), " @k3s");
    let inside = |path: &str| {
        (Suite::at(format!("scenarios/{path}.yaml")).provider(Provider::Kind).operator_inside(), " @kind, inside")
    };
    let alone = |path: &str| {
        let suite = Suite::at(format!("scenarios/{path}.yaml")).provider(Provider::K3s).without_agent();
        (suite, " @k3s, no agent")
    };
    let webhook = Suite::at("operators-under-test/specimens/n11").provider(Provider::K3s).operator_inside();
    let suites = [
        alone("postgres/creates-and-rests"),
        (webhook, " @k3s, inside"),
        beside("primary-deleted"),
        beside("primary-evicted"),
        beside("node-crashes"),
        inside("postgres/creates-and-rests"),
        inside("containers/killed-in-fail-over"),
    ];
    session::run(&suites, 1)
}
