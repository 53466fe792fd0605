//! A build by a command of the suite.

use super::run::Run;
use super::{CommandBuild, Progress};
use crate::Error;
use std::path::PathBuf;

pub(super) async fn build(spec: &CommandBuild, progress: Progress<'_>) -> Result<PathBuf, Error> {
    let run = Run::new(&spec.command, &spec.dir);
    run.check(progress).await?;
    let path = std::path::absolute(spec.dir.join(&spec.produces));
    let path = path.map_err(|source| Error::Prepare { step: "find the current folder", source })?;
    if path.is_file() { Ok(path) } else { Err(Error::NotProduced { command: run.line(), path }) }
}
