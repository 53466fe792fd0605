//! Manifests that a project builds with kustomize.

use crate::{Error, files};
use serde_json::Value;
use spiritlevel_model::load::parse_manifests;
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::process::Command;

/// What makes a folder a kustomization (`konfig.RecognizedKustomizationFileNames`).
const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// Who can build one, in this order.
const PROGRAMS: [[&str; 2]; 2] = [["kustomize", "build"], ["kubectl", "kustomize"]];

/// The objects of a file or folder; those of a kustomization as kustomize builds it.
pub(crate) async fn manifests(base: &Path, name: &str) -> Result<Vec<Value>, Error> {
    let path = base.join(name);
    if !FILES.iter().any(|file| path.join(file).is_file()) {
        return files::foreign_manifests(base, name);
    }
    let text = build(&path, &PROGRAMS).await?;
    let parsed = parse_manifests(&format!("kustomize build {}", path.display()), &text);
    parsed.map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(spiritlevel_model::problem::Problem::to_line).collect();
        Error::Input(lines.join("\n"))
    })
}

async fn build(path: &PathBuf, programs: &[[&str; 2]]) -> Result<String, Error> {
    for [program, verb] in programs {
        let ran = Command::new(program).arg(verb).arg(path).stdin(Stdio::null()).kill_on_drop(true).output().await;
        match ran {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(Error::file("run", Path::new(program), e)),
            Ok(output) if output.status.success() => return Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(Error::Input(format!("`{program} {verb} {}` failed: {}", path.display(), said.trim())));
            }
        }
    }
    Err(Error::Input(format!(
        "{} is a kustomization, and neither kustomize nor kubectl is in the PATH: install one of them, or name a file with the \
         output of `kustomize build`",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_kustomize_the_error_names_both_programs() {
        let dir = PathBuf::from("config/default");
        let error = build(&dir, &[["spiritlevel-no-such-program", "build"]]).await.unwrap_err().to_string();
        assert!(error.contains("neither kustomize nor kubectl") && error.contains("config/default"), "{error}");
    }

    #[tokio::test]
    async fn what_the_program_says_is_told() {
        let dir = PathBuf::from("no-such-folder");
        assert_eq!(
            build(&dir, &[["spiritlevel-no-such-program", "x"], ["echo", "built"]]).await.unwrap(),
            "built no-such-folder\n"
        );
        let error = build(&dir, &[["ls", "-d"]]).await.unwrap_err().to_string();
        assert!(error.starts_with("`ls -d no-such-folder` failed: ls: "), "{error}");
    }

    #[tokio::test]
    async fn a_plain_folder_is_read_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n").unwrap();
        let found = manifests(dir.path(), ".").await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["metadata"]["name"], "a");
    }
}
