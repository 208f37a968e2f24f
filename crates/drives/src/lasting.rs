//! Memory that outlives the process: files of a file system in memory, mapped.

use crate::uring::patiently;
use block::{LastingMemory, LastingSource, Left};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// File systems that are memory: what is written there is never written back to a drive meanwhile.
const IN_MEMORY: [libc::c_long; 2] = [libc::TMPFS_MAGIC as libc::c_long, 0x8584_58f6];

/// A private directory of such files.
pub struct LastingFiles {
    folder: PathBuf,
}

impl LastingFiles {
    /// The calling user's private directory within `parent`, which others may write to (`/dev/shm`); created if missing.
    ///
    /// # Errors
    /// If `parent` is not on a memory file system, or the directory belongs or is accessible to another user.
    pub fn within(parent: &Path) -> io::Result<Self> {
        let user = user();
        let folder = parent.join(format!("convect-{user}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let is = fs::symlink_metadata(&folder)?;
        if !is.is_dir() || is.uid() != user || is.mode() & 0o077 != 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{} is not a directory accessible to user {user} alone: remove it",
                    folder.display()
                ),
            ));
        }
        if !is_memory(&File::open(&folder)?)? {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "{} is not on a memory file system (tmpfs)",
                    folder.display()
                ),
            ));
        }
        Ok(Self { folder })
    }

    /// A new file of that name, locked.
    fn create(&self, name: &str, words: usize) -> io::Result<Mapped> {
        let path = self.folder.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let made = lock(&file).and_then(|()| {
            let length = (words * size_of::<AtomicU64>()) as libc::off_t;
            // All of it is there from now on: a file system that is full later fails no access.
            // SAFETY: plain system call on our own descriptor.
            let failed = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
            match failed {
                0 => map(file, words),
                failed => Err(io::Error::from_raw_os_error(failed)),
            }
        });
        made.inspect_err(|_| self.forget(name))
    }

    /// The file of that name, locked; none when it has another length.
    fn open(&self, name: &str, words: usize) -> io::Result<Option<Mapped>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.folder.join(name))?;
        lock(&file)?;
        let meta = file.metadata()?;
        // Who had it may have given it up meanwhile.
        let gone = meta.nlink() == 0;
        if gone || meta.len() != (words * size_of::<AtomicU64>()) as u64 {
            return Ok(None);
        }
        map(file, words).map(Some)
    }
}

/// Locks a file against every other opening, of this process as well, until it is closed.
fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|failed| match failed {
        TryLockError::WouldBlock => io::Error::from_raw_os_error(libc::EWOULDBLOCK),
        TryLockError::Error(failed) => failed,
    })
}

fn map(file: File, words: usize) -> io::Result<Mapped> {
    // SAFETY: a new shared mapping of a whole file, at an address of the system's choice.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            words * size_of::<AtomicU64>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let base = NonNull::new(base).ok_or_else(|| io::Error::other("mapped at null"))?;
    Ok(Mapped {
        base: base.cast(),
        words,
        _locked: file,
    })
}

impl LastingSource for LastingFiles {
    fn make(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>> {
        match self.create(name, words) {
            Ok(mapped) => Some(Arc::new(mapped)),
            Err(error) => {
                tracing::warn!(
                    folder = %self.folder.display(),
                    name,
                    %error,
                    "no memory that outlives the daemon is available: each write's record is written to a drive"
                );
                None
            }
        }
    }

    fn find(&self, name: &str, words: usize) -> io::Result<Left> {
        // A killed process has it for a moment longer.
        match patiently(|| self.open(name, words)) {
            Ok(Some(mapped)) => Ok(Left::Memory(Arc::new(mapped))),
            Ok(None) => Ok(Left::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Left::Nothing),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Left::InUse),
            Err(error) => {
                let path = self.folder.join(name);
                Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", path.display()),
                ))
            }
        }
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort_unstable();
        names
    }

    fn forget(&self, name: &str) {
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "unused shared memory could not be removed");
            }
            _ => {}
        }
    }
}

fn user() -> libc::uid_t {
    // SAFETY: plain system call that cannot fail.
    unsafe { libc::geteuid() }
}

fn is_memory(file: &File) -> io::Result<bool> {
    let mut told = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the system fills the structure when it returns 0.
    let told = unsafe {
        if libc::fstatfs(file.as_raw_fd(), told.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        told.assume_init()
    };
    Ok(IN_MEMORY.contains(&told.f_type))
}

/// A mapped file.
struct Mapped {
    base: NonNull<AtomicU64>,
    words: usize,
    /// Locked as long as it is open.
    _locked: File,
}

// SAFETY: its words are atomic.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl LastingMemory for Mapped {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped with this number of words until it is dropped, page-aligned, and any bits are a word.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of this length.
        unsafe {
            libc::munmap(
                self.base.as_ptr().cast(),
                self.words * size_of::<AtomicU64>(),
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::Ordering::Relaxed;

    /// A folder in memory.
    fn memory() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").unwrap()
    }

    fn left(files: &LastingFiles, name: &str) -> Option<Arc<dyn LastingMemory>> {
        match files.find(name, 1000).unwrap() {
            Left::Memory(memory) => Some(memory),
            Left::Nothing => None,
            Left::InUse => panic!("{name} is in use"),
        }
    }

    #[test]
    fn what_was_written_is_there_for_the_next_until_it_is_forgotten() {
        let parent = memory();
        let files = LastingFiles::within(parent.path()).unwrap();
        let first = files.make("a", 1000).unwrap();
        assert!(first.words().iter().all(|word| word.load(Relaxed) == 0));
        first.words()[999].store(7, Relaxed);
        drop(first);
        let files = LastingFiles::within(parent.path()).unwrap();
        assert!(files.make("a", 1000).is_none(), "nothing is overwritten");
        assert_eq!(left(&files, "a").unwrap().words()[999].load(Relaxed), 7);
        files.forget("a");
        files.forget("a");
        assert!(left(&files, "a").is_none());
        assert!(files.make("a", 1000).is_some());
    }

    #[test]
    fn memory_is_for_one_user_at_a_time() {
        let parent = memory();
        let files = LastingFiles::within(parent.path()).unwrap();
        let other = LastingFiles::within(parent.path()).unwrap();
        let first = files.make("a", 1000).unwrap();
        assert!(matches!(other.find("a", 1000), Ok(Left::InUse)));
        drop(first);
        assert!(matches!(files.find("a", 999), Ok(Left::Nothing)));
        assert!(left(&files, "a").is_some());
    }

    #[test]
    fn names_are_found_by_how_they_begin() {
        let parent = memory();
        let files = LastingFiles::within(parent.path()).unwrap();
        let _made = ["b-1", "a-2", "a-1"].map(|name| files.make(name, 8).unwrap());
        assert_eq!(files.names("a-"), ["a-1", "a-2"]);
        assert_eq!(files.names("c"), [""; 0]);
    }

    #[test]
    fn a_folder_of_others_and_one_on_a_drive_are_refused() {
        let parent = memory();
        let made = parent.path().join(format!("convect-{}", user()));
        fs::create_dir(&made).unwrap();
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = |parent: &Path| LastingFiles::within(parent).err().unwrap().to_string();
        assert!(refused(parent.path()).contains("is not a directory accessible"));
        fs::remove_dir(&made).unwrap();
        std::os::unix::fs::symlink("/dev/shm", &made).unwrap();
        assert!(refused(parent.path()).contains("is not a directory accessible"));
        let on_a_drive = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert!(refused(on_a_drive.path()).contains("not on a memory file system"));
        assert!(LastingFiles::within(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_not_followed() {
        let parent = memory();
        let files = LastingFiles::within(parent.path()).unwrap();
        let other = parent.path().join("other");
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, files.folder.join("a")).unwrap();
        assert!(files.make("a", 8).is_none());
        assert!(files.find("a", 8).is_err());
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
    }
}
