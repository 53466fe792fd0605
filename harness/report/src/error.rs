//! What can go wrong while reporting.

use std::{io, path::PathBuf};

/// Why something could not be reported. Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A report's file.
    #[error("write {}; check that its folder is writable and the disk not full, or choose another --report-dir", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// Standard output.
    #[error("write to standard output")]
    Output(#[source] io::Error),
    /// The JUnit report.
    #[error("write the JUnit report")]
    Junit(#[from] quick_junit::SerializeError),
    /// A report in JSON.
    #[error("write a report in JSON")]
    Json(#[from] serde_json::Error),
}
