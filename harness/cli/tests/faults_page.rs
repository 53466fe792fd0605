//! `scenarios/FAULTS.md` says what the program says.

use std::{path::Path, process::Command};

#[test]
fn the_committed_page_of_faults_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = Command::new(env!("CARGO_BIN_EXE_spiritlevel"))
        .args(["faults", "--page", "scenarios", "operators-under-test"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let committed = std::fs::read_to_string(root.join("scenarios/FAULTS.md")).unwrap();
    let made = String::from_utf8(made.stdout).unwrap();
    assert!(
        made == committed,
        "out of date: spiritlevel faults --page scenarios operators-under-test > scenarios/FAULTS.md"
    );
    // Nobody needs a fault that no story uses.
    let unused: Vec<&str> = made.lines().filter(|l| l.starts_with("| `") && l.ends_with("| – | – |")).collect();
    assert!(unused.is_empty(), "without any scenario: {unused:#?}");
}
