//! Reads a crate's dependencies from its manifest.

use std::path::{Path, PathBuf};

/// One crate of the workspace.
#[derive(Debug)]
pub struct Manifest {
    /// The package's name, `convect-engine` say.
    pub name: String,
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// Names of what it depends on outside its tests, as written in the manifest.
    pub dependencies: Vec<String>,
}

impl Manifest {
    pub(crate) fn read(folder: &Path) -> Self {
        let file = folder.join("Cargo.toml");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let table: toml::Table = text.parse().expect("a valid manifest");
        let name = table["package"]["name"]
            .as_str()
            .expect("a package name")
            .to_owned();
        let dependencies = table
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .map(|dependencies| dependencies.keys().cloned().collect())
            .unwrap_or_default();
        Self {
            name,
            folder: folder.to_path_buf(),
            dependencies,
        }
    }

    /// The folder as the workspace names it, `crates/engine` say.
    ///
    /// # Panics
    /// When the crate is outside the workspace.
    #[must_use]
    pub fn relative_folder(&self) -> String {
        let folder = self
            .folder
            .strip_prefix(crate::root())
            .expect("below the root");
        folder.display().to_string()
    }
}
