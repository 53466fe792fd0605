//! The kubelet stub beside the real controllers: what they make of its writes is what counts.

mod connections;
mod ground;
mod objects;
mod pods;
mod relay;
mod volumes;
mod workloads;

use std::{
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use ground::{Ground, Test};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept() {
        return code;
    }
    let arguments = Arguments::from_args();
    let shared: Arc<OnceLock<Result<Ground, String>>> = Arc::default();
    let trials: [(&str, Test); 13] = [
        ("stateful_set_gets_ready_scales_and_leaves_no_volume", |c| Box::pin(workloads::stateful_set(c))),
        ("a_pods_life_has_no_version_too_many", |c| Box::pin(pods::versions(c))),
        ("jobs_complete_and_fail", |c| Box::pin(workloads::jobs(c))),
        ("deployment_rolls_out", |c| Box::pin(workloads::deployment(c))),
        ("daemon_set_gets_ready", |c| Box::pin(workloads::daemon_set(c))),
        ("claim_grows", |c| Box::pin(volumes::expansion(c))),
        ("claim_waits_for_its_first_consumer", |c| Box::pin(volumes::first_consumer(c))),
        ("pod_waits_for_its_claim", |c| Box::pin(volumes::missing_claim(c))),
        ("deletion_takes_the_grace_period_at_most", |c| Box::pin(pods::grace(c))),
        ("killed_pod_restarts_or_fails", |c| Box::pin(pods::kill(c))),
        ("set_pod_holds_until_cleared", |c| Box::pin(pods::set_pod(c))),
        ("gates_are_respected", |c| Box::pin(pods::gates(c))),
        ("lost_connections_are_survived", |c| Box::pin(connections::lost_connections(c))),
    ];
    let trials = trials
        .into_iter()
        .map(|(name, test)| {
            let shared = Arc::clone(&shared);
            Trial::test(name, move || {
                let ground = shared.get_or_init(|| Ground::new().map_err(|error| format!("{error:?}")));
                ground.as_ref().map_err(Failed::from)?.run(name, test)
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(Ok(ground)) = Arc::into_inner(shared).and_then(OnceLock::into_inner) {
        ground.end();
    }
    conclusion.exit_code()
}
