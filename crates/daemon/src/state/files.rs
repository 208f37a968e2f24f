//! Files of the state folder: read and replaced as a whole, with their errors tracked.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// File that is written to test whether the folder is writable, and its length in bytes: a block of
/// any file system.
const PROBE: &str = "probe";
const PROBE_BYTES: usize = 4096;

/// Atomically and durably replaces a file: after a crash it has the old or the new content.
/// Readable by its owner only, and by its group if `mode` says so.
///
/// # Errors
/// When it cannot be written; the old file is unchanged then.
pub fn write_whole(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let fresh = folder.join(format!("{name}.new"));
    let written = write_new(&fresh, bytes, mode, true);
    let put = written.and_then(|()| std::fs::rename(&fresh, folder.join(name)));
    if put.is_err() {
        // A partial file would use space that may be short.
        let _ = std::fs::remove_file(&fresh);
    }
    put?;
    reactor::sync_folder_of(&folder.join(name))
}

/// Creates a file that no other program has open; a leftover of an earlier daemon is removed first.
fn write_new(path: &Path, bytes: &[u8], mode: u32, durable: bool) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    match durable {
        true => file.sync_all(),
        false => Ok(()),
    }
}

/// A problem with a file of the state folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It cannot be written: why.
    Unwritten(String),
    /// It could not be read and is ignored: why, and where it was moved.
    Damaged(String, PathBuf),
}

#[derive(Default)]
struct Wrong {
    unwritten: Option<(ErrorKind, String)>,
    damaged: Option<(String, PathBuf)>,
}

/// Files of a state folder and their problems. Clones share these.
#[derive(Clone)]
pub struct StateFiles {
    folder: PathBuf,
    wrong: Arc<Mutex<BTreeMap<&'static str, Wrong>>>,
}

impl StateFiles {
    /// Files of a folder without known problems.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            wrong: Arc::default(),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Wrong>> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a file of at most `most` bytes; `None` if it is missing. A file that is unreadable or
    /// rejected by `decode` is renamed to `NAME.damaged` and reported, and the daemon runs without it.
    pub fn read<T>(
        &self,
        name: &'static str,
        most: u64,
        decode: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Option<T> {
        let path = self.folder.join(name);
        let bytes = match reactor::read_regular(&path, most) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.see_put_aside(name);
                return None;
            }
            Err(error) => Err(error.to_string()),
        };
        let decoded = bytes.and_then(|bytes| match bytes.is_empty() {
            true => Err("the file is empty".to_owned()),
            false => decode(&bytes),
        });
        match decoded {
            Ok(value) => {
                self.see_put_aside(name);
                Some(value)
            }
            Err(why) => {
                let aside = self.put_aside(name);
                let at = if aside { self.aside(name) } else { path };
                tracing::error!("{} is ignored: {why}", at.display());
                self.lock().entry(name).or_default().damaged = Some((why, at));
                None
            }
        }
    }

    fn aside(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.damaged"))
    }

    fn put_aside(&self, name: &str) -> bool {
        std::fs::rename(self.folder.join(name), self.aside(name)).is_ok()
    }

    /// Reports a file that an earlier daemon set aside, until it is removed.
    fn see_put_aside(&self, name: &'static str) {
        let at = self.aside(name);
        if at.symlink_metadata().is_ok() {
            let why = "an earlier daemon could not read it".to_owned();
            self.lock().entry(name).or_default().damaged = Some((why, at));
        }
    }

    /// Replaces a file, and tracks whether that succeeded.
    ///
    /// # Errors
    /// As [`StateFiles::replace`].
    pub fn write(&self, name: &'static str, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.note(name, self.replace(name, bytes, mode))
    }

    /// Replaces a file ([`write_whole`]).
    ///
    /// # Errors
    /// When it cannot be written; the old file is unchanged then.
    pub(super) fn replace(&self, name: &'static str, bytes: &[u8], mode: u32) -> io::Result<()> {
        // Do not overwrite a damaged file that could not be set aside.
        let path = self.folder.join(name);
        if let Some(wrong) = self.lock().get_mut(name)
            && let Some((_, at)) = &mut wrong.damaged
            && *at == path
            && path.symlink_metadata().is_ok()
            && self.put_aside(name)
        {
            *at = self.aside(name);
        }
        write_whole(&self.folder, name, bytes, mode)
    }

    /// Tracks whether a file could be written.
    ///
    /// # Errors
    /// The given error.
    pub fn note<T>(&self, name: &'static str, written: io::Result<T>) -> io::Result<T> {
        let mut wrong = self.lock();
        match &written {
            Err(error) => {
                let why = (error.kind(), error.to_string());
                wrong.entry(name).or_default().unwritten = Some(why);
            }
            Ok(_) => {
                if let Some(wrong) = wrong.get_mut(name) {
                    wrong.unwritten = None;
                }
            }
        }
        drop(wrong);
        written
    }

    /// Tests whether the folder is writable, and clears earlier write errors if it is.
    pub fn probe(&self) {
        let path = self.folder.join(PROBE);
        let written = write_new(&path, &[0; PROBE_BYTES], 0o600, false);
        let _ = std::fs::remove_file(&path);
        if self.note(PROBE, written).is_err() {
            return;
        }
        let of_folder = |kind: ErrorKind| {
            matches!(
                kind,
                ErrorKind::StorageFull
                    | ErrorKind::QuotaExceeded
                    | ErrorKind::ReadOnlyFilesystem
                    | ErrorKind::PermissionDenied
            )
        };
        for wrong in self.lock().values_mut() {
            wrong.unwritten.take_if(|(kind, _)| of_folder(*kind));
        }
    }

    /// Present problems, by file. A damaged file is reported until it is removed.
    pub fn troubles(&self) -> Vec<(&'static str, Trouble)> {
        let mut all = self.lock();
        let mut told = Vec::new();
        for (name, wrong) in all.iter_mut() {
            wrong
                .damaged
                .take_if(|(_, at)| at.symlink_metadata().is_err());
            if let Some((why, at)) = &wrong.damaged {
                told.push((*name, Trouble::Damaged(why.clone(), at.clone())));
            }
            if let Some((_, why)) = &wrong.unwritten {
                told.push((*name, Trouble::Unwritten(why.clone())));
            }
        }
        all.retain(|_, wrong| wrong.damaged.is_some() || wrong.unwritten.is_some());
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(bytes);
        match text.starts_with("good") {
            true => Ok(text.into_owned()),
            false => Err("the content is invalid".to_owned()),
        }
    }

    #[test]
    fn damaged_file_is_set_aside_and_reported_until_removed() {
        for damage in ["", "bad", &"good".repeat(10)] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("f"), damage).unwrap();
            assert_eq!(StateFiles::new(folder.path()).read("f", 16, text), None);
            // The next daemon reports it too, and reads what was written meanwhile.
            let files = StateFiles::new(folder.path());
            files.write("f", b"good", 0o600).unwrap();
            assert_eq!(files.read("f", 16, text).as_deref(), Some("good"));
            let aside = folder.path().join("f.damaged");
            assert_eq!(std::fs::read_to_string(&aside).unwrap(), damage);
            let told = files.troubles();
            assert!(
                matches!(&told[..], [("f", Trouble::Damaged(_, at))] if *at == aside),
                "{told:?}"
            );
            std::fs::remove_file(aside).unwrap();
            assert_eq!(files.troubles(), []);
        }
    }

    #[test]
    fn symbolic_links_and_fifos_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "good").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("link")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join("fifo"))
            .status();
        assert!(made.unwrap().success());
        let files = StateFiles::new(folder.path());
        assert_eq!(files.read("link", 16, text), None);
        assert_eq!(files.read("fifo", 16, text), None);
        files.write("link", b"good 2", 0o600).unwrap();
        assert_eq!(std::fs::read_to_string(other).unwrap(), "good");
    }

    #[test]
    fn failed_write_is_reported_until_it_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let files = StateFiles::new(folder.path());
        let full = || io::Error::from(ErrorKind::StorageFull);
        files.note::<()>("f", Err(full())).unwrap_err();
        files
            .note::<()>("g", Err(io::Error::other("broken")))
            .unwrap_err();
        let names = || {
            let told = files.troubles().into_iter();
            told.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["f", "g"]);
        files.probe();
        assert_eq!(names(), ["g"], "only g is still faulty once there is space");
        files.write("g", b"good", 0o600).unwrap();
        assert_eq!(names(), Vec::<&str>::new());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
