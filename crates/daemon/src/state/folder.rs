//! The folder: who uses it, and the list of pools to open again after a restart. Everything else lies in the pools.

use super::files::StateFiles;
use super::json_store::JsonStore;
use crate::ServeError;
use crate::sync::lock;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

/// The file that is locked.
const LOCK: &str = "lock";
/// The list's file, and a copy for the case that it is damaged, in a folder of its own.
const LIST: &str = "pools.json";
const COPIES: &str = "copies";
const COPY: &str = "copies/pools.json";
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
    /// Generation of a label that it had then: older ones alone are not what this host has served.
    #[serde(default)]
    pub generation: u64,
}

#[derive(Serialize, Deserialize)]
struct List {
    pools: Vec<KnownPool>,
}

/// The state folder of one daemon.
pub struct StateDir {
    files: StateFiles,
    list: JsonStore<List>,
    copy: JsonStore<List>,
    written: Mutex<Option<Vec<KnownPool>>>,
    /// The folder itself, which can be locked when no file can be made in it, and the file `lock`, where there is one.
    locks: Vec<File>,
}

impl Drop for StateDir {
    /// Gives the lock up at once: a program that is being started beside (smartctl) has a copy of
    /// the descriptor until it runs, and would keep the lock that long.
    fn drop(&mut self) {
        for lock in &self.locks {
            // A failure leaves the lock to the end of the descriptor, which is what would happen anyway.
            let _ = lock.unlock();
        }
    }
}

fn fail(path: &Path, what: &str, error: &io::Error) -> ServeError {
    ServeError::new(format!(
        "cannot {what} the state folder {}: {error}: run as a user that may write there or choose another with \
         --state-dir",
        path.display()
    ))
}

/// Refuses a folder in which users other than root, the daemon's and members of its group may put files.
fn check_owner(path: &Path, folder: &File) -> Result<(), ServeError> {
    let meta = folder
        .metadata()
        .map_err(|error| fail(path, "look at", &error))?;
    // SAFETY: plain system calls without arguments, which cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let group = meta.mode() & 0o020 != 0 && meta.gid() != gid && meta.gid() != 0;
    let why = if meta.uid() != uid && meta.uid() != 0 {
        format!("it belongs to user {}", meta.uid())
    } else if meta.mode() & 0o002 != 0 {
        "every user may write to it".to_owned()
    } else if group {
        format!("members of group {} may write to it", meta.gid())
    } else {
        return Ok(());
    };
    Err(ServeError::new(format!(
        "the state folder {} is not used, since {why}: whoever can put files there gives out tokens; make it this \
         user's own with mode 0750",
        path.display()
    )))
}

/// Locks a descriptor of the folder, or says who has it.
fn try_lock(path: &Path, lock: &File) -> Result<(), ServeError> {
    match lock.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(error)) => Err(fail(path, "lock", &error)),
        Err(TryLockError::WouldBlock) => {
            let holder = reactor::read_regular(&path.join(LOCK), 20).unwrap_or_default();
            Err(ServeError::new(format!(
                "another daemon (process {}) uses the state folder {}: stop it or choose another with --state-dir",
                String::from_utf8_lossy(&holder).trim(),
                path.display()
            )))
        }
    }
}

/// The file that says which process has the folder.
fn open_lock(path: &Path) -> io::Result<File> {
    let path = path.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o640);
    reactor::open_regular(&path, &options)
        // One that is there is locked also where nothing can be written.
        .or_else(|error| {
            reactor::open_regular(&path, OpenOptions::new().read(true)).map_err(|_| error)
        })
}

impl StateDir {
    /// Makes the folder if it is not there and locks it. One that is full or read-only is used as it is, and noted.
    ///
    /// # Errors
    /// When it is not there and cannot be made, others may write to it, or another daemon uses it.
    pub fn open(path: &Path) -> Result<Self, ServeError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(path)
            .map_err(|error| fail(path, "make", &error))?;
        let folder = File::open(path).map_err(|error| fail(path, "look into", &error))?;
        check_owner(path, &folder)?;
        try_lock(path, &folder)?;
        let files = StateFiles::new(path);
        let mut locks = vec![folder];
        if let Ok(mut lock) = files.note(LOCK, open_lock(path)) {
            try_lock(path, &lock)?;
            // Who has it is a courtesy; the lock is what counts.
            let _ = lock
                .set_len(0)
                .and_then(|()| writeln!(lock, "{}", std::process::id()));
            locks.push(lock);
        }
        files.probe();
        Ok(Self {
            list: JsonStore::new(&files, LIST, LIST_MAX, 0o640),
            copy: JsonStore::new(&files, COPY, LIST_MAX, 0o640),
            files,
            written: Mutex::new(None),
            locks,
        })
    }

    /// Its files.
    pub fn files(&self) -> &StateFiles {
        &self.files
    }

    /// The pools that were open. A list that is damaged is replaced by its copy.
    pub fn load(&self) -> Vec<KnownPool> {
        let Some(List { pools }) = self.list.read() else {
            return self.copy.read().map_or(Vec::new(), |list| list.pools);
        };
        *lock(&self.written) = Some(pools.clone());
        pools
    }

    /// Keeps the pools that are open, durably; does nothing when they are the ones kept.
    ///
    /// # Errors
    /// When the file cannot be written; the old one is still there then.
    pub fn save(&self, pools: &[KnownPool]) -> io::Result<()> {
        let mut written = lock(&self.written);
        if written.as_deref() == Some(pools) {
            return Ok(());
        }
        let list = List {
            pools: pools.to_vec(),
        };
        self.list.write(&list)?;
        // What is served depends on this file: there are two of it.
        let _ = std::fs::create_dir(self.files.folder().join(COPIES));
        self.copy.write(&list)?;
        *written = Some(list.pools);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str) -> KnownPool {
        KnownPool {
            id: name.to_owned(),
            name: name.to_owned(),
            drives: vec!["file:/a".to_owned()],
            generation: 7,
        }
    }

    #[test]
    fn a_damaged_list_of_pools_is_replaced_by_its_copy() {
        for damage in ["", "{", "[]", r#"{"version":2,"pools":[]}"#] {
            let folder = tempfile::tempdir().unwrap();
            let pools = [pool("tank")];
            StateDir::open(folder.path()).unwrap().save(&pools).unwrap();
            std::fs::write(folder.path().join(LIST), damage).unwrap();
            let state = StateDir::open(folder.path()).unwrap();
            assert_eq!(state.load(), pools, "{damage:?}");
            // It is written again, though it is the same.
            state.save(&pools).unwrap();
            drop(state);
            assert_eq!(StateDir::open(folder.path()).unwrap().load(), pools);
        }
    }

    #[test]
    fn a_folder_in_which_others_may_put_files_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for (mode, good) in [
            (0o777, false),
            (0o1777, false),
            (0o752, false),
            (0o750, true),
        ] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), mode.clone()).unwrap();
            let opened = StateDir::open(folder.path());
            assert_eq!(opened.is_ok(), good, "{mode:?}");
        }
    }

    #[test]
    fn the_lock_holds_where_its_file_cannot_be_made() {
        let folder = tempfile::tempdir().unwrap();
        // In place of the file: nothing can be made there.
        std::fs::create_dir(folder.path().join(LOCK)).unwrap();
        let first = StateDir::open(folder.path()).unwrap();
        assert_eq!(first.files().troubles().len(), 1);
        assert!(StateDir::open(folder.path()).is_err());
        drop(first);
        StateDir::open(folder.path()).unwrap();
    }

    #[test]
    fn the_folder_is_free_once_let_go_though_a_started_program_has_the_descriptor_still() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateDir::open(folder.path()).unwrap();
        let inherited: Vec<File> = first
            .locks
            .iter()
            .map(|lock| lock.try_clone().unwrap())
            .collect();
        let Err(refused) = StateDir::open(folder.path()) else {
            panic!("two have the folder");
        };
        assert!(refused.to_string().contains("another daemon"), "{refused}");
        drop(first);
        StateDir::open(folder.path()).unwrap();
        drop(inherited);
    }
}
