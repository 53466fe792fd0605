//! What the tests of this crate share.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

pub(crate) type Outcome = Result<(), Failed>;

/// `main` of a test binary: the supervisor's re-execution comes before it.
pub(crate) fn main(threads: usize, trials: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(threads);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A test that needs a runtime.
pub(crate) fn trial<F>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = Outcome>,
{
    Trial::test(name, || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(test())
    })
}

/// Fails with what was seen instead.
pub(crate) fn ensure(holds: bool, seen: impl std::fmt::Debug) -> Outcome {
    if holds { Ok(()) } else { Err(format!("unexpected: {seen:#?}").into()) }
}
