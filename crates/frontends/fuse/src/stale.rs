//! Stale mounts of a killed daemon, and their removal.

use std::ffi::CString;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Source name of our mounts.
pub(crate) const SOURCE: &str = "convect";
/// Maximum number of stale mounts removed from a directory.
const STALE_MAX: usize = 16;

/// Detaches the topmost mount of a directory (lazy unmount): open files keep it until they are
/// closed.
pub(crate) fn detach(path: &Path) -> Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a zero-terminated path that is valid during the call.
    if unsafe { libc::umount2(name.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) } == 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    if error.raw_os_error() != Some(libc::EPERM) {
        return Err(error);
    }
    // Without root, the setuid helper that mounted it must unmount it.
    let status = Command::new("fusermount3")
        .args(["-u", "-z", "-q", "--"])
        .arg(path)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(error),
    }
}

/// Decodes escapes of the mount table: `\040` is a space.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let value = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match value {
            Some(value) => {
                plain.push(value);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    plain
}

/// Whether the topmost mount on `path` in a mount table (`proc(5)`, mountinfo) is one of ours.
fn is_ours(table: &str, path: &Path) -> bool {
    let mounted = table.lines().rev().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let at = place.split(' ').nth(4)?;
        let mut kind = kind.split(' ');
        let (file_system, source) = (kind.next()?, kind.next()?);
        (unescape(at) == path.as_os_str().as_bytes())
            .then(|| file_system.starts_with("fuse") && source == SOURCE)
    });
    mounted == Some(true)
}

/// The canonical path, even if the directory itself is a stale mount.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => path.canonicalize(),
    }
}

/// Removes our stale mounts on `path`.
///
/// # Errors
/// When a stale mount belongs to another program, or cannot be removed.
pub(crate) fn clear(path: &Path) -> Result<()> {
    for _ in 0..STALE_MAX {
        let dead = std::fs::metadata(path)
            .is_err_and(|error| error.raw_os_error() == Some(libc::ENOTCONN));
        if !dead {
            return Ok(());
        }
        let resolved = resolve(path)?;
        let advice = || {
            format!(
                "{} is a stale mount that cannot be removed: run 'umount -l {}' and try again",
                path.display(),
                path.display()
            )
        };
        let table = std::fs::read_to_string("/proc/self/mountinfo")?;
        if !is_ours(&table, &resolved) {
            return Err(Error::new(ErrorKind::ResourceBusy, advice()));
        }
        detach(&resolved)
            .map_err(|error| Error::new(error.kind(), format!("{} ({error})", advice())))?;
    }
    Err(Error::new(
        ErrorKind::ResourceBusy,
        format!("{}: too many stale mounts on one directory", path.display()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 0:20 / /proc rw - proc proc rw
30 1 0:44 / /mnt/a rw,nosuid - fuse convect rw,user_id=0
31 1 0:45 / /mnt/with\\040space rw - fuse.convect convect rw
32 1 0:46 / /mnt/other rw shared:3 - fuse sshfs rw
33 1 0:47 / /mnt/below rw - fuse convect rw
34 33 0:48 / /mnt/below rw - ext4 /dev/sda1 rw
";

    #[test]
    fn only_our_topmost_mount_is_recognised() {
        for (path, ours) in [
            ("/mnt/a", true),
            ("/mnt/with space", true),
            ("/mnt/other", false),
            ("/mnt/below", false),
            ("/mnt", false),
            ("/proc", false),
        ] {
            assert_eq!(is_ours(TABLE, Path::new(path)), ours, "{path}");
        }
    }
}
