//! Specimens: small operators, each broken in exactly one documented way, and their fixed twins.
//!
//! They serve the judge: an invariant counts as proven when the bug build of a specimen breaks it and the fixed build,
//! under the same fault, does not. What they share lies in this folder; what is broken lies in `patterns/`, a file each.

mod backoff;
mod child;
mod cli;
mod control;
mod error;
mod finalizer;
mod informer;
mod operator;
mod patterns;
mod sample;
mod status;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(cli::Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
