//! What keeps a command from doing its work. A failing operator is a verdict, never one of these.

use crate::Exit;
use spiritlevel_model::problem::Problem;
use std::{io, path::PathBuf};

/// Why a command could not do its work. Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for makes no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to write instead.
        help: String,
    },
    /// Files of the user's are wrong.
    #[error("use the suites and scenarios: {} in them", match problems.len() { 1 => "1 problem".to_owned(), n => format!("{n} problems") })]
    Problems {
        /// All of them.
        problems: Vec<Problem>,
    },
    /// The paths of a command line do not lead to suites.
    #[error("{0}")]
    Find(#[source] spiritlevel_runner::Error),
    /// Runs could not be made.
    #[error("make the runs")]
    Run(#[from] spiritlevel_runner::Error),
    /// The control plane's programs, or its directories.
    #[error("{0}")]
    Cluster(#[source] spiritlevel_cluster::Error),
    /// The operator's surroundings.
    #[error("{0}")]
    Operator(#[source] spiritlevel_operator::Error),
    /// Reports could not be written.
    #[error(transparent)]
    Report(#[from] spiritlevel_report::Error),
    /// A file of a recorded run.
    #[error("read {}", path.display())]
    Recorded {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file of a recorded run that says nothing we understand.
    #[error("read {}: {message}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// The runtime did not start.
    #[error("start threads")]
    Runtime(#[source] io::Error),
}

// === impl Error ===

impl Error {
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: help.into() }
    }

    /// Whose fault it is.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. }
            | Self::Problems { .. }
            | Self::Find(_)
            | Self::Malformed { .. }
            | Self::Recorded { .. } => Exit::Usage,
            Self::Run(_) | Self::Cluster(_) | Self::Operator(_) | Self::Report(_) | Self::Runtime(_) => Exit::Error,
        }
    }
}
