//! The ladder to the control plane's binaries, with shell scripts in the place of programs.

mod support;

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex},
};

use libtest_mimic::Failed;
use sha2::{Digest, Sha256};
use spiritlevel_cluster::{
    Error, Progress,
    assets::{ETCD_VERSION, KUBERNETES_VERSION, Sources, obtain},
};
use support::{Outcome, ensure, trial};

const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept() {
        return code;
    }
    // One at a time: a program that was just written cannot be executed while another thread's fork still has it open.
    support::main(
        1,
        vec![
            trial("assets/a_complete_directory_is_used_and_nothing_else_is_tried", complete_directory),
            trial("assets/an_incomplete_directory_is_an_error_that_names_what_is_missing", incomplete_directory),
            trial("assets/a_binary_of_another_version_is_refused", wrong_version),
            trial("assets/a_binary_for_another_machine_is_refused", not_runnable),
            trial("assets/the_cache_is_silent", cached),
            trial("assets/a_verified_download_fills_the_cache", download),
            trial("assets/a_damaged_download_is_refused", damaged_download),
            trial("assets/a_build_fills_the_cache", build),
            trial("assets/a_failing_build_shows_its_last_lines", failing_build),
            trial("assets/without_any_way_the_error_names_all_four", no_way),
            trial("assets/two_first_starts_fill_the_cache_once", two_at_once),
        ],
    )
}

async fn complete_directory() -> Outcome {
    let place = Place::new()?;
    programs(&place.path("assets"), ETCD_VERSION, KUBERNETES_VERSION)?;
    let mut sources = place.sources();
    sources.assets = Some(place.path("assets"));
    let said = Said::default();
    let binaries = obtain(&sources, &said).await?;
    ensure(binaries.etcd == place.path("assets/etcd"), &binaries)?;
    ensure(
        said.lines().len() == 1 && said.lines()[0].starts_with("using the control plane's binaries in"),
        said.lines(),
    )?;
    ensure(!sources.cache.exists(), "the cache was touched")
}

async fn incomplete_directory() -> Outcome {
    let place = Place::new()?;
    programs(&place.path("assets"), ETCD_VERSION, KUBERNETES_VERSION)?;
    fs::remove_file(place.path("assets/etcd"))?;
    fs::set_permissions(place.path("assets/kube-apiserver"), Permissions::from_mode(0o644))?;
    // A filled cache must not hide the mistake.
    let mut sources = place.sources();
    programs(&sources.cache_directory(), ETCD_VERSION, KUBERNETES_VERSION)?;
    sources.assets = Some(place.path("assets"));
    let error = fails(&sources).await?;
    ensure(matches!(&error, Error::AssetsIncomplete { missing, .. } if missing == &["etcd", "kube-apiserver"]), error)
}

async fn wrong_version() -> Outcome {
    for (etcd, kubernetes, culprit) in
        [(ETCD_VERSION, "v1.35.0", "kube-apiserver"), ("v3.5.21", KUBERNETES_VERSION, "etcd")]
    {
        let place = Place::new()?;
        programs(&place.path("assets"), etcd, kubernetes)?;
        let mut sources = place.sources();
        sources.assets = Some(place.path("assets"));
        let error = fails(&sources).await?;
        ensure(matches!(&error, Error::WrongVersion { binary, .. } if binary.ends_with(culprit)), error)?;
    }
    // Another patch of the same minor version behaves alike.
    let place = Place::new()?;
    programs(&place.path("assets"), "v3.6.1", "v1.36.0")?;
    let mut sources = place.sources();
    sources.assets = Some(place.path("assets"));
    obtain(&sources, &Said::default()).await?;
    Ok(())
}

async fn not_runnable() -> Outcome {
    let place = Place::new()?;
    programs(&place.path("assets"), ETCD_VERSION, KUBERNETES_VERSION)?;
    program(&place.path("assets/etcd"), "\u{7f}ELF of another machine")?;
    let mut sources = place.sources();
    sources.assets = Some(place.path("assets"));
    let error = fails(&sources).await?;
    ensure(matches!(&error, Error::NotRunnable { binary, .. } if binary.ends_with("etcd")), error)
}

async fn cached() -> Outcome {
    let place = Place::new()?;
    let sources = place.sources();
    programs(&sources.cache_directory(), ETCD_VERSION, KUBERNETES_VERSION)?;
    let said = Said::default();
    let binaries = obtain(&sources, &said).await?;
    ensure(binaries.etcd.starts_with(sources.cache_directory()), &binaries)?;
    ensure(said.lines().is_empty(), said.lines())
}

async fn download() -> Outcome {
    let place = Place::new()?;
    let mut sources = place.sources();
    sources.curl = "curl".into();
    place.publish(&sources)?;
    // Left by a process that was killed while it downloaded.
    program(&sources.cache.join(".partial-1234/etcd"), "half a program")?;
    let said = Said::default();
    let binaries = obtain(&sources, &said).await?;
    ensure(said.lines().iter().filter(|line| line.starts_with("downloading file://")).count() == 3, said.lines())?;
    let mut left = Vec::new();
    for entry in fs::read_dir(&sources.cache)? {
        left.push(entry?.file_name());
    }
    ensure(left.iter().all(|name| !name.to_string_lossy().contains("partial")), left)?;
    // The second start needs no network.
    sources.curl = "there-is-no-curl".into();
    ensure(obtain(&sources, &Said::default()).await? == binaries, binaries)
}

async fn damaged_download() -> Outcome {
    let place = Place::new()?;
    let mut sources = place.sources();
    sources.curl = "curl".into();
    place.publish(&sources)?;
    let published = find(&place.path("mirror"), "kube-controller-manager").ok_or("nothing was published")?;
    fs::write(&published, "something else")?;
    let error = fails(&sources).await?.to_string();
    ensure(error.contains("is damaged or was tampered with: its SHA-256 is"), &error)?;
    ensure(!sources.cache_directory().exists(), "a damaged program is in the cache")
}

async fn build() -> Outcome {
    let place = Place::new()?;
    let mut sources = place.sources();
    sources.go = place.fake_go()?.into();
    let said = Said::default();
    let binaries = obtain(&sources, &said).await?;
    ensure(binaries.kube_apiserver.starts_with(sources.cache_directory()), &binaries)?;
    let arguments = fs::read_to_string(place.path("go-calls"))?;
    ensure(arguments.contains("gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1"), &arguments)?;
    ensure(arguments.lines().count() == 2 && arguments.contains("CGO_ENABLED=0"), &arguments)?;
    ensure(
        said.lines().iter().any(|line| line.starts_with("building kube-apiserver and kube-controller-manager")),
        said.lines(),
    )
}

async fn failing_build() -> Outcome {
    let place = Place::new()?;
    let mut sources = place.sources();
    program(&place.path("go"), "#!/bin/sh\necho 'go: dial tcp: lookup proxy: no such host' >&2\nexit 1\n")?;
    sources.go = place.path("go").into();
    let error = fails(&sources).await?.to_string();
    ensure(error.contains("go build of etcd failed (exit status: 1):\n      go: dial tcp"), error)
}

async fn no_way() -> Outcome {
    let place = Place::new()?;
    let sources = place.sources();
    let error = fails(&sources).await?;
    let text = error.to_string();
    let ways = ["set SPIRITLEVEL_ASSETS", "copy the three to", "network and `curl`", "install Go"];
    let reasons =
        ["SPIRITLEVEL_ASSETS: not set", "no etcd, kube-apiserver", "`curl` is not installed", "`go` is not installed"];
    ensure(matches!(error, Error::NoAssets { .. }), &text)?;
    ensure(ways.iter().all(|way| text.contains(way)), &text)?;
    ensure(reasons.iter().all(|reason| text.contains(reason)), &text)
}

async fn two_at_once() -> Outcome {
    let place = Place::new()?;
    let mut sources = place.sources();
    sources.go = place.fake_go()?.into();
    let (one, other) = (Said::default(), Said::default());
    let (first, second) = tokio::try_join!(obtain(&sources, &one), obtain(&sources, &other))?;
    ensure(first == second, &second)?;
    let calls = fs::read_to_string(place.path("go-calls"))?;
    ensure(calls.lines().count() == 2, &calls)?;
    let waited = |said: &Said| said.lines().iter().any(|line| line.contains("another spiritlevel"));
    ensure(waited(&one) != waited(&other), (one.lines(), other.lines()))
}

async fn fails(sources: &Sources) -> Result<Error, Failed> {
    obtain(sources, &Said::default()).await.err().ok_or_else(|| "it found binaries".into())
}

/// A directory in which everything of a test happens.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Result<Self, Failed> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Surroundings in which nothing works.
    fn sources(&self) -> Sources {
        let url = format!("file://{}", self.path("mirror").display());
        Sources {
            assets: None,
            cache: self.path("cache"),
            kubernetes_url: url.clone(),
            etcd_url: url,
            curl: "there-is-no-curl".into(),
            go: "there-is-no-go".into(),
        }
    }

    /// A mirror of the upstream releases.
    fn publish(&self, sources: &Sources) -> Outcome {
        let directory = sources.cache_directory();
        let (_, platform) = directory.to_str().and_then(|path| path.rsplit_once("36.3-")).ok_or("no platform")?;
        let packed_name = format!("etcd-{ETCD_VERSION}-{platform}");
        let staged = self.path("staged").join(&packed_name);
        programs(&staged, ETCD_VERSION, KUBERNETES_VERSION)?;

        let kubernetes = self.path("mirror").join(KUBERNETES_VERSION).join("bin").join(platform.replace('-', "/"));
        fs::create_dir_all(&kubernetes)?;
        for program in ["kube-apiserver", "kube-controller-manager"] {
            fs::copy(staged.join(program), kubernetes.join(program))?;
            fs::write(kubernetes.join(format!("{program}.sha256")), sum(&kubernetes.join(program))?)?;
        }
        let etcd = self.path("mirror").join(ETCD_VERSION);
        fs::create_dir_all(&etcd)?;
        let archive = format!("etcd-{ETCD_VERSION}-{platform}.tar.gz");
        let packed = std::process::Command::new("tar")
            .arg("-czf")
            .arg(etcd.join(&archive))
            .arg("-C")
            .arg(self.path("staged"))
            .arg(packed_name)
            .status()?;
        ensure(packed.success(), packed)?;
        let sums = format!("{}  something-else.zip\n{}  {archive}\n", "0".repeat(64), sum(&etcd.join(&archive))?);
        fs::write(etcd.join("SHA256SUMS"), sums)?;
        Ok(())
    }

    /// A `go` that notes how it is called and delivers what was asked for, given as the folder after `-o`.
    fn fake_go(&self) -> Result<PathBuf, Failed> {
        programs(&self.path("built"), ETCD_VERSION, KUBERNETES_VERSION)?;
        let script = format!(
            "#!/bin/sh\necho \"CGO_ENABLED=$CGO_ENABLED\" \"$@\" >> {calls}\ntest -s go.mod -a -s go.sum || exit 7\n\
             while [ \"$1\" != -o ]; do shift; done\nto=$2; shift 2\n\
             for package in \"$@\"; do echo \"$package\"; cp {built}/${{package##*/}} \"$to\"; done\n",
            calls = self.path("go-calls").display(),
            built = self.path("built").display(),
        );
        program(&self.path("go"), &script)?;
        Ok(self.path("go"))
    }
}

fn programs(directory: &Path, etcd: &str, kubernetes: &str) -> Outcome {
    for name in PROGRAMS {
        let said = match name {
            "etcd" => format!("etcd Version: {}", etcd.trim_start_matches('v')),
            _ => format!("Kubernetes {kubernetes}"),
        };
        program(&directory.join(name), &format!("#!/bin/sh\necho '{said}'\n"))?;
    }
    Ok(())
}

fn program(path: &Path, content: &str) -> Outcome {
    fs::create_dir_all(path.parent().ok_or("a program has a directory")?)?;
    fs::write(path, content)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))?;
    Ok(())
}

fn sum(path: &Path) -> Result<String, Failed> {
    Ok(hex::encode(Sha256::digest(fs::read(path)?)))
}

fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) }
    })
}

/// Remembers what was said.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn lines(&self) -> Vec<String> {
        self.0.lock().expect("nobody panics while holding it").clone()
    }
}

impl Progress for Said {
    fn say(&self, text: &str) {
        self.0.lock().expect("nobody panics while holding it").push(text.to_owned());
    }
}
