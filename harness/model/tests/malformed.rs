//! Each file in `malformed/` has one mistake (or says in its first line how many), and its `.txt` what is told about
//! it. `UPDATE_EXPECT=1` writes them anew.

mod common;

use common::{folder, lint_files, read};
use spiritlevel_model::load::{load_expect, load_scenario, load_suite};

#[test]
fn every_mistake_is_told_once_at_its_place() {
    let dir = folder("wellformed");
    let suite = load_suite("spiritlevel.yaml", &read(&dir.join("spiritlevel.yaml")));
    let everything = load_scenario("everything.yaml", &read(&dir.join("everything.yaml")), suite.value.as_ref());
    let mut files: Vec<_> = std::fs::read_dir(folder("malformed")).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    assert!(files.len() >= 20, "{}", files.len());
    for path in files {
        let text = read(&path);
        let name = path.file_name().unwrap().to_str().unwrap();
        let problems = if name.ends_with(".expect.yaml") {
            lint_files(&dir, &suite, Some(&everything), Some(&load_expect(name, &text)))
        } else if text.contains("kind: Suite") {
            lint_files(&dir, &load_suite(name, &text), None, None)
        } else {
            lint_files(&dir, &suite, Some(&load_scenario(name, &text, suite.value.as_ref())), None)
        };
        let mistakes = text.strip_prefix("# ").and_then(|t| t.split(' ').next()?.parse().ok()).unwrap_or(1);
        let told: Vec<String> = problems.iter().map(|p| p.to_string() + "\n").collect();
        let told = told.concat();
        assert_eq!(problems.len(), mistakes, "{name}:\n{told}");
        expect_test::expect_file![path.with_extension("txt")].assert_eq(&told);
    }
}
