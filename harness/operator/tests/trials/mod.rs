//! What a sandbox promises.

mod fixture;
mod forbidden;
mod lifetime;
mod network;
mod signals;
mod surroundings;

use crate::{Outcome, trial};
use libtest_mimic::Trial;
use std::{env, process::Command};

pub(crate) use forbidden::tell_probe;
pub(crate) use lifetime::doomed_harness;

/// Set when the trials run again as an ordinary user.
const AGAIN: &str = "SPIRITLEVEL_TEST_AGAIN";

pub(crate) fn all() -> Vec<Trial> {
    let mut trials = vec![
        trial("the_operator_finds_a_pod_around_it", surroundings::the_operator_finds_a_pod_around_it),
        trial("a_new_token_is_seen", surroundings::a_new_token_is_seen),
        trial("output_is_kept_line_by_line", surroundings::output_is_kept_line_by_line),
        trial("what_cannot_start_is_an_error", surroundings::what_cannot_start_is_an_error),
        trial("in_cluster_needs_namespaces", surroundings::in_cluster_needs_namespaces),
        trial("the_host_network_works_without_namespaces", surroundings::the_host_network_works_without_namespaces),
        trial("the_host_network_keeps_in_cluster_access", surroundings::the_host_network_keeps_in_cluster_access),
        trial("this_machine_isolates", surroundings::this_machine_isolates),
        trial("where_it_is_forbidden_the_reason_is_told", forbidden::the_reason_is_told),
        trial("connections_are_refused_accepted_and_reset", network::connections_are_refused_accepted_and_reset),
        trial("the_listener_stays_across_restarts", network::the_listener_stays_across_restarts),
        trial("two_sandboxes_share_a_port", network::two_sandboxes_share_a_port),
        trial("the_harness_calls_inside", network::the_harness_calls_inside),
        trial("pod_addresses_can_be_served", network::pod_addresses_can_be_served),
        trial("ends_are_told", lifetime::ends_are_told),
        trial("dropping_kills_everything", lifetime::dropping_kills_everything),
        trial("nothing_outlives_a_killed_harness", lifetime::nothing_outlives_a_killed_harness),
        trial("nothing_outlives_a_killed_sandbox", lifetime::nothing_outlives_a_killed_sandbox),
        trial("nothing_outlives_a_killed_launcher", lifetime::nothing_outlives_a_killed_launcher),
        trial("stop_and_continue_reach_everyone", signals::stop_and_continue_reach_everyone),
        trial("kill_returns_when_all_are_dead", signals::kill_returns_when_all_are_dead),
        trial("stop_is_gentle_first", signals::stop_is_gentle_first),
    ];
    if env::var_os(AGAIN).is_none() && nix::unistd::geteuid().is_root() {
        trials.push(trial("all_of_it_as_an_ordinary_user", all_of_it_as_an_ordinary_user));
    }
    trials
}

/// As a user without any privilege, who needs a user namespace.
async fn all_of_it_as_an_ordinary_user() -> Outcome {
    let scratch = tempfile::tempdir()?;
    nix::unistd::chown(scratch.path(), Some(65534.into()), Some(65534.into()))?;
    // Where we lie ourselves may be closed to that user, as a home is.
    let this = scratch.path().join("sandbox");
    std::fs::copy(env::current_exe()?, &this)?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&this);
    command.env(AGAIN, "1").env("TMPDIR", scratch.path()).env("HOME", scratch.path());
    let output = command.current_dir(scratch.path()).output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() && out.contains(" 0 failed") { Ok(()) } else { Err(format!("{out}\n{err}").into()) }
}
