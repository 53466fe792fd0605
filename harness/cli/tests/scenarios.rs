//! Every scenario of this repository that needs no real pods as a test: `cargo test --test scenarios drift`.

mod session;

use spiritlevel::Suite;
use std::process::ExitCode;

fn main() -> ExitCode {
    session::run(
        &[(Suite::at("scenarios/postgres").and("operators-under-test/specimens"), "")],
        4,
    )
}
