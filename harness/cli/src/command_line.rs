//! From arguments to an exit code.

use crate::{Exit, args::CommandLine, bug, commands, complain::complain, error::Error, stop::Stop, voice::aside};
use clap::{Parser, error::ErrorKind};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};
use tracing_subscriber::EnvFilter;

/// The whole program, after [`crate::intercept`].
pub fn command_line() -> ExitCode {
    let arguments = match CommandLine::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return unparsed(&error).into(),
    };
    let filter = EnvFilter::try_from_env("SPIRITLEVEL_LOG").unwrap_or_else(|_| EnvFilter::new("off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let stop = Stop::default();
    bug::watch(stop.token.clone());
    let ended = catch_unwind(AssertUnwindSafe(|| perform(arguments, &stop)));
    let exit = match ended {
        _ if bug::seen() => Exit::Bug,
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            complain(&error);
            error.exit()
        }
        Err(_) => Exit::Bug,
    };
    exit.into()
}

fn perform(arguments: CommandLine, stop: &Stop) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    runtime.block_on(async {
        let signals = tokio::spawn(stop.clone().on_signals());
        let ended = commands::perform(arguments.command, stop).await;
        signals.abort();
        ended
    })
}

/// clap's own code for mistakes is 2, which is inconclusive here.
fn unparsed(error: &clap::Error) -> Exit {
    let _ = error.print();
    if !error.use_stderr() {
        return Exit::Pass;
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && std::env::args().nth(1).is_some_and(|a| a == "run" || a == "lint")
    {
        aside(
            "\nhint: PATH is a scenario's file, a suite's folder or a folder of suites, such as `spiritlevel run scenarios`\n",
        );
    }
    Exit::Usage
}
