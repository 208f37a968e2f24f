//! Mounts of this process, which several exports may share.

use crate::filesystem::Volumes;
use crate::folder::Folder;
use crate::parameters::Parameters;
use crate::stale::{self, SOURCE};
use fuser::{Config, MountOption, Session, SessionACL};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Threads per mount that read requests from the kernel: with two, contention halves the write
/// throughput per core.
const THREADS: usize = 1;
/// Time limit for the kernel to release a mount, which is immediate unless a program has a file
/// open.
const END_MAX: Duration = Duration::from_secs(1);

/// A mounted directory.
pub(crate) struct Mount {
    pub path: PathBuf,
    pub folder: Arc<Folder>,
    allow_other: bool,
    /// Closed when the kernel has released the mount.
    ended: Mutex<Receiver<()>>,
}

/// Mounts of this process by canonical path; locked while one is created or removed.
static MOUNTS: Mutex<BTreeMap<PathBuf, Arc<Mount>>> = Mutex::new(BTreeMap::new());

fn refused(kind: ErrorKind, path: &Path, text: &str) -> Error {
    Error::new(kind, format!("{}: {text}", path.display()))
}

/// The canonical path of a directory that can be mounted on.
fn prepare(path: &Path) -> Result<PathBuf> {
    stale::clear(path)?;
    let resolved = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => refused(
            error.kind(),
            path,
            "the mount point does not exist: create it first",
        ),
        kind => refused(kind, path, &error.to_string()),
    })?;
    if !resolved.is_dir() {
        return Err(refused(
            ErrorKind::NotADirectory,
            path,
            "is not a directory: choose an empty directory to mount on",
        ));
    }
    Ok(resolved)
}

fn mount(path: &Path, allow_other: bool) -> Result<Mount> {
    let mut entries =
        std::fs::read_dir(path).map_err(|error| refused(error.kind(), path, &error.to_string()))?;
    if entries.next().is_some() {
        return Err(refused(
            ErrorKind::DirectoryNotEmpty,
            path,
            "the mount point is not empty: choose an empty directory",
        ));
    }
    if !Path::new("/dev/fuse").exists() {
        return Err(refused(
            ErrorKind::NotFound,
            path,
            "cannot mount: /dev/fuse is missing: run 'modprobe fuse', or add that device to the \
             container",
        ));
    }
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(SOURCE.to_owned()),
        MountOption::Subtype(SOURCE.to_owned()),
        MountOption::NoExec,
    ];
    if allow_other {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    config.n_threads = Some(THREADS);
    let folder = Arc::new(Folder::new());
    let session = Session::new(Volumes(folder.clone()), path, &config)
        .map_err(|error| refused(error.kind(), path, &format!("cannot mount: {error}")))?;
    let (ending, ended) = sync_channel(0);
    std::thread::Builder::new()
        .name("fuse-session".to_owned())
        .spawn(move || {
            // The session ends with the mount; a broken mount answers no requests.
            let _ = session.run();
            drop(ending);
        })?;
    Ok(Mount {
        path: path.to_owned(),
        folder,
        allow_other,
        ended: Mutex::new(ended),
    })
}

/// The mount of a directory, created if necessary; `then` adds a file to it.
pub(crate) fn with_mount<T>(
    parameters: &Parameters,
    then: impl FnOnce(&Arc<Mount>) -> Result<T>,
) -> Result<T> {
    let mut mounts = MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Forget mounts that were unmounted manually.
    mounts.retain(|_, mount| !mount.has_ended());
    // Search by name first: accessing our own mount could block on a hanging volume.
    let by_name = stale::resolve(&parameters.mount).ok();
    let path = match by_name.filter(|path| mounts.contains_key(path)) {
        Some(path) => path,
        None => prepare(&parameters.mount)?,
    };
    let known = mounts.get(&path).cloned();
    match known {
        Some(known) if known.allow_other != parameters.allow_other => Err(refused(
            ErrorKind::InvalidInput,
            &path,
            "another export in this directory has a different value of allow-other: use the same \
             value",
        )),
        Some(known) => then(&known),
        None => {
            let made = Arc::new(mount(&path, parameters.allow_other)?);
            let result = then(&made);
            match result {
                Ok(_) => {
                    mounts.insert(path, made);
                }
                Err(_) => made.end(),
            }
            result
        }
    }
}

/// Removes a file from its mount, and the mount with its last file.
pub(crate) fn remove(mount: &Arc<Mount>, number: u64) {
    let mut mounts = MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    if mount.folder.remove(number) {
        if let Some(known) = mounts.get(&mount.path)
            && Arc::ptr_eq(known, mount)
        {
            mounts.remove(&mount.path);
        }
        mount.end();
    }
}

impl Mount {
    fn has_ended(&self) -> bool {
        use std::sync::mpsc::TryRecvError;
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Unmounts lazily: programs with an open file get errors until they close it.
    fn end(&self) {
        if self.has_ended() || stale::detach(&self.path).is_err() {
            return;
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(END_MAX);
    }
}
