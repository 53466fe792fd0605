//! Flags, exit codes, and the life of the process.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use kube::{Client, Config, CustomResourceExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::crd::PostgresCluster;
use crate::error::Error;
use crate::lease::{Elector, Leadership, LeaseSettings};
use crate::{controller, password};

/// Asked to end, and ended.
const EXIT_OK: u8 = 0;
/// Could not start or go on; the cause is on stderr.
const EXIT_ERROR: u8 = 1;
/// The lease was lost. Not a fault: ending is how a replica makes sure that it writes no more.
const EXIT_LEASE_LOST: u8 = 3;
/// How long steps under way may take after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// The PostgresCluster operator.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The namespace whose clusters are reconciled; the operator's own by default.
    #[arg(long)]
    namespace: Option<String>,
    /// The image for a version. It must have Debian's user `postgres` (999) and PostgreSQL's programs in the path.
    #[arg(long, default_value = "postgres:{version}")]
    image: String,
    /// Only one of several replicas reconciles.
    #[arg(long)]
    leader_elect: bool,
    /// The namespace of the Lease; the operator's own by default.
    #[arg(long)]
    lease_namespace: Option<String>,
    /// The name of the Lease.
    #[arg(long, default_value = "postgres-cluster")]
    lease_name: String,
    /// Seconds that others wait after the holder's last sign of life.
    #[arg(long, default_value_t = 15)]
    lease_duration: u64,
    /// Seconds that the holder goes on without a successful renewal; less than the lease duration.
    #[arg(long, default_value_t = 10)]
    renew_deadline: u64,
    /// Seconds between renewals, or looks at somebody else's Lease.
    #[arg(long, default_value_t = 2)]
    retry_period: u64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the CustomResourceDefinition.
    Crd,
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Some(Command::Crd) => print_crd(),
        None => start(&arguments),
    };
    ExitCode::from(match done {
        Ok(()) => EXIT_OK,
        Err(Error::LeaseLost) => {
            tracing::error!("the lease is lost, ending");
            EXIT_LEASE_LOST
        }
        Err(error) => {
            eprintln!("{}", chain(&error));
            EXIT_ERROR
        }
    })
}

/// The CRD as YAML.
pub fn crd_yaml() -> Result<String, Error> {
    serde_yaml::to_string(&PostgresCluster::crd()).map_err(Error::Print)
}

fn print_crd() -> Result<(), Error> {
    print!("{}", crd_yaml()?);
    Ok(())
}

fn start(arguments: &Arguments) -> Result<(), Error> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    // A second install fails, and this is the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    // Dropping the runtime ends every task: after a lost lease nothing of this process writes.
    runtime.block_on(operate(arguments))
}

async fn operate(arguments: &Arguments) -> Result<(), Error> {
    let stop = stop_on_signal()?;
    let mut config = Config::infer().await.map_err(Error::NoCluster)?;
    // The reconciler retries, with backoff and after another look. A retry below it would repeat a decision that may be
    // wrong by now.
    config.default_retry = false;
    let own_namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(Error::api("build a client"))?;
    let namespace = arguments.namespace.clone().unwrap_or_else(|| own_namespace.clone());
    let identity = identity();
    tracing::info!(namespace, identity, "starting");
    let reconcile = |leadership| reconcile_until(&client, &namespace, &arguments.image, &identity, leadership, &stop);
    if !arguments.leader_elect {
        return reconcile(Leadership::default()).await;
    }

    let settings = LeaseSettings {
        namespace: arguments.lease_namespace.clone().unwrap_or(own_namespace),
        name: arguments.lease_name.clone(),
        identity: identity.clone(),
        duration: Duration::from_secs(arguments.lease_duration),
        renew_deadline: Duration::from_secs(arguments.renew_deadline),
        retry_period: Duration::from_secs(arguments.retry_period),
    };
    let mut elector = Elector::new(client.clone(), settings);
    let leadership = tokio::select! {
        leadership = elector.acquire() => leadership,
        () = stop.cancelled() => return Ok(()),
    };
    tokio::select! {
        lost = elector.hold(&leadership) => return Err(lost),
        done = reconcile(leadership.clone()) => done?,
    }
    // Only now, when no step is under way any more. A lease that cannot be given back runs out by itself.
    if let Err(error) = tokio::time::timeout(GRACE, elector.release()).await.unwrap_or(Err(Error::TimedOut(GRACE))) {
        tracing::warn!(error = &error as &dyn std::error::Error, "the lease is not released");
    }
    Ok(())
}

/// Reconciles until asked to stop, and then no longer than [`GRACE`].
async fn reconcile_until(
    client: &Client,
    namespace: &str,
    images: &str,
    identity: &str,
    leadership: Leadership,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let controller =
        controller::run(client.clone(), namespace, images, identity, leadership, stop.clone().cancelled_owned());
    let too_long = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = controller => {}
        () = too_long => tracing::warn!("steps under way did not end in time"),
    }
    Ok(())
}

fn stop_on_signal() -> Result<CancellationToken, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Start)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Start)?;
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    // Ends with the runtime; there is nothing to wait for.
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to end");
        cancel.cancel();
    });
    Ok(stop)
}

/// Unique for each process: two replicas may share a host name, and a restarted one is not its predecessor.
fn identity() -> String {
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{host}_{}_{}", std::process::id(), password::generate()[..8].to_lowercase())
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
