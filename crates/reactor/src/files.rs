//! Files whose names come from outside: opened without ever waiting, and only if they are regular files; and
//! folders whose entries outlive a power cut.

use crate::may_wait;
use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Opens a regular file as `options` say. A FIFO, a device or a socket is refused without waiting for its other end;
/// so is a symbolic link in place of the file itself (links among its folders are followed).
///
/// # Errors
/// The system's error, and `InvalidInput` for something other than a regular file.
pub fn open_regular(path: &Path, options: &OpenOptions) -> io::Result<File> {
    may_wait();
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let opened = options.clone().custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => wrong(path, "is a symbolic link: use the path of the file itself"),
        // A FIFO or socket opened for writing, without a reader at its other end.
        Some(libc::ENXIO) => wrong(path, "is not a regular file"),
        _ => error,
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(wrong(path, "is not a regular file")),
    }
}

/// Reads a regular file of at most `most` bytes, opened as [`open_regular`] does.
///
/// # Errors
/// As [`open_regular`], and `InvalidInput` for a longer file.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(wrong(path, &format!("is larger than {most} bytes"))),
        false => Ok(bytes),
    }
}

fn wrong(path: &Path, why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{} {why}", path.display()))
}

/// Makes what was created, renamed or removed in a folder outlive a power cut: `fsync` of a file covers its content,
/// not its name.
///
/// # Errors
/// The system's error.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    may_wait();
    File::open(folder)?.sync_all()
}

/// [`sync_folder`] of the folder that a path is in.
///
/// # Errors
/// The system's error.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_folder(folder),
        _ => sync_folder(Path::new(".")),
    }
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The identity of a file from its metadata.
    pub fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
        }
    }

    /// Whether a path names it, without following a link in the file's own place.
    fn is_at(self, path: &Path) -> io::Result<bool> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) => Ok(Self::of(&meta) == self),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let text = |path: &Path| {
        CString::new(path.as_os_str().as_bytes()).map_err(|_| wrong(path, "has a zero byte"))
    };
    let (from, to) = (text(from)?, text(to)?);
    let at = libc::AT_FDCWD;
    // SAFETY: both are strings that end with a zero, valid during the call.
    let result =
        unsafe { libc::renameat2(at, from.as_ptr(), at, to.as_ptr(), libc::RENAME_NOREPLACE) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Removes the file at `path` if it is the one that was made; whether it was. Another program may put its own there at
/// any moment, so this is done in two steps: the file is renamed to a name of its own, and only when that is the right
/// one it is removed, else renamed back.
///
/// # Errors
/// The system's error.
pub fn remove_file_if(path: &Path, made: FileIdentity) -> io::Result<bool> {
    may_wait();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_file_name(format!(".convect-{}-{number}", std::process::id()));
    if !made.is_at(path)? {
        return Ok(false);
    }
    match rename_to_new(path, &aside) {
        Ok(()) => {}
        // A file system that cannot rename so: what is left is the look a moment ago.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return std::fs::remove_file(path).map(|()| true);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    if made.is_at(&aside)? {
        return std::fs::remove_file(&aside).map(|()| true);
    }
    // Another program made it in between. Should it have made one more since, that one counts.
    if rename_to_new(&aside, path).is_err() {
        std::fs::remove_file(&aside)?;
    }
    Ok(false)
}
