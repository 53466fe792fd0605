//! From exchanges to versions: one row for each way to write, against a real API server.
//!
//! Each row sends requests as several actors through the proxy and says who made every version of the objects that they
//! are about. The witness says which versions there are, and the ledger who made them: the two must agree with the row.

mod ground;
mod row;
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
    // One after another: the last row looks at the history of all.
    arguments.test_threads = Some(1);
    let shared: Arc<OnceLock<Result<Ground, String>>> = Arc::default();
    let trials = rows::all()
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
