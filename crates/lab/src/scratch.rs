//! A temporary folder on a file system that can do direct I/O and has the space.

use crate::failure::{Failure, Result, While};
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use units::format_bytes;

/// A folder that goes away with this value.
pub struct Scratch {
    folder: PathBuf,
}

fn free_bytes(folder: &Path) -> Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes())
        .map_err(|_| Failure::new("the temporary folder's name holds a zero byte"))?;
    // SAFETY: all-zero bytes are a valid statvfs, which is plain numbers.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte and the struct outlives the call.
    match unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } {
        0 => Ok(stat.f_bavail * stat.f_frsize),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

fn does_direct_io(folder: &Path) -> bool {
    let path = folder.join("direct");
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT);
    let opened = options.open(&path).is_ok();
    let _ = fs::remove_file(&path);
    opened
}

fn make(parent: &Path, purpose: &str) -> Result<PathBuf> {
    let folder = parent.join(format!("convect-{purpose}-{}", std::process::id()));
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .during(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

impl Scratch {
    /// Creates a folder for `purpose` that has `bytes` free: below TMPDIR, else /tmp, else /var/tmp.
    pub fn new(purpose: &str, bytes: u64) -> Result<Self> {
        let mut reasons = Vec::new();
        for parent in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()] {
            let folder = match make(&parent, purpose) {
                Ok(folder) => Self { folder },
                Err(failure) => {
                    reasons.push(failure.to_string());
                    continue;
                }
            };
            let free = free_bytes(folder.path())?;
            if free < bytes {
                reasons.push(format!(
                    "{} has {} free",
                    parent.display(),
                    format_bytes(free)
                ));
            } else if !does_direct_io(folder.path()) {
                reasons.push(format!("{} has no direct I/O (a tmpfs?)", parent.display()));
            } else {
                return Ok(folder);
            }
        }
        reasons.dedup();
        Err(Failure::new(format!(
            "no folder for temporary files with {} free and direct I/O: {}; set TMPDIR to one",
            format_bytes(bytes),
            reasons.join("; ")
        )))
    }

    /// The same below a given folder.
    pub fn below(parent: &Path, purpose: &str, bytes: u64) -> Result<Self> {
        let folder = Self {
            folder: make(parent, purpose)?,
        };
        let free = free_bytes(folder.path())?;
        let reason = match (free < bytes, does_direct_io(folder.path())) {
            (true, _) => format!(
                "{} free instead of {}",
                format_bytes(free),
                format_bytes(bytes)
            ),
            (false, false) => "no direct I/O".to_owned(),
            (false, true) => return Ok(folder),
        };
        let parent = parent.display();
        Err(Failure::new(format!(
            "{parent} has {reason}: name another folder"
        )))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// A name in the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is mounted there belongs to a daemon that is gone by now; letting go of a dead
        // mount keeps the removal from failing.
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let prefix = format!("{}/", self.folder.display());
        for mount in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
            if mount.starts_with(&prefix) {
                let _ = std::process::Command::new("fusermount3")
                    .args(["-uz", mount])
                    .status();
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("could not remove {}: {error}", self.folder.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_away_with_its_value() {
        let scratch = Scratch::new("test-gone", 1).unwrap();
        let path = scratch.path().to_owned();
        fs::write(scratch.join("file"), "x").unwrap();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn too_little_space_is_said_with_what_to_do() {
        let Err(failure) = Scratch::new("test-space", u64::MAX) else {
            panic!("it was made")
        };
        assert!(failure.to_string().contains("set TMPDIR"), "{failure}");
        let Err(failure) = Scratch::below(&std::env::temp_dir(), "test-space", u64::MAX) else {
            panic!("it was made")
        };
        let text = failure.to_string();
        assert!(text.contains("name another folder"), "{text}");
    }
}
