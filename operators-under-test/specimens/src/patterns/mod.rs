//! The specimens: one file each, and the table that names them.

mod n1;
mod n10;
mod n11;
mod n3;
mod n7;
mod s01;
mod s02;
mod s03;
mod s07;
mod s10;
mod s14;
mod s16;
mod s17;
mod s20;
mod s21;
mod s26;

use clap::ValueEnum;

use crate::operator::Operator;

/// Which of the twins runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Build {
    /// The broken one.
    Bug,
    /// The one that gets it right.
    Fixed,
}

/// Which specimen runs; each is described in the file of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum Pattern {
    /// A child without an ownerReference, and no finalizer.
    S01,
    /// Clean-up only in the handler of the DELETED event.
    S02,
    /// An illegal ownerReference.
    S03,
    /// A deterministic name, and "already exists" is fatal.
    S07,
    /// Work in two phases, the phase only in memory.
    S10,
    /// A home-made watch loop that ends for good.
    S14,
    /// A kind of children that is not watched.
    S16,
    /// A comparison with an object without its defaults.
    S17,
    /// The finalizer goes although a deletion failed.
    S20,
    /// A 404 in the clean-up is an error.
    S21,
    /// It counts its reconciles in the status.
    S26,
    /// Control: correct and level-triggered.
    N1,
    /// Control: heart-beats and Events are no hot loop.
    N3,
    /// Control: correct as long as no event gets lost in a live watch.
    N7,
    /// Control: applies without force, and looks again after a conflict.
    N10,
    /// Control: N1 with an admission webhook.
    N11,
}

// === impl Pattern ===

impl Pattern {
    /// Whether it is a negative control: it has no bug build.
    pub(crate) fn is_control(self) -> bool {
        matches!(self, Self::N1 | Self::N3 | Self::N7 | Self::N10 | Self::N11)
    }

    /// Runs the specimen until the process ends.
    pub(crate) async fn run(self, operator: Operator, build: Build) {
        match self {
            Self::S01 => s01::run(operator, build).await,
            Self::S02 => s02::run(operator, build).await,
            Self::S03 => s03::run(operator, build).await,
            Self::S07 => s07::run(operator, build).await,
            Self::S10 => s10::run(operator, build).await,
            Self::S14 => s14::run(operator, build).await,
            Self::S16 => s16::run(operator, build).await,
            Self::S17 => s17::run(operator, build).await,
            Self::S20 => s20::run(operator, build).await,
            Self::S21 => s21::run(operator, build).await,
            Self::S26 => s26::run(operator, build).await,
            Self::N1 => n1::run(operator).await,
            Self::N3 => n3::run(operator).await,
            Self::N7 => n7::run(operator).await,
            Self::N10 => n10::run(operator).await,
            Self::N11 => n11::run(operator).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_specimen_has_a_suite_and_what_to_expect_of_each_scenario() {
        for pattern in Pattern::value_variants() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{pattern:?}").to_lowercase());
            assert!(folder.join("spiritlevel.yaml").is_file(), "{} has no suite", folder.display());
            assert!(folder.join("baseline.yaml").is_file(), "{} has no baseline", folder.display());
            for entry in folder.read_dir().expect("the folder was just looked into") {
                let entry = entry.expect("the folder can be read");
                let file = entry.file_name().into_string().expect("names are ASCII");
                if entry.path().is_dir() || file == "spiritlevel.yaml" || file.ends_with(".expect.yaml") {
                    continue;
                }
                let scenario = file.strip_suffix(".yaml").expect("only YAML files lie beside a suite");
                let expect = folder.join(format!("{scenario}.expect.yaml"));
                assert!(expect.is_file(), "{} is missing", expect.display());
            }
        }
    }
}
