//! A value stored as JSON in one file of the state folder, like the lists of objects that users
//! created.
//!
//! The file is replaced atomically (write, fsync, rename, fsync of the folder): after a crash it
//! has the old or the new content. It contains its format version: a file that is damaged or has a
//! newer version is set aside and reported as an alert, and the daemon runs without it.

use super::files::StateFiles;
use api::v1::{Problem, ProblemCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::marker::PhantomData;

/// Version of the written format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    value: T,
}

/// Storage of a `T`, which must be a struct: its fields are stored beside the version.
pub struct JsonStore<T> {
    files: StateFiles,
    name: &'static str,
    /// Maximum size of the file, in bytes.
    bytes_max: u64,
    mode: u32,
    kept: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> JsonStore<T> {
    /// A file with this name, maximum size and access mode.
    pub fn new(files: &StateFiles, name: &'static str, bytes_max: u64, mode: u32) -> Self {
        Self {
            files: files.clone(),
            name,
            bytes_max,
            mode,
            kept: PhantomData,
        }
    }

    /// The stored value; nothing if there is no file, or it was set aside.
    pub fn read(&self) -> Option<T> {
        self.read_checked(Ok)
    }

    /// The stored value, validated by `check`. A rejected file counts as damaged.
    pub fn read_checked<U>(&self, check: impl FnOnce(T) -> Result<U, String>) -> Option<U> {
        self.files.read(self.name, self.bytes_max, |text| {
            let kept: Versioned<T> =
                serde_json::from_slice(text).map_err(|error| error.to_string())?;
            match kept.version {
                VERSION => check(kept.value),
                version => Err(format!("version {version} was written by a newer daemon")),
            }
        })
    }

    fn text(value: &T) -> io::Result<Vec<u8>> {
        let version = VERSION;
        Ok(serde_json::to_vec_pretty(&Versioned { version, value })?)
    }

    /// Stores a value in the background: a failure becomes an alert until it succeeds.
    ///
    /// # Errors
    /// When it cannot be written; the old file is unchanged then.
    pub fn write(&self, value: &T) -> io::Result<()> {
        let written = Self::text(value).and_then(|text| self.replace(&text));
        self.files.note(self.name, written)
    }

    /// Stores a value for a caller, who receives the error. `what` names it in the plural.
    ///
    /// # Errors
    /// As [`JsonStore::write`].
    pub fn write_for_caller(&self, what: &str, value: &T) -> Result<(), Problem> {
        let written = Self::text(value).and_then(|text| self.replace(&text));
        written.map_err(|error| {
            let text = format!("cannot store {what}: {error}: check the state folder");
            Problem::new(ProblemCode::Io, text)
        })
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        self.files.replace(self.name, text, self.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Trouble;
    use std::os::unix::fs::PermissionsExt;

    #[derive(PartialEq, Debug, Serialize, Deserialize)]
    struct Names {
        names: Vec<String>,
    }

    fn names(names: &[&str]) -> Names {
        Names {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn value_round_trips_with_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let store = JsonStore::new(&StateFiles::new(folder.path()), "f", 1 << 10, 0o600);
        assert_eq!(store.read(), None::<Names>);
        store.write(&names(&["a", "b"])).unwrap();
        assert_eq!(store.read(), Some(names(&["a", "b"])));
        store.write_for_caller("the names", &names(&[])).unwrap();
        assert_eq!(store.read(), Some(names(&[])));
        let path = folder.path().join("f");
        let text: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(text, serde_json::json!({"version": 1, "names": []}));
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn damaged_or_newer_file_is_set_aside_and_reported() {
        for damage in ["", "{", r#"{"names":[]}"#, r#"{"version":2,"names":[]}"#] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("f"), damage).unwrap();
            let files = StateFiles::new(folder.path());
            let store = JsonStore::<Names>::new(&files, "f", 1 << 10, 0o600);
            assert_eq!(store.read(), None, "{damage}");
            assert!(matches!(
                &files.troubles()[..],
                [("f", Trouble::Damaged(..))]
            ));
            let aside = std::fs::read_to_string(folder.path().join("f.damaged"));
            assert_eq!(aside.unwrap(), damage);
        }
    }

    #[test]
    fn failed_write_keeps_the_old_value_and_alerts_only_in_the_background() {
        let folder = tempfile::tempdir().unwrap();
        let files = StateFiles::new(folder.path());
        let store = JsonStore::new(&files, "f", 1 << 10, 0o600);
        store.write(&names(&["a"])).unwrap();
        // Blocks the new file.
        std::fs::create_dir(folder.path().join("f.new")).unwrap();
        let refused = store
            .write_for_caller("the names", &names(&[]))
            .unwrap_err();
        assert!(
            refused.message.contains("cannot store the names"),
            "{refused}"
        );
        assert_eq!(files.troubles(), []);
        store.write(&names(&[])).unwrap_err();
        assert_eq!(files.troubles().len(), 1);
        assert_eq!(store.read(), Some(names(&["a"])));
    }
}
