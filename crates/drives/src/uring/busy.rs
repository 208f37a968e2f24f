//! Who else uses a file or a device, for error messages, and the lock against them.

use crate::{OpenError, OpenErrorKind};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for a lock to be released: a killed process's lock lasts until its last transfer ends.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// Retries of reading the system's table of locks for the holder of one.
const TABLE_READS: usize = 8;

/// Retries while the lock is held by another process, for at most [`PATIENCE`].
pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EBUSY | libc::EWOULDBLOCK | libc::EINTR)
                ) && Instant::now() < deadline =>
            {
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// Locks a file against every other locked opening of it, or against those that are `alone`.
pub(super) fn lock(path: &Path, file: &File, alone: bool) -> Result<(), OpenError> {
    let kind = if alone { libc::LOCK_EX } else { libc::LOCK_SH };
    patiently(|| flock(file.as_raw_fd(), kind | libc::LOCK_NB)).map_err(|error| {
        if error.raw_os_error() != Some(libc::EWOULDBLOCK) {
            return OpenError::system(&format!("cannot lock {}", path.display()), &error);
        }
        let holder = file.metadata().ok().and_then(|meta| lock_holder(&meta));
        OpenError::new(
            OpenErrorKind::Busy,
            format!(
                "{} is locked by {}: it belongs to an open pool; close that pool or stop that program",
                path.display(),
                holder.unwrap_or_else(|| "another program".to_owned())
            ),
        )
    })
}

/// Releases the lock immediately, even where the kernel still holds the descriptor for a while.
pub(super) fn unlock(fd: RawFd) {
    // A failure leaves the lock to the end of the descriptor, which is what would happen anyway.
    let _ = flock(fd, libc::LOCK_UN);
}

fn flock(fd: RawFd, operation: i32) -> io::Result<()> {
    // SAFETY: plain system call on a descriptor that the caller keeps open.
    if unsafe { libc::flock(fd, operation) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The process that holds a lock on a file, as the system's table of locks tells.
///
/// The system hands the table out in parts: while others lock and unlock, a line can fall between two of them.
fn lock_holder(meta: &Metadata) -> Option<String> {
    let device = meta.dev();
    let wanted = format!(
        "{:02x}:{:02x}:{}",
        libc::major(device),
        libc::minor(device),
        meta.ino()
    );
    let pid = (0..TABLE_READS).find_map(|_| pid_in_table(&wanted))?;
    if pid == std::process::id().to_string() {
        return Some("this process".to_owned());
    }
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("process {pid} ({})", name.trim()))
}

/// The process that has a lock on a file, which is named as the table of locks names it.
fn pid_in_table(wanted: &str) -> Option<String> {
    let table = fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&wanted))
            .then(|| fields[4].to_owned())
    })
}

/// The user of a block device, if the system reports it: `it is mounted at /srv`.
pub(super) fn device_user(meta: &Metadata) -> Option<String> {
    if !meta.file_type().is_block_device() {
        return None;
    }
    let (major, minor) = (libc::major(meta.rdev()), libc::minor(meta.rdev()));
    let number = format!("{major}:{minor}");
    if let Ok(table) = fs::read_to_string("/proc/self/mountinfo") {
        let mounted = table.lines().find_map(|line| {
            let mut fields = line.split_whitespace().skip(2);
            (fields.next() == Some(&number)).then(|| fields.nth(1).unwrap_or("?").to_owned())
        });
        if let Some(place) = mounted {
            return Some(format!("it is mounted at {place}"));
        }
    }
    if let Ok(table) = fs::read_to_string("/proc/swaps") {
        let swap = table.lines().skip(1).any(|line| {
            let path = line.split_whitespace().next().unwrap_or_default();
            fs::metadata(path).is_ok_and(|other| other.rdev() == meta.rdev())
        });
        if swap {
            return Some("it is used as swap space".to_owned());
        }
    }
    let holders = fs::read_dir(format!("/sys/dev/block/{number}/holders")).ok()?;
    let names: Vec<String> = holders
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    (!names.is_empty()).then(|| format!("it is part of {}", names.join(", ")))
}
