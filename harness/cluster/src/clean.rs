//! Finds and removes what harnesses that were killed could not remove themselves.

use std::{
    fs::{self, OpenOptions, TryLockError},
    path::Path,
};

use crate::{
    Error,
    run_directory::{OWNER_FILE, gate, root},
};

/// Removes the run directories whose owner is dead and returns one line for each. Their processes need no sweeping:
/// they end with the harness that started them.
pub fn sweep() -> Result<Vec<String>, Error> {
    sweep_in(&root()?)
}

fn sweep_in(root: &Path) -> Result<Vec<String>, Error> {
    let _gate = gate(root)?;
    let mut removed = Vec::new();
    let entries = fs::read_dir(root).map_err(|source| Error::io("list", root, source))?;
    for entry in entries.flatten() {
        let directory = entry.path();
        let owner_file = directory.join(OWNER_FILE);
        let Ok(lock) = OpenOptions::new().read(true).open(&owner_file) else { continue };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", &owner_file, source)),
        }
        let owner = fs::read_to_string(&owner_file).unwrap_or_default();
        fs::remove_dir_all(&directory).map_err(|source| Error::io("remove", &directory, source))?;
        removed.push(format!("{} (left by process {})", directory.display(), owner.trim()));
    }
    removed.sort();
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunDirectory;

    #[test]
    fn only_directories_without_a_living_owner_go() {
        let root = tempfile::tempdir().unwrap();
        let alive = RunDirectory::create_in(root.path(), "alive").unwrap();
        let dead = root.path().join("dead-1");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(OWNER_FILE), "4711\n").unwrap();
        let foreign = root.path().join("something-else");
        fs::create_dir(&foreign).unwrap();

        let removed = sweep_in(root.path()).unwrap();

        assert_eq!(removed, [format!("{} (left by process 4711)", dead.display())]);
        assert!(alive.path().exists() && foreign.exists() && !dead.exists());
    }
}
