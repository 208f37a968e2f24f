//! The state folder: which pools to open again after a restart, and the lock that keeps a second
//! daemon away. Everything else lies in the pools.

use crate::ServeError;
use crate::access::write_whole;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The list's file.
const LIST: &str = "pools.json";
/// Longest list that is read, in bytes.
const LIST_MAX: u64 = 16 << 20;

/// A pool that was open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownPool {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The drives that it was open on.
    pub drives: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct List {
    version: u32,
    pools: Vec<KnownPool>,
}

/// The state folder of one daemon.
pub struct StateDir {
    path: PathBuf,
    written: Mutex<Option<Vec<KnownPool>>>,
    lock: File,
}

impl Drop for StateDir {
    /// Gives the lock up at once: a program that is being started beside (smartctl) has a copy of
    /// the descriptor until it runs, and would keep the lock that long.
    fn drop(&mut self) {
        // A failure leaves the lock to the end of the descriptor, which is what would happen anyway.
        let _ = self.lock.unlock();
    }
}

impl StateDir {
    /// Makes the folder if it is not there and locks it.
    ///
    /// # Errors
    /// When it cannot be written, or another daemon uses it.
    pub fn open(path: &Path) -> Result<Self, ServeError> {
        let fail = |what: &str, error: io::Error| {
            ServeError::new(format!(
                "cannot {what} the state folder {}: {error}: run as a user that may write there or \
                 choose another with --state-dir",
                path.display()
            ))
        };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(path)
            .map_err(|error| fail("make", error))?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o640)
            .open(path.join("lock"))
            .map_err(|error| fail("write in", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = (&lock).take(20).read_to_string(&mut holder);
                return Err(ServeError::new(format!(
                    "another daemon (process {}) uses the state folder {}: stop it or choose \
                     another with --state-dir",
                    holder.trim(),
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(fail("lock", error)),
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(|error| fail("write in", error))?;
        Ok(Self {
            path: path.to_owned(),
            written: Mutex::new(None),
            lock,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn list_path(&self) -> PathBuf {
        self.path.join(LIST)
    }

    /// The pools that were open.
    ///
    /// # Errors
    /// When the list is damaged.
    pub fn load(&self) -> Result<Vec<KnownPool>, ServeError> {
        let path = self.list_path();
        let fail = |why: String| {
            ServeError::new(format!(
                "cannot read {}: {why}: move the file away, start again and open the pools with \
                 `convect pool import`",
                path.display()
            ))
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(fail(error.to_string())),
        };
        let mut text = String::new();
        file.take(LIST_MAX)
            .read_to_string(&mut text)
            .map_err(|error| fail(error.to_string()))?;
        let list: List = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        if list.version != 1 {
            return Err(fail(format!(
                "it has version {}, of a newer daemon",
                list.version
            )));
        }
        *self.lock_written() = Some(list.pools.clone());
        Ok(list.pools)
    }

    fn lock_written(&self) -> std::sync::MutexGuard<'_, Option<Vec<KnownPool>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the pools that are open, durably; does nothing when they are the ones kept.
    ///
    /// # Errors
    /// When the file cannot be written; the old one is still there then.
    pub fn save(&self, pools: &[KnownPool]) -> io::Result<()> {
        let mut written = self.lock_written();
        if written.as_deref() == Some(pools) {
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(&List {
            version: 1,
            pools: pools.to_vec(),
        })?;
        write_whole(&self.path, LIST, &text, 0o640)?;
        *written = Some(pools.to_vec());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_free_once_let_go_though_a_started_program_has_the_descriptor_still() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateDir::open(folder.path()).unwrap();
        let inherited = first.lock.try_clone().unwrap();
        let Err(refused) = StateDir::open(folder.path()) else {
            panic!("two have the folder");
        };
        assert!(refused.to_string().contains("another daemon"), "{refused}");
        drop(first);
        StateDir::open(folder.path()).unwrap();
        drop(inherited);
    }
}
