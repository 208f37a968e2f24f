//! How many programs the tests are: each is linked for itself, with all that it uses, and that takes longer
//! than most of them run.

use architecture_test::{Manifest, sources_under, workspace_crates};
use std::path::Path;

/// What the manifest says of its library.
fn library(manifest: &Manifest) -> Option<toml::Table> {
    let text = std::fs::read_to_string(manifest.folder.join("Cargo.toml")).expect("readable");
    let table: toml::Table = text.parse().expect("a valid manifest");
    table.get("lib")?.as_table().cloned()
}

/// Whether cargo takes this for a program: a file, or a folder with a `main.rs`.
fn is_program(path: &Path) -> bool {
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    is_source || path.join("main.rs").exists()
}

#[test]
fn the_integration_tests_of_a_crate_are_one_program() {
    for manifest in workspace_crates() {
        let Ok(entries) = std::fs::read_dir(manifest.folder.join("tests")) else {
            continue;
        };
        let paths = entries.map(|entry| entry.expect("readable").path());
        let programs: Vec<_> = paths.filter(|path| is_program(path)).collect();
        assert!(
            programs.len() <= 1,
            "make them modules of one: {programs:?}"
        );
    }
}

#[test]
fn a_library_that_is_not_tested_has_no_tests() {
    for manifest in workspace_crates() {
        let is_tested = |lib: &toml::Table| {
            lib.get("test")
                .is_none_or(|test| test.as_bool() != Some(false))
        };
        if library(&manifest).is_none_or(|lib| is_tested(&lib)) {
            continue;
        }
        for source in sources_under(&format!("{}/src", manifest.relative_folder())) {
            let line = source.text.lines().find(|line| line.trim() == "#[test]");
            assert_eq!(
                line, None,
                "{}: take `test = false` out of the manifest",
                source.name
            );
        }
    }
}

#[test]
fn there_are_no_tests_in_documentation() {
    for manifest in workspace_crates() {
        let Some(lib) = library(&manifest) else {
            continue;
        };
        assert_eq!(lib.get("doctest"), Some(&false.into()), "{}", manifest.name);
    }
    for source in sources_under("crates") {
        let fences = source.text.lines().map(str::trim);
        let example =
            fences.filter(|line| line.starts_with("/// ```") || line.starts_with("//! ```"));
        let mut opened = example.step_by(2);
        let is_code = |line: &&str| !line.ends_with("text");
        assert_eq!(
            opened.find(is_code),
            None,
            "{}: nothing runs it, so make it a test",
            source.name
        );
    }
}
