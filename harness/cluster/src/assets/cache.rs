//! The cache: filled by one process at a time, and only ever seen complete.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::Path,
    time::Duration,
};

use tempfile::TempDir;

use super::{Binaries, Sources};
use crate::{Error, Progress};

/// The right to fill the cache; lifted by the kernel when its holder dies.
pub(super) struct CacheLock(#[expect(dead_code, reason = "held for its effect")] File);

/// Waits until no other process fills the cache.
pub(super) async fn lock(sources: &Sources, progress: &dyn Progress) -> Result<CacheLock, Error> {
    let root = &sources.cache;
    fs::create_dir_all(root).map_err(|source| Error::io("make the cache directory", root, source))?;
    let path = root.join(".lock");
    let in_lock = |source| Error::io("lock", &path, source);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(in_lock)?;
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(CacheLock(file)),
            Err(TryLockError::Error(source)) => return Err(in_lock(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        if !said {
            progress.say("another spiritlevel is getting the control plane's binaries: waiting for it");
            said = true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

const PARTIAL: &str = ".partial-";

/// An empty directory beside the cache's own, to be filled and then [`install`]ed. Gone when dropped; those of killed
/// processes go now. Needs the lock.
pub(super) fn partial(_lock: &CacheLock, sources: &Sources) -> Result<TempDir, Error> {
    let root = &sources.cache;
    let entries = fs::read_dir(root).map_err(|source| Error::io("list", root, source))?;
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PARTIAL)) {
        let left = entry.path();
        fs::remove_dir_all(&left).map_err(|source| Error::io("remove the incomplete", &left, source))?;
    }
    let made = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(root);
    made.map_err(|source| Error::io("make a directory in", root, source))
}

/// Puts a complete directory in the cache's place at once.
pub(super) fn install(partial: &Path, sources: &Sources) -> Result<Binaries, Error> {
    let target = sources.cache_directory();
    if target.exists() {
        // Incomplete, or it would have been used; and we hold the lock.
        fs::remove_dir_all(&target).map_err(|source| Error::io("remove the incomplete", &target, source))?;
    }
    fs::rename(partial, &target).map_err(|source| Error::io("move the binaries to", &target, source))?;
    Binaries::in_directory(&target).map_err(|missing| Error::AssetsIncomplete { directory: target, missing })
}
