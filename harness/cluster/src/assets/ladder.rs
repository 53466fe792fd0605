//! The ladder itself.

use std::{fmt::Write, path::Path};

use super::{Binaries, ETCD_VERSION, KUBERNETES_VERSION, Sources, build, cache, download, platform};
use crate::{Error, Progress};

/// The binaries from the first step that has them. Later steps fill the cache, so they happen once.
pub async fn obtain(sources: &Sources, progress: &dyn Progress) -> Result<Binaries, Error> {
    if let Some(directory) = &sources.assets {
        return from_assets(directory, progress).await;
    }
    let cached = sources.cache_directory();
    if let Ok(binaries) = Binaries::in_directory(&cached) {
        tracing::debug!(directory = %cached.display(), "binaries from the cache");
        return Ok(binaries);
    }
    let lock = cache::lock(sources, progress).await?;
    // Somebody else may have filled it while we waited.
    let missing = match Binaries::in_directory(&cached) {
        Ok(binaries) => return Ok(binaries),
        Err(missing) => missing,
    };

    let mut tried = Tried::default();
    tried.add("SPIRITLEVEL_ASSETS", "not set");
    tried.add(&format!("cache {}", cached.display()), &format!("no {}", missing.join(", ")));
    let steps: [(&str, Step); 2] = [("download", Step::Download), ("go build", Step::Build)];
    for (name, step) in steps {
        let partial = cache::partial(&lock, sources)?;
        let filled = match step {
            Step::Download => download::fill(partial.path(), sources, progress).await?,
            Step::Build => build::fill(partial.path(), sources, progress).await?,
        };
        match filled {
            Ok(()) => {
                let binaries = Binaries::in_directory(partial.path())
                    .map_err(|missing| Error::AssetsIncomplete { directory: partial.path().to_owned(), missing })?;
                binaries.verify().await?;
                let binaries = cache::install(partial.path(), sources)?;
                progress.say(&format!("the control plane's binaries are now in {}", cached.display()));
                return Ok(binaries);
            }
            Err(reason) => {
                progress.say(&format!("{name}: {}", reason.lines().next().unwrap_or_default()));
                tried.add(name, &reason);
            }
        }
    }
    let (os, arch) = platform();
    let wanted = format!("Kubernetes {KUBERNETES_VERSION}, etcd {ETCD_VERSION} for {os}/{arch}");
    Err(Error::NoAssets { wanted, tried: tried.0, cache: cached })
}

/// Asked for by name: used as it is, or an error, never silently replaced by another step.
async fn from_assets(directory: &Path, progress: &dyn Progress) -> Result<Binaries, Error> {
    let binaries = Binaries::in_directory(directory)
        .map_err(|missing| Error::AssetsIncomplete { directory: directory.to_owned(), missing })?;
    binaries.verify().await?;
    progress.say(&format!("using the control plane's binaries in {}", directory.display()));
    Ok(binaries)
}

#[derive(Clone, Copy)]
enum Step {
    Download,
    Build,
}

/// What did not help, for people.
#[derive(Default)]
struct Tried(String);

impl Tried {
    fn add(&mut self, step: &str, reason: &str) {
        let line = if self.0.is_empty() { "" } else { "\n" };
        let reason = reason.trim_end().replace('\n', "\n      ");
        let _ = write!(self.0, "{line}  - {step}: {reason}");
    }
}
