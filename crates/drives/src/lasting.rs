//! Memory that outlives the process: files of a file system in memory, mapped.

use block::{LastingMemory, LastingSource};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// File systems that are memory: what is written there is never written back to a drive meanwhile.
const IN_MEMORY: [libc::c_long; 2] = [libc::TMPFS_MAGIC as libc::c_long, 0x8584_58f6];

/// A folder of such files, which nobody else can enter.
pub struct LastingFiles {
    folder: PathBuf,
}

impl LastingFiles {
    /// The calling user's own folder within `parent`, which others may write to (`/dev/shm`); made if it is not there.
    ///
    /// # Errors
    /// When `parent` is no memory, or somebody else made the folder or can enter it.
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
                    "{} is not a folder of user {user} that nobody else can enter: remove it",
                    folder.display()
                ),
            ));
        }
        if !is_memory(&File::open(&folder)?)? {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "{} lies on no file system in memory (tmpfs)",
                    folder.display()
                ),
            ));
        }
        Ok(Self { folder })
    }

    fn map(&self, name: &str, words: usize) -> io::Result<Mapped> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.folder.join(name))?;
        let length = words * size_of::<AtomicU64>();
        file.set_len(length as u64)?;
        // All of it is there from now on: a file system that is full later fails no access.
        // SAFETY: plain system call on our own descriptor.
        let failed = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length as libc::off_t) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: a new shared mapping of a whole file, at an address of the system's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
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
        })
    }
}

impl LastingSource for LastingFiles {
    fn take(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>> {
        match self.map(name, words) {
            Ok(mapped) => Some(Arc::new(mapped)),
            Err(error) => {
                tracing::warn!(
                    folder = %self.folder.display(),
                    name,
                    %error,
                    "there is no memory that outlives the daemon: each write's record goes to a drive"
                );
                None
            }
        }
    }

    fn forget(&self, name: &str) {
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "memory that nobody needs is kept");
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
}

// SAFETY: its words are atomic.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl LastingMemory for Mapped {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped for so many words until it is dropped, page-aligned, and any bits are a word.
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

    #[test]
    fn what_was_written_is_there_for_the_next_until_it_is_forgotten() {
        let parent = memory();
        let files = LastingFiles::within(parent.path()).unwrap();
        let first = files.take("a", 1000).unwrap();
        assert!(first.words().iter().all(|word| word.load(Relaxed) == 0));
        first.words()[999].store(7, Relaxed);
        drop(first);
        let files = LastingFiles::within(parent.path()).unwrap();
        assert_eq!(files.take("a", 1000).unwrap().words()[999].load(Relaxed), 7);
        files.forget("a");
        files.forget("a");
        assert_eq!(files.take("a", 1000).unwrap().words()[999].load(Relaxed), 0);
    }

    #[test]
    fn a_folder_of_others_and_one_on_a_drive_are_refused() {
        let parent = memory();
        let made = parent.path().join(format!("convect-{}", user()));
        fs::create_dir(&made).unwrap();
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = |parent: &Path| LastingFiles::within(parent).err().unwrap().to_string();
        assert!(refused(parent.path()).contains("nobody else can enter"));
        fs::remove_dir(&made).unwrap();
        std::os::unix::fs::symlink("/dev/shm", &made).unwrap();
        assert!(refused(parent.path()).contains("nobody else can enter"));
        let on_a_drive = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert!(refused(on_a_drive.path()).contains("no file system in memory"));
        assert!(LastingFiles::within(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_not_followed() {
        let parent = memory();
        let files = LastingFiles::within(parent.path()).unwrap();
        let other = parent.path().join("other");
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, files.folder.join("a")).unwrap();
        assert!(files.take("a", 8).is_none());
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
    }
}
