//! Builds a published Go module where the Go tool keeps it, with the module's own versions and `replace` directives.

use super::run::{Run, hint};
use super::{GoModule, Progress};
use crate::Error;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// What `go mod download -json` answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    dir: Option<PathBuf>,
    error: Option<String>,
}

/// What `go mod edit -json` answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoMod {
    replace: Option<Vec<Replace>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Replace {
    old: Target,
    new: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Target {
    path: String,
    version: Option<String>,
}

/// The folder of a module in Go's module cache, where its CRDs are too. Downloads it if needed.
pub async fn module_dir(module: &str, version: &str, progress: Progress<'_>) -> Result<PathBuf, Error> {
    let module = format!("{module}@{version}");
    if !is_exact(version) {
        return Err(Error::InexactVersion { module });
    }
    let scratch = scratch()?;
    let run = Run::new(["go", "mod", "download", "-json", &module], scratch.path()).env("GOWORK", "off");
    let hear = |line: &str| {
        if line.starts_with("go: ") {
            progress(line);
        }
    };
    let done = run.run(&hear).await?;
    let text = done.output.join("\n");
    let download: Download = match json(&done.output) {
        Some(found) => {
            serde_json::from_str(&found).map_err(|source| Error::ModuleAnswer { module: module.clone(), source })?
        }
        // Go itself failed.
        None => Download { dir: None, error: Some(text) },
    };
    match download {
        Download { error: None, dir: Some(dir) } => Ok(dir),
        Download { error, .. } => {
            let said = error.unwrap_or_default();
            Err(Error::Module { module, hint: hint(&said), said })
        }
    }
}

/// Versions that mean another thing tomorrow have no place in a cache, nor in a test.
fn is_exact(version: &str) -> bool {
    version
        .strip_prefix('v')
        .is_some_and(|rest| rest.split('.').count() >= 3 && rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The object among lines of progress.
fn json(lines: &[String]) -> Option<String> {
    let begin = lines.iter().position(|line| line == "{")?;
    let end = lines.iter().rposition(|line| line == "}")?;
    Some(lines.get(begin..=end)?.join("\n"))
}

pub(super) async fn build(spec: &GoModule, cache: &Path, progress: Progress<'_>) -> Result<PathBuf, Error> {
    let program = program(spec, cache)?;
    if program.is_file() {
        return Ok(program);
    }
    let folder = program.parent().unwrap_or(cache);
    let file = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { action, path, source }
    };
    fs::create_dir_all(folder).map_err(file("make", folder))?;
    let _lock = lock(&folder.join(".lock"), progress).await?;
    if program.is_file() {
        // Another builder was faster.
        return Ok(program);
    }
    progress(&format!("building {}@{} {} (minutes, once)", spec.module, spec.version, spec.package));
    let dir = module_dir(&spec.module, &spec.version, progress).await?;
    let scratch = scratch()?;
    let modfile = prepare_modfile(spec, &dir, scratch.path()).await?;
    let building =
        tempfile::Builder::new().prefix(".building-").tempdir_in(folder).map_err(file("make a folder in", folder))?;
    let built = building.path().join("program");

    let mut words: Vec<OsString> = ["go", "build", "-C"].map(Into::into).into();
    words.push(dir.into());
    let mut modfile_flag = OsString::from("-modfile=");
    modfile_flag.push(&modfile);
    words.push(modfile_flag);
    words.extend(["-mod=mod", "-trimpath", "-ldflags", "-s -w", "-v", "-o"].map(Into::into));
    words.push(built.clone().into());
    words.push(package(spec).into());
    go(words, scratch.path()).env("CGO_ENABLED", "0").check(progress).await?;
    fs::rename(&built, &program).map_err(file("write", &program))?;
    Ok(program)
}

/// The module's `go.mod` and `go.sum` in a folder that can be written, without `replace` by folders of its repository,
/// which are not part of a published module.
async fn prepare_modfile(spec: &GoModule, dir: &Path, scratch: &Path) -> Result<PathBuf, Error> {
    let modfile = scratch.join("go.mod");
    for name in ["go.mod", "go.sum"] {
        let from = dir.join(name);
        // Written anew, since a copy would be read-only as in the module cache.
        let text = match fs::read(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && name == "go.sum" => continue,
            text => text.map_err(|source| Error::File { action: "read", path: from, source })?,
        };
        let to = scratch.join(name);
        fs::write(&to, text).map_err(|source| Error::File { action: "write", path: to.clone(), source })?;
    }
    let silent = |_: &str| {};
    let answer = go(["go", "mod", "edit", "-json", "go.mod"].map(Into::into), scratch).check(&silent).await?;
    let parsed = json(&answer).map(|text| serde_json::from_str::<GoMod>(&text)).transpose();
    let parsed = parsed.map_err(|source| Error::ModuleAnswer { module: spec.module.clone(), source })?;
    let mut edits: Vec<OsString> = Vec::new();
    for Replace { old, new } in parsed.and_then(|parsed| parsed.replace).unwrap_or_default() {
        if new.path.starts_with('.') || new.path.starts_with('/') {
            let version = old.version.map(|version| format!("@{version}")).unwrap_or_default();
            edits.push(format!("-dropreplace={}{version}", old.path).into());
        }
    }
    edits.extend(spec.replace.iter().map(|(old, new)| format!("-replace={old}={new}").into()));
    if !edits.is_empty() {
        let words = ["go", "mod", "edit"].into_iter().map(OsString::from).chain(edits).chain(["go.mod".into()]);
        go(words, scratch).check(&silent).await?;
    }
    Ok(modfile)
}

fn go(words: impl IntoIterator<Item = OsString>, dir: &Path) -> Run {
    // A workspace file above the scratch folder, or named by the user, has no say.
    Run::new(words, dir).env("GOWORK", "off")
}

/// `cache/module@version/package/name`, each package being a folder of its own.
fn program(spec: &GoModule, cache: &Path) -> Result<PathBuf, Error> {
    let module = format!("{}@{}", spec.module, spec.version);
    if !is_exact(&spec.version) {
        return Err(Error::InexactVersion { module });
    }
    let package = package(spec);
    let inside = package.trim_start_matches("./").trim_matches('/');
    let inside = if inside == "." { "" } else { inside };
    let plain = |path: &str| path.split('/').all(|part| part != ".." && !part.is_empty());
    if !plain(&module) || !(inside.is_empty() || plain(inside)) {
        return Err(Error::InexactVersion { module });
    }
    let name = inside.rsplit('/').next().filter(|name| !name.is_empty());
    // The root package is named by the module, without its major version.
    let is_major = |part: &str| part.strip_prefix('v').is_some_and(|rest| rest.parse::<u32>().is_ok());
    let name = name.or_else(|| spec.module.rsplit('/').find(|part| !is_major(part))).unwrap_or("operator");
    let mut folder = if inside.is_empty() { "root".to_owned() } else { inside.replace('/', "_") };
    if !spec.replace.is_empty() {
        let digest = Sha256::digest(format!("{:?}", spec.replace));
        folder = format!("{folder}-{}", &hex::encode(digest)[..12]);
    }
    Ok(cache.join(&module).join(folder).join(name))
}

fn package(spec: &GoModule) -> String {
    match spec.package.as_str() {
        "" | "." => ".".to_owned(),
        package if package.starts_with("./") => package.to_owned(),
        package => format!("./{package}"),
    }
}

/// Waits for other builders of the same program, also in other processes. The kernel lifts the lock of one that dies.
async fn lock(path: &Path, progress: Progress<'_>) -> Result<File, Error> {
    let failed = |source| Error::File { action: "lock", path: path.to_owned(), source };
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
        Err(TryLockError::WouldBlock) => progress("waiting for another build of the same operator"),
    }
    let waited = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    waited.map_err(|error| failed(error.into()))?.map_err(failed)
}

fn scratch() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(|source| Error::Prepare { step: "make a folder", source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn check(module: &str, version: &str, package: &str, expected: Option<&str>) {
        let spec = GoModule {
            module: module.into(),
            version: version.into(),
            package: package.into(),
            replace: BTreeMap::default(),
        };
        let found = program(&spec, Path::new("/cache")).ok();
        assert_eq!(found, expected.map(|path| Path::new("/cache").join(path)), "{module}@{version} {package}");
    }

    #[test]
    fn each_program_has_its_place() {
        check("example.com/a/op", "v1.2.3", "./cmd/manager", Some("example.com/a/op@v1.2.3/cmd_manager/manager"));
        check("example.com/a/op", "v1.2.3", "cmd/manager/", Some("example.com/a/op@v1.2.3/cmd_manager/manager"));
        check("example.com/a/op/v2", "v2.0.0", ".", Some("example.com/a/op/v2@v2.0.0/root/op"));
        check(
            "example.com/a",
            "v0.0.0-20240101000000-abcdefabcdef",
            "",
            Some("example.com/a@v0.0.0-20240101000000-abcdefabcdef/root/a"),
        );
        check("example.com/a", "latest", ".", None);
        check("example.com/a", "v1", ".", None);
        check("example.com/../../etc", "v1.0.0", ".", None);
        check("example.com/a", "v1.0.0", "./../../x", None);
    }

    #[test]
    fn a_replaced_module_is_another_program() {
        let mut spec = GoModule {
            module: "example.com/a".into(),
            version: "v1.0.0".into(),
            package: ".".into(),
            replace: BTreeMap::default(),
        };
        let plain = program(&spec, Path::new("/cache")).expect("exact");
        spec.replace.insert("example.com/dead".into(), "../empty".into());
        assert_ne!(program(&spec, Path::new("/cache")).expect("exact"), plain);
    }
}
