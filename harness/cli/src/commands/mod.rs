//! One file a command.

mod clean;
mod completions;
mod doctor;
mod faults;
mod invariants;
mod judge;
mod lint;
mod replay;
mod run;
mod schema;
mod setup;

pub(crate) use run::scenario_files;

use crate::{Error, Exit, args::Command, stop::Stop};

/// Does what is asked for.
pub(crate) async fn perform(command: Command, stop: &Stop) -> Result<Exit, Error> {
    match command {
        Command::Run(args) => run::run(args, stop).await,
        Command::Lint(args) => lint::lint(&args),
        Command::Judge(args) => judge::judge(&args),
        Command::Replay(args) => replay::replay(args, stop).await,
        Command::Setup => setup::setup(stop).await,
        Command::Doctor => doctor::doctor().await,
        Command::Clean => clean::clean().await,
        Command::Schema(args) => Ok(schema::schema(&args)),
        Command::Faults(args) => faults::faults(&args),
        Command::Invariants(args) => Ok(invariants::invariants(&args)),
        Command::Completions { shell } => Ok(completions::completions(shell)),
    }
}
