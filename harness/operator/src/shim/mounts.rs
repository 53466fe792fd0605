//! What the operator finds in its file system: the service account, the hosts file, its own `/proc`.

use super::{namespaces::drop_capabilities, refusal::refused};
use crate::wire::Refusal;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::{fs, io};

const SAFE: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
/// A plain bind over locked mounts is refused with EINVAL, hence recursive.
const BIND: MsFlags = MsFlags::MS_BIND.union(MsFlags::MS_REC);

/// Mounts in a namespace of this process's own, then gives up the power to mount.
pub(super) fn mount_all(service_account: Option<&Path>, hosts: Option<&Path>) -> Result<(), Refusal> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| refused("unshare mounts", error))?;
    // Else what root mounts here appears on hosts where `/` is shared, which is systemd's default.
    bound("none", Path::new("/"), MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    if let Some(file) = hosts {
        bound(&file.to_string_lossy(), Path::new("/etc/hosts"), MsFlags::MS_BIND)?;
    }
    if let Some(dir) = service_account {
        mount_service_account(dir)?;
    }
    // For those who read /proc/<getpid()>. Refused in containers that mask parts of /proc; most programs use /proc/self,
    // which the outer one answers rightly.
    let proc = mount(Some("proc"), "/proc", Some("proc"), SAFE | MsFlags::MS_NOEXEC, None::<&str>);
    if let Err(error) = proc {
        eprintln!("spiritlevel: warning: mount /proc: {error}; it shows the outer process numbers");
    }
    drop_capabilities()
}

fn mount_service_account(dir: &Path) -> Result<(), Refusal> {
    // Opened before anything covers it: it may lie under /run.
    let dir = open_dir(dir)?;
    // A link to /run nearly everywhere.
    let run = fs::canonicalize("/var/run").map_err(|error| Refusal::new("find /var/run", error))?;
    let secrets = run.join("secrets");
    if !secrets.is_dir() {
        // Never mkdir on the host, not even as root: SIGKILL must leave no trace.
        cover(&run)?;
    }
    // Also hides the real credentials of a CI job that itself runs in a pod.
    mount_tmpfs(&secrets, "mode=0755,size=64k")?;
    let at = secrets.join("kubernetes.io/serviceaccount");
    fs::create_dir_all(&at).map_err(|error| at_path("make", &at, error))?;
    // The folder, not its files: a token renamed into place is seen at once.
    bound(&format!("/proc/self/fd/{}", dir.as_raw_fd()), &at, BIND)?;
    // Read-only, as in a pod. A user namespace locks flags of the source: leaving one out gives EPERM, more never.
    let read_only = MsFlags::MS_NOEXEC | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    bound("none", &at, SAFE | read_only)
}

/// A tmpfs over `run` with each entry bound back, so that one more name fits beside them. (Over an overlayfs a connect to
/// a socket is refused, and what is mounted below is missing.)
fn cover(run: &Path) -> Result<(), Refusal> {
    // Goes on reaching what the tmpfs covers.
    let old = open_dir(run)?;
    let entries = fs::read_dir(run).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| at_path("list", run, error))?;
    mount_tmpfs(run, "mode=0755,size=1m")?;
    for entry in entries {
        let at = entry.path();
        let source = format!("/proc/self/fd/{}/{}", old.as_raw_fd(), entry.file_name().display());
        bind_back(&entry, &source, &at).map_err(|error| at_path("show again", &at, error))?;
    }
    let secrets = run.join("secrets");
    fs::create_dir(&secrets).map_err(|error| at_path("make", &secrets, error))
}

fn bind_back(entry: &fs::DirEntry, source: &str, at: &Path) -> io::Result<()> {
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return fs::read_link(source).and_then(|target| std::os::unix::fs::symlink(target, at));
    }
    if kind.is_dir() {
        fs::create_dir(at)?;
    } else {
        fs::File::create(at)?;
    }
    match mount(Some(source), at, None::<&str>, BIND, None::<&str>) {
        // It may have gone away meanwhile.
        Err(error) if Path::new(source).exists() => Err(error.into()),
        _ => Ok(()),
    }
}

fn bound(source: &str, at: &Path, flags: MsFlags) -> Result<(), Refusal> {
    mount(Some(source), at, None::<&str>, flags, None::<&str>)
        .map_err(|error| at_path(&format!("mount {source} on"), at, error))
}

fn mount_tmpfs(at: &Path, options: &str) -> Result<(), Refusal> {
    mount(Some("tmpfs"), at, Some("tmpfs"), SAFE, Some(options)).map_err(|error| at_path("mount a tmpfs on", at, error))
}

fn open_dir(path: &Path) -> Result<OwnedFd, Refusal> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| at_path("open", path, error))
}

fn at_path(step: &str, path: &Path, error: impl Into<io::Error>) -> Refusal {
    Refusal::new(format!("{step} {}", path.display()), error)
}
