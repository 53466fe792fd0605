//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum, builder::styling};
use clap_complete::Shell;
use spiritlevel_model::{Period, Seed};
use std::path::PathBuf;

const STYLES: styling::Styles = styling::Styles::styled()
    .header(styling::AnsiColor::Green.on_default().bold())
    .usage(styling::AnsiColor::Green.on_default().bold())
    .literal(styling::AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Exit codes: 0 pass, 1 fail, 2 inconclusive, 3 error of the surroundings, 4 mistake in the command line or a file,
70 a bug of spiritlevel, 130 Ctrl-C, 143 SIGTERM. Of several runs the worst counts: fail, error, inconclusive, pass.";

/// Tells whether a Kubernetes operator reaches the declared state, stays quiet there and leaves nothing behind, whatever
/// it missed on the way.
#[derive(Debug, Parser)]
#[command(name = "spiritlevel", version, styles = STYLES, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run scenarios and judge them.
    Run(Run),
    /// Tell all mistakes in suites and scenarios, without running anything.
    Lint(Lint),
    /// Judge a recorded run again.
    Judge(Judge),
    /// Run a recorded plan again, with the same seed and choices.
    Replay(Replay),
    /// Get the control plane's programs: a download, or a build from source.
    Setup,
    /// Look whether this machine has what is needed.
    Doctor,
    /// Remove what killed runs left behind.
    Clean,
    /// Print the JSON Schema of the files.
    Schema(Schema),
    /// List what is judged.
    Invariants(Invariants),
    /// List what can be done to an operator.
    Faults(Faults),
    /// Print completions for a shell.
    Completions {
        /// Which.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A scenario's file, a suite's folder, or a folder of suites (searched for spiritlevel.yaml).
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) playing: Playing,
}

/// Where runs are made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where they are made")]
pub(crate) struct Place {
    /// Instead of the suites': processes with a kubelet stub, or clusters of containers with real pods.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<Provider>,
    /// The image of a node, for k3s and kind; else SPIRITLEVEL_K3S_IMAGE, SPIRITLEVEL_KIND_IMAGE, the public ones.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) cluster_image: Option<String>,
    /// k3s without a node: a control plane only, in a container without privileges, with the kubelet stub.
    #[arg(long)]
    pub(crate) no_agent: bool,
    /// Where the operator runs, for suites that say both.
    #[arg(long, value_name = "HOW")]
    pub(crate) operator: Option<OperatorAs>,
    /// Leave clusters of containers as they are, and say how to reach them.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Faults {
    /// Folders of suites in which examples are looked for.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// As a page in Markdown.
    #[arg(long)]
    pub(crate) page: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OperatorAs {
    /// As a process beside the cluster.
    Process,
    /// As a Deployment inside it.
    Deployment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// Processes on this machine.
    Local,
    /// A container of rancher/k3s's contract.
    K3s,
    /// Containers made by the kind CLI.
    Kind,
}

/// Which runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which runs")]
pub(crate) struct Selection {
    /// Instead of the scenarios' seeds.
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<Seed>,
    /// How often each run is made.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Only this variant of the operator; several times for several.
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Only runs whose `suite/scenario [variant]` contains this, or matches it as a glob.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Only the i-th of n parts, counted from 1: for several CI jobs.
    #[arg(long, value_name = "i/n", value_parser = shard)]
    pub(crate) shard: Option<(usize, usize)>,
}

/// How runs are made and told.
#[derive(Debug, Args)]
#[command(next_help_heading = "How they are made")]
pub(crate) struct Playing {
    /// Runs at once.
    #[arg(long, short, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    pub(crate) jobs: usize,
    /// Stop after the first run that does not pass.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Multiplies every limit, for slow machines.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) timeout_scale: f64,
    /// For the whole invocation, such as 10m: runs that are not done by then are inconclusive.
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub(crate) deadline: Option<Period>,
    /// Where reports go.
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub(crate) report_dir: PathBuf,
    /// For people, or one JSON document a line.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
    /// Tell what was found in runs that are as expected, too.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// A scenario's file, a suite's folder, or a folder of suites.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Warnings count as errors.
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Judge {
    /// A run's folder, with plan.yaml and history.jsonl.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// For people, or one JSON document: the verdict.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A run's folder, or its plan.yaml.
    #[arg(value_name = "DIR|PLAN")]
    pub(crate) plan: PathBuf,
    /// How often.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Where its report goes; the recorded run stays as it is.
    #[arg(long, value_name = "DIR", default_value = "reports/replay")]
    pub(crate) report_dir: PathBuf,
    /// For people, or one JSON document a line.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
    /// Multiplies every limit, for slow machines.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) timeout_scale: f64,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Of one kind of file only.
    pub(crate) file: Option<FileKind>,
}

#[derive(Debug, Args)]
pub(crate) struct Invariants {
    /// For people, or one JSON document.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FileKind {
    /// spiritlevel.yaml
    Suite,
    /// A scenario.
    Scenario,
    /// NAME.expect.yaml
    Expect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

fn seed(text: &str) -> Result<Seed, String> {
    text.parse().map(Seed).map_err(|_| "a seed is a whole number, such as 42".into())
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse::<usize>().ok()?, n.parse::<usize>().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("write i/n with 1 ≤ i ≤ n, such as 2/3".into()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "a number, at least 1".into())
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0 && *n <= 1000.0);
    number.ok_or_else(|| "a number above 0, such as 2 or 1.5".into())
}

fn period(text: &str) -> Result<Period, String> {
    text.parse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        assert_eq!(shard("2/3"), Ok((2, 3)));
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", "/"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "NaN", "inf", "x"] {
            assert!(factor(wrong).is_err(), "{wrong}");
        }
        assert!(at_least_one("0").is_err() && at_least_one("2") == Ok(2));
    }
}
