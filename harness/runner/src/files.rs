//! Files that suites and scenarios name, relative to where they stand.

use crate::Error;
use serde_json::Value;
use spiritlevel_model::{
    bindings::{self, Bindings, Unresolved},
    load::parse_manifests,
};
use std::path::{Path, PathBuf};

/// The objects in a file, or in the `.yaml`, `.yml` and `.json` files of a folder, with bindings put in.
pub(crate) fn manifests(base: &Path, name: &str, known: &Bindings) -> Result<Vec<Value>, Error> {
    let path = base.join(name);
    let mut objects = Vec::new();
    for file in listed(&path)? {
        let text = std::fs::read_to_string(&file).map_err(|e| Error::file("read", &file, e))?;
        let shown = file.display().to_string();
        let parsed = parse_manifests(&shown, &text).map_err(|problems| {
            Error::Input(
                problems.iter().map(spiritlevel_model::problem::Problem::to_line).collect::<Vec<_>>().join("\n"),
            )
        })?;
        for object in parsed {
            objects.push(resolved(&object, known, &shown)?);
        }
    }
    Ok(objects)
}

/// Objects as they are, for files that are not ours and may have `($…` in them.
pub(crate) fn foreign_manifests(base: &Path, name: &str) -> Result<Vec<Value>, Error> {
    let path = base.join(name);
    let mut objects = Vec::new();
    for file in listed(&path)? {
        let text = std::fs::read_to_string(&file).map_err(|e| Error::file("read", &file, e))?;
        // Charts keep template lines in their CRDs; without them the file is plain YAML.
        let plain: String = text.lines().filter(|l| !l.contains("{{")).flat_map(|l| [l, "\n"]).collect();
        let parsed = parse_manifests(&file.display().to_string(), &plain).map_err(|problems| {
            Error::Input(
                problems.iter().map(spiritlevel_model::problem::Problem::to_line).collect::<Vec<_>>().join("\n"),
            )
        })?;
        objects.extend(parsed);
    }
    Ok(objects)
}

/// A value with every binding put in; what is not known is an error.
pub(crate) fn resolved(value: &Value, known: &Bindings, place: &str) -> Result<Value, Error> {
    bindings::resolve(value, known, Unresolved::Error).map_err(|missing| {
        let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
        Error::Input(format!("{place}: {}", names.join("; ")))
    })
}

fn listed(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let entries = std::fs::read_dir(path).map_err(|e| Error::file("read", path, e))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json"))
        .filter(|p| p.file_stem().is_none_or(|s| s != "kustomization"))
        .collect();
    files.sort();
    Ok(files)
}
