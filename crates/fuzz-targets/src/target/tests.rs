//! The registry and the stored inputs belong together.

use super::Target;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(name)
}

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.expect("a readable folder"))
        .map(|entry| entry.file_name().into_string().expect("a name in UTF-8"))
        .collect()
}

#[test]
fn every_target_has_a_name_of_its_own() {
    let names: BTreeSet<_> = Target::all().map(|target| target.name).collect();
    assert_eq!(names.len(), Target::all().count());
}

#[test]
fn every_target_has_a_corpus() {
    for target in Target::all() {
        let folder = folder("corpus").join(target.name);
        assert!(
            !entries(&folder).is_empty(),
            "{} has no input: add a seed to examples/seeds.rs and run it",
            folder.display()
        );
    }
}

#[test]
fn every_folder_of_stored_inputs_has_a_target() {
    for kind in ["corpus", "regressions"] {
        for name in entries(&folder(kind)) {
            let is_target = Target::all().any(|target| target.name == name);
            assert!(is_target, "fuzz/{kind}/{name} belongs to no target");
        }
    }
}
