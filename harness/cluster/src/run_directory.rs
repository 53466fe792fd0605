//! Private directories whose owner can be told dead or alive.
//!
//! Each directory holds a file that its owner keeps locked. The kernel lifts the lock when the owner dies, however it
//! dies, so `clean` needs no process table and never mistakes a reused process number for the owner.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::Error;

/// The locked file inside each run directory; it holds the owner's process number for people.
pub(crate) const OWNER_FILE: &str = "owner.lock";

/// A directory that only this user can enter and that is gone when this value is dropped, or swept once we are dead.
#[derive(Debug)]
pub struct RunDirectory {
    directory: TempDir,
    _lock: File,
}

impl RunDirectory {
    /// Makes a fresh directory named `<purpose>-…` under the private root.
    pub fn create(purpose: &str) -> Result<Self, Error> {
        Self::create_in(&root()?, purpose)
    }

    pub(crate) fn create_in(root: &Path, purpose: &str) -> Result<Self, Error> {
        // Between making a directory and locking it, a sweep would take it for a dead one.
        let _gate = gate(root)?;
        let directory = tempfile::Builder::new()
            .prefix(&format!("{purpose}-"))
            .tempdir_in(root)
            .map_err(|source| Error::io("make a run directory in", root, source))?;
        let path = directory.path().join(OWNER_FILE);
        let in_lock = |source| Error::io("lock", &path, source);
        let mut lock = private_file(&path).map_err(in_lock)?;
        lock.lock().map_err(in_lock)?;
        writeln!(lock, "{}", std::process::id()).map_err(in_lock)?;
        Ok(Self { directory, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file that only this user can read and returns its path.
    pub fn write(&self, name: &str, content: &str) -> Result<PathBuf, Error> {
        let path = self.path().join(name);
        private_file(&path)
            .and_then(|mut file| {
                file.set_len(0)?;
                file.write_all(content.as_bytes())
            })
            .map_err(|source| Error::io("write", &path, source))?;
        Ok(path)
    }
}

/// The private root: `$XDG_RUNTIME_DIR/spiritlevel`, else `spiritlevel-<uid>` in the directory for temporary files.
pub(crate) fn root() -> Result<PathBuf, Error> {
    let uid = nix::unistd::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|directory| directory.is_absolute());
    if let Some(root) = runtime.map(|directory| directory.join("spiritlevel"))
        && private_directory(&root, uid).is_ok()
    {
        return Ok(root);
    }
    let root = std::env::temp_dir().join(format!("spiritlevel-{uid}"));
    private_directory(&root, uid).map_err(|source| Error::io("make the private directory", &root, source))?;
    Ok(root)
}

/// Makes it, or accepts it only when nobody else could have prepared it for us.
fn private_directory(path: &Path, uid: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => return other,
    }
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() && metadata.uid() == uid && metadata.mode() & 0o777 == 0o700 {
        return Ok(());
    }
    let reason = "it is not a directory that belongs to this user alone (mode 0700); remove it or set XDG_RUNTIME_DIR";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// Held while directories are made or swept.
pub(crate) fn gate(root: &Path) -> Result<File, Error> {
    let path = root.join(".gate");
    let in_gate = |source| Error::io("lock", &path, source);
    let file = private_file(&path).map_err(in_gate)?;
    file.lock().map_err(in_gate)?;
    Ok(file)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}
