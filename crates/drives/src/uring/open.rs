//! Opening: create if asked to, past the page cache where possible, locked against others.

use super::busy::{device_user, lock, patiently, unlock};
use super::discover::{Found, discover};
use crate::spec::{Named, SIZE_MIN};
use crate::{OpenError, OpenErrorKind};
use reactor::FileIdentity;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use units::format_bytes;

/// The purpose of an opening.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading, beside others who read.
    Read,
    /// Reading and writing, alone.
    Write,
}

/// An open file whose lock ends with it.
pub(crate) struct LockedFile(File);

impl AsFd for LockedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        unlock(self.0.as_raw_fd());
    }
}

/// Opens what `named` names, creating it when it is absent and a size was given.
pub(crate) fn open_locked(named: &Named, access: Access) -> Result<(LockedFile, Found), OpenError> {
    reactor::may_wait();
    let path = Path::new(&named.name);
    let created = match (fs::metadata(path), named.size) {
        (Err(error), Some(size))
            if error.kind() == io::ErrorKind::NotFound && access == Access::Write =>
        {
            Some(create(path, size)?)
        }
        _ => None,
    };
    let opened = open_existing(path, named.size, access);
    if let (Some(made), Err(_)) = (created, &opened) {
        // Nothing half-made stays behind; the error that matters is the one of the opening.
        let _ = reactor::remove_file_if(path, made);
    }
    opened
}

/// Creates a file that is not there yet, durably.
pub(crate) fn create(path: &Path, size: u64) -> Result<FileIdentity, OpenError> {
    let explain = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            return OpenError::new(
                OpenErrorKind::NotFound,
                format!(
                    "cannot create {}: its directory does not exist; create it first",
                    path.display()
                ),
            );
        }
        OpenError::system(&format!("cannot create {}", path.display()), &error)
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(explain)?;
    let made = FileIdentity::of(&file.metadata().map_err(explain)?);
    let kept = file.set_len(size).and_then(|()| {
        file.sync_all()?;
        reactor::sync_folder_of(path)
    });
    kept.map_err(|error| {
        // As above: the file is ours, empty and of no use.
        let _ = reactor::remove_file_if(path, made);
        explain(error)
    })?;
    Ok(made)
}

fn open_existing(
    path: &Path,
    size: Option<u64>,
    access: Access,
) -> Result<(LockedFile, Found), OpenError> {
    let cannot_open = format!("cannot open {}", path.display());
    let meta = fs::metadata(path).map_err(|error| OpenError::system(&cannot_open, &error))?;
    check_type(path, &meta)?;
    let in_use = |user: String| {
        OpenError::new(
            OpenErrorKind::Busy,
            format!(
                "{} is in use: {user}; release it first or choose another drive",
                path.display()
            ),
        )
    };
    if let Some(user) = device_user(&meta) {
        return Err(in_use(user));
    }
    let exclusive = if meta.file_type().is_block_device() {
        libc::O_EXCL
    } else {
        0
    };
    let open = |flags: i32| {
        patiently(|| {
            OpenOptions::new()
                .read(true)
                .write(access == Access::Write)
                // The file may have been replaced by a FIFO since the check: opening must not wait.
                .custom_flags(flags | exclusive | libc::O_NONBLOCK)
                .open(path)
        })
    };
    let (result, direct) = match open(libc::O_DIRECT) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => (open(0), false),
        result => (result, true),
    };
    let file = result.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => in_use("another program has opened it exclusively".to_owned()),
        _ => OpenError::system(&cannot_open, &error),
    })?;
    let opened = file
        .metadata()
        .map_err(|error| OpenError::system(&cannot_open, &error))?;
    check_type(path, &opened)?;
    wait_again(&file).map_err(|error| OpenError::system(&cannot_open, &error))?;
    lock(path, &file, access == Access::Write)?;
    let file = LockedFile(file);
    let found = discover(&file.0, direct).map_err(|error| {
        let what = format!("cannot use {}", path.display());
        if error.kind() == io::ErrorKind::Unsupported {
            OpenError::new(OpenErrorKind::Unsupported, format!("{what}: {error}"))
        } else {
            OpenError::system(&what, &error)
        }
    })?;
    check_size(path, &found, size)?;
    Ok((file, found))
}

/// Clears `O_NONBLOCK`: with it io_uring gives requests back undone where the file system would have to wait.
fn wait_again(file: &File) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: system calls without pointers, on an open descriptor.
    let result = unsafe {
        match libc::fcntl(fd, libc::F_GETFL) {
            -1 => -1,
            flags => libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK),
        }
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Refuses folders, pipes, terminals and the like before they are opened.
pub(super) fn check_type(path: &Path, meta: &fs::Metadata) -> Result<(), OpenError> {
    let kind = meta.file_type();
    if kind.is_file() || kind.is_block_device() {
        return Ok(());
    }
    let what = if kind.is_dir() {
        "a directory"
    } else {
        "neither a regular file nor a block device"
    };
    Err(OpenError::new(
        OpenErrorKind::Unsupported,
        format!(
            "{} is {what}: specify a file or a block device",
            path.display()
        ),
    ))
}

fn check_size(path: &Path, found: &Found, wanted: Option<u64>) -> Result<(), OpenError> {
    let small = |text: String| Err(OpenError::new(OpenErrorKind::TooSmall, text));
    let has = format_bytes(found.size);
    if found.size < SIZE_MIN {
        return small(format!(
            "{} has {has}: the minimum size of a drive is {}",
            path.display(),
            format_bytes(SIZE_MIN)
        ));
    }
    match wanted {
        Some(wanted) if found.size < wanted => small(format!(
            "{} exists and has {has}, less than the specified {}: omit the size to use it as it is, or remove it first",
            path.display(),
            format_bytes(wanted)
        )),
        _ => Ok(()),
    }
}
