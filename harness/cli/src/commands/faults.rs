//! `spiritlevel faults`.

use crate::{Error, Exit, args::Faults, voice::say};
use spiritlevel_model::{
    fault::catalogue::{self, Kind},
    operation::Step,
};
use spiritlevel_runner::project::{SuiteFiles, find};
use std::{collections::BTreeMap, fmt::Write, path::Path};

/// Folder of the operators that are each broken in one way.
const SPECIMENS: &str = "specimens";

/// Where each fault is used: scenario files, and specimens.
#[derive(Default)]
struct Uses {
    scenarios: BTreeMap<String, Vec<String>>,
    specimens: BTreeMap<String, Vec<String>>,
}

/// Lists every fault with its meaning; with paths, also where it is used.
pub(super) fn faults(args: &Faults) -> Result<Exit, Error> {
    let suites = if args.paths.is_empty() { Vec::new() } else { find(&args.paths).map_err(Error::Find)? };
    let uses = Uses::of(&suites);
    say(&if args.page { page(&uses) } else { list() });
    Ok(Exit::Pass)
}

fn list() -> String {
    let mut text = String::new();
    for (title, kinds) in [("In `faults`, as `do`:", catalogue::actions()), ("As steps:", catalogue::steps())] {
        let _ = writeln!(text, "{title}");
        for kind in kinds {
            let _ = writeln!(text, "  {:<18} {:<15} {}", kind.name, legality(&kind), kind.meaning);
        }
    }
    text
}

fn legality(kind: &Kind) -> String {
    let all: Vec<String> = kind.legality.iter().map(|l| format!("{l:?}").to_lowercase()).collect();
    all.join(" or ")
}

fn page(uses: &Uses) -> String {
    let mut text = String::from(
        "# Faults\n\nMade by `spiritlevel faults --page scenarios operators-under-test`; CI fails when it is out of date.\n\n\
         *Legal*: whether a correct API server, network or crash could do it to any client (always), to one that asks as this \
         one does (some), or not at all (never: shown as robustness, fails nothing unless `gate` says so).\n\n\
         ## In `faults`, as `do`\n\n| fault | what happens | legal | a scenario | specimens |\n|---|---|---|---|---|\n",
    );
    let mut rows = |kinds: Vec<Kind>, with_legality: bool| {
        for kind in kinds {
            let legal = if with_legality { format!(" {} |", legality(&kind)) } else { String::new() };
            let (scenario, specimens) = uses.cells(&kind.name);
            let _ = writeln!(text, "| `{}` | {} |{legal} {scenario} | {specimens} |", kind.name, kind.meaning);
        }
        if with_legality {
            text += "\n## As steps\n\n| step | what happens | a scenario | specimens |\n|---|---|---|---|\n";
        }
    };
    rows(catalogue::actions(), true);
    rows(catalogue::steps(), false);
    text
}

// === impl Uses ===

impl Uses {
    fn of(suites: &[SuiteFiles]) -> Self {
        let mut uses = Self::default();
        for suite in suites {
            for scenario in &suite.scenarios {
                let Some(spec) = scenario.scenario.value.as_ref().map(|s| &s.spec) else { continue };
                let faults = spec.faults.iter().map(|f| f.action.name().to_owned());
                let steps = spec.steps.iter().flat_map(operations);
                for name in faults.chain(steps) {
                    uses.add(&name, &suite.dir, &scenario.scenario.source.file);
                }
            }
        }
        uses
    }

    fn add(&mut self, name: &str, suite: &Path, file: &str) {
        let folder = suite.file_name().map(|f| f.to_string_lossy().into_owned()).unwrap_or_default();
        let is_specimen = suite.parent().and_then(Path::file_name).is_some_and(|p| p == SPECIMENS);
        let (map, entry) =
            if is_specimen { (&mut self.specimens, folder) } else { (&mut self.scenarios, file.to_owned()) };
        let all = map.entry(name.to_owned()).or_default();
        if !all.contains(&entry) {
            all.push(entry);
            all.sort();
        }
    }

    fn cells(&self, name: &str) -> (String, String) {
        let scenario = self.scenarios.get(name).and_then(|all| all.first());
        let scenario = scenario.map_or("–".into(), |file| {
            let short = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            // The page lies beside the suites.
            let link = file.strip_prefix("scenarios/").map_or_else(|| format!("../{file}"), Into::into);
            format!("[{short}]({link})")
        });
        let specimens = self.specimens.get(name).map_or("–".into(), |all| all.join(", "));
        (scenario, specimens)
    }
}

fn operations(step: &Step) -> Vec<String> {
    let all = step.attempt.iter().chain(&step.catch).chain(&step.finally);
    all.map(|o| o.action.name()).collect()
}
