//! Whose a container is. Docker knows nothing of our processes: a killed harness leaves its containers behind, and the next
//! one has to tell them from those of a living one.
//!
//! Every container and network is named `spiritlevel-<root>-<id>…`: `root` stands for the directory of run directories,
//! `id` for one run directory in it, whose lock the kernel lifts when its owner dies.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use rand::{TryRng, rngs::SysRng};
use sha2::{Digest, Sha256};

use super::docker::Docker;
use crate::{
    Error, Progress, RunDirectory,
    run_directory::{OWNER_FILE, gate, root},
};

const PURPOSE: &str = "cluster";
/// Files in the directory of run directories: ids of what was kept. Who starts the next run leaves that alone.
const KEPT: &str = "kept-";

/// What a sweep removes, beside what nobody lives for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// What was kept on purpose stays.
    Stays,
    /// It goes as well.
    Goes,
}

/// A run directory and the name that goes with it. What bears the name goes when this is dropped, at the latest.
#[derive(Debug)]
pub(super) struct Owned {
    docker: Docker,
    name: String,
    directory: RunDirectory,
    kept: bool,
}

impl Owned {
    pub(super) fn new(docker: &Docker) -> Result<Self, Error> {
        let mut id = [0_u8; 4];
        SysRng.try_fill_bytes(&mut id).map_err(|source| Error::Random { source: Box::new(source) })?;
        let id = hex::encode(id);
        let directory = RunDirectory::create(&format!("{PURPOSE}-{id}"))?;
        let name = format!("{}{id}", prefix(&root()?));
        Ok(Self { docker: docker.clone(), name, directory, kept: false })
    }

    /// A name for containers and networks.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Leaves everything where it is, for somebody to look at, with a kubeconfig; where that is.
    pub(super) fn keep(&mut self, kubeconfig: &str) -> Result<PathBuf, Error> {
        use std::{io::Write, os::unix::fs::OpenOptionsExt};
        let root = root()?;
        let id = self.name.strip_prefix(&prefix(&root)).unwrap_or(&self.name);
        let path = root.join(format!("{KEPT}{id}"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.and_then(|mut f| f.write_all(kubeconfig.as_bytes()))
            .map_err(|source| Error::io("write", &path, source))?;
        self.kept = true;
        Ok(path)
    }

    /// Removes what bears the name.
    pub(super) async fn remove(&mut self) -> Result<(), Error> {
        if self.kept {
            return Ok(());
        }
        remove_named(&self.docker, &self.name).await?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Owned {
    /// A start that was given up, or a panic: nobody waits for an asynchronous end any more.
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let name = self.name.clone();
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async { remove_named(&Docker::connect().await.ok()?, &name).await.ok() })
        });
        let _ = removal.join();
    }
}

async fn remove_named(docker: &Docker, prefix: &str) -> Result<(), Error> {
    let (containers, networks) = docker.named(prefix).await?;
    futures::future::try_join_all(containers.iter().map(|c| docker.remove(c))).await?;
    futures::future::try_join_all(networks.iter().map(|n| docker.remove_network(n))).await?;
    Ok(())
}

/// Removes containers and networks whose harness is dead; says each. A machine without Docker has none.
pub async fn sweep(kept: Kept, progress: &dyn Progress) -> Result<usize, Error> {
    let Ok(docker) = Docker::connect().await else { return Ok(0) };
    let root = root()?;
    let prefix = prefix(&root);
    let (containers, networks) = docker.named(&prefix).await?;
    // After the list: whoever starts meanwhile is not on it.
    let mut living = living(&root)?;
    let kept_ids = kept_ids(&root)?;
    if kept == Kept::Stays {
        living.extend(kept_ids.iter().cloned());
    }
    let dead =
        |name: &&String| name.strip_prefix(&prefix).is_some_and(|rest| !living.iter().any(|id| rest.starts_with(id)));
    let mut removed = 0;
    for container in containers.iter().filter(dead) {
        docker.remove(container).await?;
        progress.say(&format!("removed the container {container}"));
        removed += 1;
    }
    for network in networks.iter().filter(dead) {
        docker.remove_network(network).await?;
        progress.say(&format!("removed the network {network}"));
        removed += 1;
    }
    for id in kept_ids.difference(&living) {
        let path = root.join(format!("{KEPT}{id}"));
        fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))?;
    }
    Ok(removed)
}

/// Two users, or two places for run directories, know nothing of each other's locks.
fn prefix(root: &Path) -> String {
    let hash = hex::encode(Sha256::digest(root.as_os_str().as_encoded_bytes()));
    format!("spiritlevel-{}-", &hash[..6])
}

/// Ids of what was kept.
fn kept_ids(root: &Path) -> Result<BTreeSet<String>, Error> {
    let entries = fs::read_dir(root).map_err(|source| Error::io("list", root, source))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter_map(|name| name.strip_prefix(KEPT).map(str::to_owned)).collect())
}

/// Ids of the run directories whose owner lives.
fn living(root: &Path) -> Result<BTreeSet<String>, Error> {
    let _gate = gate(root)?;
    let entries = fs::read_dir(root).map_err(|source| Error::io("list", root, source))?;
    let mut living = BTreeSet::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = name.strip_prefix("cluster-").and_then(|rest| rest.split('-').next()) else { continue };
        let Ok(lock) = OpenOptions::new().read(true).open(entry.path().join(OWNER_FILE)) else { continue };
        if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            living.insert(id.to_owned());
        }
    }
    Ok(living)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_locked_directories_are_alive() {
        let root = tempfile::tempdir().unwrap();
        let alive = RunDirectory::create_in(root.path(), "cluster-0a1b2c3d").unwrap();
        let other = RunDirectory::create_in(root.path(), "control-plane").unwrap();
        let dead = root.path().join("cluster-ffffffff-x");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(OWNER_FILE), "4711\n").unwrap();
        assert_eq!(living(root.path()).unwrap(), BTreeSet::from(["0a1b2c3d".to_owned()]));
        drop((alive, other));
        assert!(living(root.path()).unwrap().is_empty());
    }

    #[test]
    fn what_was_kept_is_known_by_its_file() {
        let root = tempfile::tempdir().unwrap();
        assert!(kept_ids(root.path()).unwrap().is_empty());
        fs::write(root.path().join("kept-0a1b2c3d"), "a kubeconfig").unwrap();
        fs::write(root.path().join("else"), "").unwrap();
        assert_eq!(kept_ids(root.path()).unwrap(), BTreeSet::from(["0a1b2c3d".to_owned()]));
    }

    #[test]
    fn roots_have_prefixes_of_their_own() {
        let one = prefix(Path::new("/run/user/1/spiritlevel"));
        assert_ne!(one, prefix(Path::new("/run/user/2/spiritlevel")));
        assert_eq!(one, prefix(Path::new("/run/user/1/spiritlevel")));
        assert!(one.len() == "spiritlevel-123456-".len(), "{one}");
    }
}
