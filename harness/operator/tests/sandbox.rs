//! Sandboxes, by a program that is its own sandbox and its own operator.

mod operator;
mod trials;

use libtest_mimic::{Arguments, Failed, Trial};
use std::{env, future::Future, process::ExitCode};

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_operator::intercept() {
        return code;
    }
    let args: Vec<String> = env::args().skip(1).collect();
    if let Some((first, rest)) = args.split_first() {
        match &first[..] {
            "__operator" => return operator::main(rest),
            "__probe" => return on_runtime(trials::tell_probe()),
            "__harness" => return on_runtime(trials::doomed_harness(rest)),
            _ => {}
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials::all()).exit_code()
}

type Outcome = Result<(), Failed>;

fn trial<F: Future<Output = Outcome> + 'static>(name: &str, run: fn() -> F) -> Trial {
    Trial::test(name, move || on_runtime(run()))
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
