//! The files that a kubelet shows a pod: token, certificate authority and namespace.

use crate::Error;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A private folder with `token`, `ca.crt` and `namespace`, to be shown by [`crate::SandboxSpec::service_account`].
#[derive(Clone, Debug)]
pub struct ServiceAccountDir {
    path: PathBuf,
}

// === impl ServiceAccountDir ===

impl ServiceAccountDir {
    /// Makes the folder (mode 0700) and its files. `ca` is PEM.
    pub fn create(path: impl Into<PathBuf>, token: &str, ca: &str, namespace: &str) -> Result<Self, Error> {
        let path = path.into();
        let made =
            fs::create_dir_all(&path).and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o700)));
        made.map_err(|source| Error::File { action: "make the service account's folder", path: path.clone(), source })?;
        let dir = Self { path };
        for (name, text) in [("token", token), ("ca.crt", ca), ("namespace", namespace)] {
            dir.write(name, text)?;
        }
        Ok(dir)
    }

    /// Replaces the token at once, as the kubelet does before the old one expires. A running operator sees it.
    pub fn set_token(&self, token: &str) -> Result<(), Error> {
        self.write("token", token)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// By rename, so that nobody reads half a file.
    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let (path, temporary) = (self.path.join(name), self.path.join(format!(".{name}.tmp")));
        let write = || -> io::Result<()> {
            let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|source| Error::File { action: "write", path: path.clone(), source })
    }
}
