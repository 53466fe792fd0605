//! The command line, and what runs for it.

use std::io::IsTerminal;

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    error::{Error, Result},
    operator::Operator,
    patterns::{Build, Pattern},
    sample,
};

/// Operators that are broken in exactly one documented way, and their fixed twins.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    print: Option<Print>,
    #[command(flatten)]
    specimen: Option<Specimen>,
}

#[derive(Debug, Subcommand)]
enum Print {
    /// Print the CustomResourceDefinition of `Sample` as YAML.
    Crd,
}

#[derive(Debug, Args)]
struct Specimen {
    /// Which specimen to run.
    #[arg(long, value_enum)]
    pattern: Pattern,
    /// The broken build or its twin; a negative control has only the fixed one.
    #[arg(long, value_enum, default_value_t = Build::Fixed)]
    build: Build,
    /// The namespace whose Samples it serves.
    #[arg(long)]
    namespace: String,
}

/// Prints the CRD, or runs a specimen until SIGTERM or Ctrl-C.
pub(crate) async fn run(cli: Cli) -> Result<()> {
    if let Some(Print::Crd) = cli.print {
        print!("{}", sample::definition()?);
        return Ok(());
    }
    let Specimen { pattern, build, namespace } =
        cli.specimen.expect("clap asks for these arguments without a subcommand");
    if build == Build::Bug && pattern.is_control() {
        return Err(Error::NoBugBuild(pattern));
    }
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "specimens=info,warn".into()),
        )
        .init();
    let operator = Operator::connect(namespace).await?;
    tracing::info!(?pattern, ?build, namespace = operator.namespace(), "started");
    let mut terminated = signal(SignalKind::terminate()).map_err(Error::Signal)?;
    tokio::select! {
        () = pattern.run(operator, build) => Ok(()),
        _ = terminated.recv() => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}
