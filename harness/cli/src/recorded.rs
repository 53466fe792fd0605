//! Recorded runs: what is read from a run's folder.

use crate::Error;
use spiritlevel_model::{
    history::Record,
    plan::{PLAN_VERSION, Plan},
    verdict::Verdict,
    yaml,
};
use std::path::{Path, PathBuf};

/// `plan.yaml`, or the one in a folder.
pub(crate) fn plan(path: &Path) -> Result<Plan, Error> {
    let path = if path.is_dir() { path.join("plan.yaml") } else { path.to_owned() };
    let text = read(&path)?;
    let malformed = |message: String| Error::Malformed { path: path.clone(), message };
    let (documents, flaws) = yaml::parse(&text);
    if let Some(flaw) = flaws.first() {
        return Err(malformed(format!("line {}: {}", flaw.span.line, flaw.message)));
    }
    let value = documents.first().map(yaml::Node::to_value).unwrap_or_default();
    match value["schemaVersion"].as_u64() {
        Some(version) if version == u64::from(PLAN_VERSION) => {}
        Some(version) => {
            return Err(malformed(format!(
                "plan of version {version}, and this spiritlevel reads version {PLAN_VERSION}"
            )));
        }
        None => {
            return Err(malformed(
                "not a plan: give a run's folder or its plan.yaml, as `run` writes it below its reports".into(),
            ));
        }
    }
    serde_json::from_value(value).map_err(|e| malformed(e.to_string()))
}

/// `history.jsonl` in a folder. A line that was cut off by the end of the harness is left out.
pub(crate) fn history(dir: &Path) -> Result<Vec<Record>, Error> {
    let path = dir.join("history.jsonl");
    let text = read(&path)?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut records = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            Err(_) if i + 1 == lines.len() && !text.ends_with('\n') => {}
            Err(e) => return Err(Error::Malformed { path, message: format!("line {}: {e}", i + 1) }),
        }
    }
    Ok(records)
}

/// `verdict.json` in a folder, where there is one.
pub(crate) fn verdict(dir: &Path) -> Result<Option<Verdict>, Error> {
    let path: PathBuf = dir.join("verdict.json");
    if !path.is_file() {
        return Ok(None);
    }
    let text = read(&path)?;
    serde_json::from_str(&text).map(Some).map_err(|e| Error::Malformed { path, message: e.to_string() })
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Recorded { path: path.into(), source })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{history, plan, verdict};
    use spiritlevel_model::plan::Plan;
    use std::path::Path;

    fn dir() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/orphan"))
    }

    /// A plan of a real run.
    pub(crate) fn orphan() -> Plan {
        plan(dir()).expect("the fixture is whole")
    }

    #[test]
    fn a_run_is_read_by_its_folder_or_its_plan() {
        assert_eq!(plan(&dir().join("plan.yaml")).expect("the fixture is whole"), orphan());
        assert!(history(dir()).expect("the fixture is whole").len() > 50);
        assert!(verdict(dir()).expect("the fixture is whole").is_some());
    }
}
