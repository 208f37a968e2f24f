//! A file of lines in the state folder that is only ever appended to and kept within a size: once it has that, it is
//! put aside under its name with `.1`, and the one that was there is gone.
//!
//! Leaves out: what a line says, and whether it is believed.

use crate::state::StateFiles;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A text, as far as it has at most `most` bytes.
pub fn clip(text: &str, most: usize) -> String {
    let end = (0..=most.min(text.len())).rfind(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// Such a file.
pub struct Lines {
    files: StateFiles,
    name: &'static str,
    /// Bytes after which a new file begins.
    most: u64,
    /// The file and its length, in bytes.
    pub(crate) file: Option<(File, u64)>,
    /// The last line that was read was being written when the daemon was killed.
    torn: bool,
    /// How often a new file was begun.
    rotations: u64,
}

/// The lines of both files, oldest first and without their ends.
#[derive(Default)]
pub struct Loaded {
    /// The lines.
    pub lines: Vec<Vec<u8>>,
    /// How many of them, the first ones, are of the file that was put aside.
    pub older: usize,
}

impl Lines {
    /// One that was not read yet, of at most `most` bytes and a line.
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

    /// The file that is appended to.
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

    /// Every whole line that there is, oldest first and without its end. One that was being written when the daemon
    /// was killed is left out: it was never relied on.
    ///
    /// # Errors
    /// When it cannot be read. Whether it can be written to shows when it is.
    pub fn load(&mut self) -> io::Result<Loaded> {
        let read = self.read();
        self.files.note(self.name, read)
    }

    fn read(&mut self) -> io::Result<Loaded> {
        let mut loaded = Loaded::default();
        for path in [self.older(), self.path()] {
            let mut text = Vec::new();
            match reactor::open_regular(&path, OpenOptions::new().read(true)) {
                // Both are bounded by what is appended; a longer one was not written here.
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

    /// How often a new file was begun in place of a full one.
    pub fn rotations(&self) -> u64 {
        self.rotations
    }

    /// Appends a line. It outlives the daemon's end at once, and a power cut after [`Lines::flush`].
    ///
    /// # Errors
    /// When it cannot be written: then nothing of it is there.
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
            return Err(io::Error::other("there is no file"));
        };
        // A torn line is ended, so that this one is not appended to it.
        let end = if self.torn { "\n" } else { "" };
        let text = format!("{end}{line}\n");
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A part may be there: without it the next line would not stand on its own.
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
            // What is put aside is not flushed after that.
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

    /// Makes what was written outlive a power cut.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&self) -> io::Result<()> {
        self.file
            .as_ref()
            .map_or(Ok(()), |(file, _)| file.sync_data())
    }
}
