//! `etcdutl`, which only those need who restore snapshots: got when it is first asked for, then cached beside the others.

use std::{fs, path::PathBuf};

use super::{
    ETCD_VERSION, Sources,
    binaries::{is_program, verify_by},
    build, cache, download,
};
use crate::{Error, Progress};

const NAME: &str = "etcdutl";

/// Where it is.
pub(crate) async fn etcdutl(sources: &Sources, progress: &dyn Progress) -> Result<PathBuf, Error> {
    let cached = sources.cache_directory().join(NAME);
    let given = sources.assets.iter().map(|assets| assets.join(NAME));
    if let Some(found) = given.chain([cached.clone()]).find(|path| is_program(path)) {
        return verified(found).await;
    }
    let lock = cache::lock(sources, progress).await?;
    if is_program(&cached) {
        return verified(cached).await;
    }
    let mut tried = Vec::new();
    for step in ["download", "go build"] {
        let partial = cache::partial(&lock, sources)?;
        let filled = match step {
            "download" => download::etcd(NAME, partial.path(), sources, progress).await?,
            _ => build::etcdutl(partial.path(), sources, progress).await?,
        };
        if let Err(reason) = filled {
            tried.push(format!("{step}: {}", reason.trim_end()));
            continue;
        }
        let made = verified(partial.path().join(NAME)).await?;
        let directory = sources.cache_directory();
        fs::create_dir_all(&directory).map_err(|source| Error::io("make the cache directory", &directory, source))?;
        fs::rename(&made, &cached).map_err(|source| Error::io("move etcdutl to", &cached, source))?;
        return Ok(cached);
    }
    Err(Error::NoEtcdutl { tried: tried.join("; "), cache: cached })
}

async fn verified(path: PathBuf) -> Result<PathBuf, Error> {
    verify_by(&path, "version", "etcdutl version: ", ETCD_VERSION).await?;
    Ok(path)
}
