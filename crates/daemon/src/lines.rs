//! An append-only file of lines in the state folder with a size limit: a full file is renamed with
//! the suffix `.1`, replacing the previous one.
//!
//! Leaves out: the meaning of lines, and their verification.

use crate::state::StateFiles;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The longest prefix of a text with at most `most` bytes.
pub fn clip(text: &str, most: usize) -> String {
    let end = (0..=most.min(text.len())).rfind(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// An append-only file of lines.
pub struct Lines {
    files: StateFiles,
    name: &'static str,
    /// Size in bytes at which the file is rotated.
    most: u64,
    /// The file and its length, in bytes.
    pub(crate) file: Option<(File, u64)>,
    /// The last line was torn when the daemon was killed.
    torn: bool,
    /// Number of rotations.
    rotations: u64,
}

/// The lines of both files, oldest first and without line ends.
#[derive(Default)]
pub struct Loaded {
    /// The lines.
    pub lines: Vec<Vec<u8>>,
    /// Number of leading lines that are from the rotated file.
    pub older: usize,
}

impl Lines {
    /// A file that was not loaded yet; it is rotated at `most` bytes.
    pub fn new(files: &StateFiles, name: &'static str, most: u64) -> Self {
        Self {
            files: files.clone(),
            name,
            most,
            file: None,
            torn: false,
            rotations: 0,
        }
    }

    /// Path of the current file.
    pub fn path(&self) -> PathBuf {
        self.files.folder().join(self.name)
    }

    fn older(&self) -> PathBuf {
        self.files.folder().join(format!("{}.1", self.name))
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o640);
        reactor::open_regular(&self.path(), &options)
    }

    /// All complete lines, oldest first and without line ends. A line torn by a crash is skipped:
    /// it was never acknowledged.
    ///
    /// # Errors
    /// When it cannot be read. Write errors appear on appending.
    pub fn load(&mut self) -> io::Result<Loaded> {
        let read = self.read();
        self.files.note(self.name, read)
    }

    fn read(&mut self) -> io::Result<Loaded> {
        let mut loaded = Loaded::default();
        for path in [self.older(), self.path()] {
            let mut text = Vec::new();
            match reactor::open_regular(&path, OpenOptions::new().read(true)) {
                // Appending bounds both files; ignore the excess of a foreign one.
                Ok(file) => drop(file.take(2 * self.most).read_to_end(&mut text)?),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            let split = text.split_inclusive(|byte| *byte == b'\n');
            let whole = split.filter_map(|line| line.strip_suffix(b"\n").map(<[u8]>::to_vec));
            loaded.lines.extend(whole);
            if path == self.older() {
                loaded.older = loaded.lines.len();
            }
            self.torn = text.last().is_some_and(|byte| *byte != b'\n');
        }
        Ok(loaded)
    }

    /// Number of rotations.
    pub fn rotations(&self) -> u64 {
        self.rotations
    }

    /// Appends a line. It survives a crash of the daemon immediately, and a power failure after
    /// [`Lines::flush`].
    ///
    /// # Errors
    /// When it cannot be written; no part of the line remains.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        let appended = self.try_append(line);
        self.files.note(self.name, appended)
    }

    fn try_append(&mut self, line: &str) -> io::Result<()> {
        let full = |(_, length): &(File, u64)| *length >= self.most;
        if self.file.as_ref().is_none_or(full) {
            self.begin()?;
        }
        let Some((file, length)) = &mut self.file else {
            return Err(io::Error::other("the file is not open"));
        };
        // Terminate a torn line first.
        let end = if self.torn { "\n" } else { "" };
        let text = format!("{end}{line}\n");
        if let Err(error) = file.write_all(text.as_bytes()) {
            // Remove a partial line, which would corrupt the next one.
            let _ = file.set_len(*length);
            return Err(error);
        }
        self.torn = false;
        *length += text.len() as u64;
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        self.file = None;
        if std::fs::metadata(self.path()).is_ok_and(|meta| meta.len() >= self.most) {
            // A rotated file is not flushed later.
            self.open()?.sync_data()?;
            std::fs::rename(self.path(), self.older())?;
            self.rotations += 1;
            self.torn = false;
        }
        let file = self.open()?;
        reactor::sync_folder(self.files.folder())?;
        let length = file.metadata()?.len();
        self.file = Some((file, length));
        Ok(())
    }

    /// Flushes the file, so that its lines survive a power failure.
    ///
    /// # Errors
    /// An I/O error.
    pub fn flush(&self) -> io::Result<()> {
        self.file
            .as_ref()
            .map_or(Ok(()), |(file, _)| file.sync_data())
    }
}
