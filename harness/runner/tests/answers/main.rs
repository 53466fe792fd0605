//! What `reject` answers, compared with what a real API server answers to the very same request: status, headers that
//! matter and the `Status` field by field.
//!
//! Each row provokes an answer, straight from the API server; then the request is sent again through the proxy, which
//! forges it. What cannot be provoked cheaply is compared with the API server's source in `harness/proxy/src/status`:
//! denying webhooks, 429 of API priority and fairness, an API server that shuts down (503), one whose etcd does not answer
//! (500).

mod forger;
mod ground;
mod rows;

use ground::Ground;
use libtest_mimic::{Arguments, Failed, Trial};
use std::{
    process::ExitCode,
    sync::{Arc, OnceLock},
};

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept().or_else(spiritlevel_operator::intercept) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // One after another: each arms the forger for one request.
    arguments.test_threads = Some(1);
    let shared: Arc<OnceLock<Result<Ground, String>>> = Arc::default();
    let trials = rows::all()
        .into_iter()
        .map(|(name, row)| {
            let shared = Arc::clone(&shared);
            Trial::test(name, move || {
                let ground = shared.get_or_init(|| Ground::new().map_err(|error| format!("{error:?}")));
                ground.as_ref().map_err(Failed::from)?.run(row)
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(Ok(ground)) = Arc::into_inner(shared).and_then(OnceLock::into_inner) {
        ground.end();
    }
    conclusion.exit_code()
}
