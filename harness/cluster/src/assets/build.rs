//! From source, where there is Go: the pinned modules are embedded in this crate.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use spiritlevel_supervise::{Child, Spawn};

use super::{KUBERNETES_VERSION, Sources};
use crate::{Error, Progress};

const TAIL_LINES: usize = 8;
const SAY_EVERY: Duration = Duration::from_secs(10);

/// A Go module that exists only to pin what is built.
struct Module {
    name: &'static str,
    files: [(&'static str, &'static str); 3],
    packages: &'static [&'static str],
    ldflags: fn() -> String,
}

const ETCD_FILES: [(&str, &str); 3] = [
    ("go.mod", include_str!("../../control-plane/etcd/go.mod")),
    ("go.sum", include_str!("../../control-plane/etcd/go.sum")),
    ("main.go", include_str!("../../control-plane/etcd/main.go")),
];

/// Only for those who restore snapshots.
const ETCDUTL: Module = Module {
    name: "etcdutl",
    files: ETCD_FILES,
    packages: &["go.etcd.io/etcd/etcdutl/v3"],
    ldflags: || "-s -w".to_owned(),
};

const MODULES: [Module; 2] = [
    Module {
        name: "etcd",
        files: ETCD_FILES,
        packages: &["spiritlevel.dev/control-plane/etcd"],
        ldflags: || "-s -w".to_owned(),
    },
    Module {
        name: "kubernetes",
        files: [
            ("go.mod", include_str!("../../control-plane/kubernetes/go.mod")),
            ("go.sum", include_str!("../../control-plane/kubernetes/go.sum")),
            ("tools.go", include_str!("../../control-plane/kubernetes/tools.go")),
        ],
        packages: &["k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager"],
        ldflags: kubernetes_ldflags,
    },
];

/// Builds everything into `directory`; the inner error is the reason why this step does not help here.
pub(super) async fn fill(
    directory: &Path,
    sources: &Sources,
    progress: &dyn Progress,
) -> Result<Result<(), String>, Error> {
    modules(&MODULES, directory, sources, progress).await
}

/// Builds `etcdutl` into `directory`.
pub(super) async fn etcdutl(
    directory: &Path,
    sources: &Sources,
    progress: &dyn Progress,
) -> Result<Result<(), String>, Error> {
    modules(&[ETCDUTL], directory, sources, progress).await
}

async fn modules(
    modules: &[Module],
    directory: &Path,
    sources: &Sources,
    progress: &dyn Progress,
) -> Result<Result<(), String>, Error> {
    for module in modules {
        let scratch = tempfile::Builder::new().prefix("spiritlevel-build-").tempdir();
        let scratch = scratch.map_err(|source| Error::io("make a directory in", std::env::temp_dir(), source))?;
        for (name, content) in module.files {
            let path = scratch.path().join(name);
            fs::write(&path, content).map_err(|source| Error::io("write", &path, source))?;
        }
        let log = scratch.path().join("build.log");
        let mut go = match start(module, scratch.path(), &log, directory, sources) {
            Ok(go) => go,
            Err(spiritlevel_supervise::Error::Start { .. }) => return Ok(Err("`go` is not installed".to_owned())),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let built = watch(&mut go, module, &log, progress).await;
        let tail = go.log_tail(TAIL_LINES);
        if tail.contains("no space left on device") {
            return Err(Error::DiskFull { path: directory.to_owned() });
        }
        if let Err(status) = built {
            return Ok(Err(format!("go build of {} failed ({status}):\n{tail}", module.name)));
        }
    }
    Ok(Ok(()))
}

fn start(
    module: &Module,
    scratch: &Path,
    log: &Path,
    output: &Path,
    sources: &Sources,
) -> Result<Child, spiritlevel_supervise::Error> {
    let mut to = output.as_os_str().to_owned();
    to.push("/");
    Spawn::new(&sources.go)
        // `-mod=mod`: the module pins more than its one file imports, and must not be called untidy for it.
        .args(["build", "-v", "-mod=mod", "-trimpath", "-ldflags", &(module.ldflags)(), "-o"])
        .arg(to)
        .args(module.packages)
        .current_dir(scratch)
        .env("CGO_ENABLED", "0")
        // The user's workspace and flags are for the user's code.
        .env("GOWORK", "off")
        .env("GOFLAGS", "-buildvcs=false")
        .log(log)
        .spawn()
}

/// Says from time to time how far it is: `go build -v` prints a line for each package that it compiles.
async fn watch(go: &mut Child, module: &Module, log: &Path, progress: &dyn Progress) -> Result<(), String> {
    let started = Instant::now();
    progress.say(&format!(
        "building {} from source with `go build` (minutes the first time, never again)",
        module
            .packages
            .iter()
            .map(|package| package.trim_end_matches("/v3").rsplit('/').next().unwrap_or(package))
            .collect::<Vec<_>>()
            .join(" and ")
    ));
    loop {
        match tokio::time::timeout(SAY_EVERY, go.wait()).await {
            Ok(Ok(status)) if status.success() => return Ok(()),
            Ok(Ok(status)) => return Err(status.to_string()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => {
                let text = fs::read_to_string(log).unwrap_or_default();
                progress.say(&advance(module.name, started.elapsed(), &text));
            }
        }
    }
}

fn advance(name: &str, elapsed: Duration, log: &str) -> String {
    let downloaded = log.lines().filter(|line| line.starts_with("go: downloading")).count();
    // Anything else that the tool says has a space in it.
    let compiled = log.lines().filter(|line| !line.is_empty() && !line.contains(' ')).count();
    let (minutes, seconds) = (elapsed.as_secs() / 60, elapsed.as_secs() % 60);
    format!(
        "building {name}: {minutes} min {seconds:02} s, {downloaded} modules downloaded, {compiled} packages compiled"
    )
}

/// As Kubernetes' own build stamps them; the API server refuses clients and features by these.
fn kubernetes_ldflags() -> String {
    let mut parts = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion={KUBERNETES_VERSION} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_what_go_prints() {
        let log = "go: downloading k8s.io/api v0.36.3\ninternal/abi\nk8s.io/api/core/v1\n# command-line-arguments\n";
        let said = advance("kubernetes", Duration::from_secs(81), log);
        assert_eq!(said, "building kubernetes: 1 min 21 s, 1 modules downloaded, 2 packages compiled");
    }

    #[test]
    fn the_embedded_modules_pin_the_versions_that_are_named() {
        let go_mod = |index: usize| MODULES[index].files[0].1;
        assert!(go_mod(0).contains(&format!("go.etcd.io/etcd/server/v3 {}", super::super::ETCD_VERSION)));
        assert!(ETCDUTL.files[0].1.contains(&format!("{} {}", ETCDUTL.packages[0], super::super::ETCD_VERSION)));
        assert!(go_mod(1).contains(&format!("k8s.io/kubernetes {KUBERNETES_VERSION}")));
        assert!(kubernetes_ldflags().ends_with("version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"));
    }
}
