//! The state folder: its lock, and the list of pools to reopen after a restart. Everything else is
//! stored in the pools.

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

/// The lock file.
const LOCK: &str = "lock";
/// The list's file, and a backup copy in a folder of its own.
const LIST: &str = "pools.json";
const COPIES: &str = "copies";
const COPY: &str = "copies/pools.json";
/// Maximum size of the list, in bytes.
const LIST_MAX: u64 = 16 << 20;

/// A pool that was open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownPool {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its drives.
    pub drives: Vec<String>,
    /// Generation of its label when this was stored; a drive with an older label is outdated.
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
    /// The folder itself, which can be locked even if no file can be created in it, and the file
    /// `lock` if it exists.
    locks: Vec<File>,
}

impl Drop for StateDir {
    /// Releases the lock explicitly: a process that is being started concurrently (smartctl) holds
    /// a copy of the descriptor until its exec, and with it the lock.
    fn drop(&mut self) {
        for lock in &self.locks {
            // On failure the lock is released when the descriptor is closed.
            let _ = lock.unlock();
        }
    }
}

fn fail(path: &Path, what: &str, error: &io::Error) -> ServeError {
    ServeError::new(format!(
        "cannot {what} the state folder {}: {error}: run as a user with write permission there, \
         or choose another folder with --state-dir",
        path.display()
    ))
}

/// Refuses a folder that is writable by users other than root, the daemon's user and its group.
fn check_owner(path: &Path, folder: &File) -> Result<(), ServeError> {
    let meta = folder
        .metadata()
        .map_err(|error| fail(path, "inspect", &error))?;
    // SAFETY: system calls without arguments, which cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let group = meta.mode() & 0o020 != 0 && meta.gid() != gid && meta.gid() != 0;
    let why = if meta.uid() != uid && meta.uid() != 0 {
        format!("it is owned by user {}", meta.uid())
    } else if meta.mode() & 0o002 != 0 {
        "it is writable by every user".to_owned()
    } else if group {
        format!("it is writable by group {}", meta.gid())
    } else {
        return Ok(());
    };
    Err(ServeError::new(format!(
        "refusing the state folder {}, since {why}: whoever can write there can create tokens; \
         change its owner to this user and its mode to 0750",
        path.display()
    )))
}

/// Locks a descriptor of the folder, or reports the owner of the lock.
fn try_lock(path: &Path, lock: &File) -> Result<(), ServeError> {
    match lock.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(error)) => Err(fail(path, "lock", &error)),
        Err(TryLockError::WouldBlock) => {
            let holder = reactor::read_regular(&path.join(LOCK), 20).unwrap_or_default();
            Err(ServeError::new(format!(
                "another daemon (process {}) uses the state folder {}: stop it, or choose another \
                 folder with --state-dir",
                String::from_utf8_lossy(&holder).trim(),
                path.display()
            )))
        }
    }
}

/// Opens the file with the process id of the lock's owner.
fn open_lock(path: &Path) -> io::Result<File> {
    let path = path.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o640);
    reactor::open_regular(&path, &options)
        // An existing file is locked even if nothing can be written.
        .or_else(|error| {
            reactor::open_regular(&path, OpenOptions::new().read(true)).map_err(|_| error)
        })
}

impl StateDir {
    /// Creates the folder if necessary and locks it. A full or read-only folder is used, and
    /// reported.
    ///
    /// # Errors
    /// When it cannot be created, is writable by others, or is used by another daemon.
    pub fn open(path: &Path) -> Result<Self, ServeError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(path)
            .map_err(|error| fail(path, "create", &error))?;
        let folder = File::open(path).map_err(|error| fail(path, "open", &error))?;
        check_owner(path, &folder)?;
        try_lock(path, &folder)?;
        let files = StateFiles::new(path);
        let mut locks = vec![folder];
        if let Ok(mut lock) = files.note(LOCK, open_lock(path)) {
            try_lock(path, &lock)?;
            // The process id is informational; only the lock counts.
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

    /// The files of the folder.
    pub fn files(&self) -> &StateFiles {
        &self.files
    }

    /// Loads the list of open pools. A damaged list is replaced by its backup.
    pub fn load(&self) -> Vec<KnownPool> {
        let Some(List { pools }) = self.list.read() else {
            return self.copy.read().map_or(Vec::new(), |list| list.pools);
        };
        *lock(&self.written) = Some(pools.clone());
        pools
    }

    /// Stores the list of open pools durably; no effect if it is unchanged.
    ///
    /// # Errors
    /// When the file cannot be written; the old one is unchanged then.
    pub fn save(&self, pools: &[KnownPool]) -> io::Result<()> {
        let mut written = lock(&self.written);
        if written.as_deref() == Some(pools) {
            return Ok(());
        }
        let list = List {
            pools: pools.to_vec(),
        };
        self.list.write(&list)?;
        // The list is essential for service, hence the backup.
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
    fn damaged_pool_list_is_replaced_by_its_backup() {
        for damage in ["", "{", "[]", r#"{"version":2,"pools":[]}"#] {
            let folder = tempfile::tempdir().unwrap();
            let pools = [pool("tank")];
            StateDir::open(folder.path()).unwrap().save(&pools).unwrap();
            std::fs::write(folder.path().join(LIST), damage).unwrap();
            let state = StateDir::open(folder.path()).unwrap();
            assert_eq!(state.load(), pools, "{damage:?}");
            // It is written again although it is unchanged.
            state.save(&pools).unwrap();
            drop(state);
            assert_eq!(StateDir::open(folder.path()).unwrap().load(), pools);
        }
    }

    #[test]
    fn folder_writable_by_others_is_refused() {
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
    fn lock_works_without_a_lock_file() {
        let folder = tempfile::tempdir().unwrap();
        // A directory in place of the file, so that it cannot be created.
        std::fs::create_dir(folder.path().join(LOCK)).unwrap();
        let first = StateDir::open(folder.path()).unwrap();
        assert_eq!(first.files().troubles().len(), 1);
        assert!(StateDir::open(folder.path()).is_err());
        drop(first);
        StateDir::open(folder.path()).unwrap();
    }

    #[test]
    fn lock_is_released_although_a_child_holds_the_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateDir::open(folder.path()).unwrap();
        let inherited: Vec<File> = first
            .locks
            .iter()
            .map(|lock| lock.try_clone().unwrap())
            .collect();
        let Err(refused) = StateDir::open(folder.path()) else {
            panic!("two daemons have locked the folder");
        };
        assert!(refused.to_string().contains("another daemon"), "{refused}");
        drop(first);
        StateDir::open(folder.path()).unwrap();
        drop(inherited);
    }
}
