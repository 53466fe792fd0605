//! Every scenario of this repository that needs no real pods as a test: `cargo test --test scenarios drift`.

mod session;

use spiritlevel::Suite;
use std::process::ExitCode;

fn main() -> ExitCode {
    let suites = Suite::at("scenarios/postgres").and("scenarios/faults").and("scenarios/cluster");
    session::run(&[(suites.and("operators-under-test/specimens"), "")], 4)
}
