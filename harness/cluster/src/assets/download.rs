//! The upstream releases, with their published checksums.
//!
//! `curl` fetches, so that proxies and certificates are those the user's machine is set up for, and no second TLS stack
//! is linked.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::{ETCD_VERSION, KUBERNETES_VERSION, Sources, platform};
use crate::{Error, Progress};

/// Downloads everything into `directory`; the inner error is the reason why this step does not help here.
pub(super) async fn fill(
    directory: &Path,
    sources: &Sources,
    progress: &dyn Progress,
) -> Result<Result<(), String>, Error> {
    let (os, arch) = platform();
    if os != "linux" {
        return Ok(Err(format!("Kubernetes publishes no server binaries for {os}")));
    }
    for program in ["kube-apiserver", "kube-controller-manager"] {
        let url = format!("{}/{KUBERNETES_VERSION}/bin/{os}/{arch}/{program}", sources.kubernetes_url);
        progress.say(&format!("downloading {url}"));
        let target = directory.join(program);
        if let Err(reason) = verified(sources, &url, &format!("{url}.sha256"), program, &target).await? {
            return Ok(Err(reason));
        }
        make_executable(&target)?;
    }
    etcd("etcd", directory, sources, progress).await
}

/// Takes one program out of etcd's release.
pub(super) async fn etcd(
    program: &str,
    directory: &Path,
    sources: &Sources,
    progress: &dyn Progress,
) -> Result<Result<(), String>, Error> {
    let (os, arch) = platform();
    let folder = format!("etcd-{ETCD_VERSION}-{os}-{arch}");
    let archive_name = format!("{folder}.tar.gz");
    let base = format!("{}/{ETCD_VERSION}", sources.etcd_url);
    let url = format!("{base}/{archive_name}");
    progress.say(&format!("downloading {url}"));
    let archive = directory.join(&archive_name);
    if let Err(reason) = verified(sources, &url, &format!("{base}/SHA256SUMS"), &archive_name, &archive).await? {
        return Ok(Err(reason));
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&archive).arg("-C").arg(directory);
    tar.arg("--strip-components=1").arg(format!("{folder}/{program}"));
    if let Err(reason) = run(tar, "tar").await {
        return full_disk_or(directory, reason);
    }
    fs::remove_file(&archive).map_err(|source| Error::io("remove", &archive, source))?;
    make_executable(&directory.join(program))?;
    Ok(Ok(()))
}

/// Fetches `url` to `target` and compares it with the checksum published beside it.
async fn verified(
    sources: &Sources,
    url: &str,
    sums_url: &str,
    name: &str,
    target: &Path,
) -> Result<Result<(), String>, Error> {
    let sums = target.with_extension("sums");
    for (from, to) in [(sums_url, &sums), (url, &target.to_path_buf())] {
        if let Err(reason) = fetch(sources, from, to).await {
            return full_disk_or(target, reason);
        }
    }
    let published = fs::read_to_string(&sums).map_err(|source| Error::io("read", &sums, source))?;
    fs::remove_file(&sums).map_err(|source| Error::io("remove", &sums, source))?;
    let Some(expected) = published_sum(&published, name) else {
        return Ok(Err(format!("{sums_url} has no checksum of {name}")));
    };
    let actual = sha256(target.to_owned()).await?;
    if actual == expected {
        return Ok(Ok(()));
    }
    Ok(Err(format!("{url} is damaged or was tampered with: its SHA-256 is {actual}, published is {expected}")))
}

async fn fetch(sources: &Sources, url: &str, target: &Path) -> Result<(), String> {
    let mut curl = Command::new(&sources.curl);
    curl.args(["--fail", "--location", "--silent", "--show-error", "--connect-timeout", "5"]);
    // A transfer that stalls is given up instead of waited for.
    curl.args(["--speed-limit", "1024", "--speed-time", "30"]);
    curl.arg("--output").arg(target).arg(url);
    run(curl, "curl").await.map_err(|reason| format!("{url}: {reason}"))
}

async fn run(mut command: Command, name: &str) -> Result<(), String> {
    let finished = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = finished.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("`{name}` is not installed"),
        _ => format!("`{name}` does not start: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().map_or_else(|| format!("{name}: {}", output.status), |line| line.trim().to_owned()))
}

/// No other step would find more room.
fn full_disk_or(path: &Path, reason: String) -> Result<Result<(), String>, Error> {
    if reason.to_lowercase().contains("no space left on device") {
        return Err(Error::DiskFull { path: path.to_owned() });
    }
    Ok(Err(reason))
}

/// From a file with nothing but a sum, as Kubernetes has, or with `sum  name` lines, as etcd has.
fn published_sum<'a>(published: &'a str, name: &str) -> Option<&'a str> {
    published.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let sum = words.next().filter(|sum| sum.len() == 64)?;
        words.next().is_none_or(|file| file.trim_start_matches('*') == name).then_some(sum)
    })
}

async fn sha256(path: PathBuf) -> Result<String, Error> {
    let hash = tokio::task::spawn_blocking(move || {
        let mut hasher = Sha256::new();
        let copied = File::open(&path).and_then(|mut file| io::copy(&mut file, &mut hasher));
        copied.map_err(|source| Error::io("read", &path, source))?;
        Ok(hex::encode(hasher.finalize()))
    });
    hash.await.expect("reading a file does not panic")
}

fn make_executable(path: &Path) -> Result<(), Error> {
    fs::set_permissions(path, Permissions::from_mode(0o755))
        .map_err(|source| Error::io("make executable", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_publishing_a_sum_are_understood() {
        let (one, two) = ("a".repeat(64), "b".repeat(64));
        assert_eq!(published_sum(&format!("{one}\n"), "kube-apiserver"), Some(one.as_str()));
        let sums = format!("{one}  etcd-arm64.tar.gz\n{two}  etcd-amd64.tar.gz\n");
        assert_eq!(published_sum(&sums, "etcd-amd64.tar.gz"), Some(two.as_str()));
        assert_eq!(published_sum(&sums, "etcd-s390x.tar.gz"), None);
        assert_eq!(published_sum("<html>not found</html>", "etcd"), None);
    }
}
