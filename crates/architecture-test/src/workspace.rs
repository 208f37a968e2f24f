//! Where the workspace and its files are.

use crate::{Manifest, Source};
use std::path::{Path, PathBuf};

/// The folder of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("the crate lies two folders below the workspace")
        .to_path_buf()
}

/// Every crate that the workspace's manifest lists.
#[must_use]
pub fn workspace_crates() -> Vec<Manifest> {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("a root manifest");
    let table: toml::Table = text.parse().expect("a valid root manifest");
    let members = table["workspace"]["members"]
        .as_array()
        .expect("a list of members");
    members
        .iter()
        .map(|member| Manifest::read(&root().join(member.as_str().expect("a member's folder"))))
        .collect()
}

/// Every Rust file below a folder of the workspace, named relative to it.
#[must_use]
pub fn sources_under(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path
                .strip_prefix(root())
                .expect("below the root")
                .display()
                .to_string();
            let text = std::fs::read_to_string(&path).expect("a readable source");
            found.push(Source { name, text });
        }
    }
}
