//! Mounts of this process: several exports may share one.

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

/// Threads that take requests from the kernel, for one mount: two wait for each other more than they do, which halves
/// what a core writes.
const THREADS: usize = 1;
/// How long to wait for the kernel to let go of a mount, which it does at once unless a program
/// has a file open.
const END_MAX: Duration = Duration::from_secs(1);

/// One mounted folder.
pub(crate) struct Mount {
    pub path: PathBuf,
    pub folder: Arc<Folder>,
    allow_other: bool,
    /// Closed when the kernel has let go of it.
    ended: Mutex<Receiver<()>>,
}

/// The mounts of this process by their path without links, held while one is made or ended.
static MOUNTS: Mutex<BTreeMap<PathBuf, Arc<Mount>>> = Mutex::new(BTreeMap::new());

fn refused(kind: ErrorKind, path: &Path, text: &str) -> Error {
    Error::new(kind, format!("{}: {text}", path.display()))
}

/// The path without links of a folder that can be mounted on.
fn prepare(path: &Path) -> Result<PathBuf> {
    stale::clear(path)?;
    let resolved = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => refused(
            error.kind(),
            path,
            "the folder to mount on does not exist: make it first",
        ),
        kind => refused(kind, path, &error.to_string()),
    })?;
    if !resolved.is_dir() {
        return Err(refused(
            ErrorKind::NotADirectory,
            path,
            "is not a folder: choose an empty folder to mount on",
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
            "the folder to mount on is not empty: choose an empty one",
        ));
    }
    if !Path::new("/dev/fuse").exists() {
        return Err(refused(
            ErrorKind::NotFound,
            path,
            "cannot mount, for /dev/fuse is missing: run 'modprobe fuse', or give the container \
             that device",
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
        .map_err(|error| refused(error.kind(), path, &format!("cannot be mounted: {error}")))?;
    let (ending, ended) = sync_channel(0);
    std::thread::Builder::new()
        .name("fuse-session".to_owned())
        .spawn(move || {
            // Its end is that of the mount; a mount that broke answers nobody any more.
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

/// The mount of a folder, made if it is not mounted yet; `then` adds a file to it.
pub(crate) fn with_mount<T>(
    parameters: &Parameters,
    then: impl FnOnce(&Arc<Mount>) -> Result<T>,
) -> Result<T> {
    let mut mounts = MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    // A mount that somebody ended by hand is none any more.
    mounts.retain(|_, mount| !mount.has_ended());
    // Looked for by name first: asking our own mount could wait for a volume that hangs.
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
            "another export in this folder has another value of allow-other: use the same one",
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

/// Removes a file from its mount, and the mount when this was its last file.
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

    /// Unmounts, also when a program has a file open: it gets errors until it closes it.
    fn end(&self) {
        if self.has_ended() || stale::detach(&self.path).is_err() {
            return;
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(END_MAX);
    }
}
