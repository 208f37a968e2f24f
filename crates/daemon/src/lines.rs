//! A file of lines in the state folder that is only ever appended to and kept within a size: once it has that, it is
//! put aside under its name with `.1`, and the one that was there is gone.
//!
//! Leaves out: what a line says, and whether it is believed.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A text, as far as it has at most `most` bytes.
pub fn clip(text: &str, most: usize) -> String {
    let end = (0..=most.min(text.len())).rfind(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// Such a file.
pub struct Lines {
    folder: PathBuf,
    name: &'static str,
    /// Bytes after which a new file begins.
    most: u64,
    /// The file and its length, in bytes.
    pub(crate) file: Option<(File, u64)>,
}

impl Lines {
    /// One that was not read yet, of at most `most` bytes and a line.
    pub fn new(folder: &Path, name: &'static str, most: u64) -> Self {
        Self {
            folder: folder.to_owned(),
            name,
            most,
            file: None,
        }
    }

    /// The file that is appended to.
    pub fn path(&self) -> PathBuf {
        self.folder.join(self.name)
    }

    fn older(&self) -> PathBuf {
        self.folder.join(format!("{}.1", self.name))
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o640)
            .open(self.path())
    }

    /// Every whole line that there is, oldest first and without its end. One that was being written when the daemon
    /// was killed is left out, and ended for those that follow: it was never relied on.
    ///
    /// # Errors
    /// When it cannot be read or written to.
    pub fn load(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut lines = Vec::new();
        let mut torn = false;
        for path in [self.older(), self.path()] {
            let text = match std::fs::read(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let split = text.split_inclusive(|byte| *byte == b'\n');
            lines.extend(split.filter_map(|line| line.strip_suffix(b"\n").map(<[u8]>::to_vec)));
            torn = text.last().is_some_and(|byte| *byte != b'\n');
        }
        let mut file = self.open()?;
        if torn {
            file.write_all(b"\n")?;
        }
        let length = file.metadata()?.len();
        self.file = Some((file, length));
        Ok(lines)
    }

    /// Appends a line. It outlives the daemon's end at once, and a power cut after [`Lines::flush`].
    ///
    /// # Errors
    /// When it cannot be written: then nothing of it is there.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        let full = |(_, length): &(File, u64)| *length >= self.most;
        if self.file.as_ref().is_none_or(full) {
            self.begin()?;
        }
        let Some((file, length)) = &mut self.file else {
            return Err(io::Error::other("there is no file"));
        };
        let text = format!("{line}\n");
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A part may be there: without it the next line would not stand on its own.
            let _ = file.set_len(*length);
            return Err(error);
        }
        *length += text.len() as u64;
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        self.file = None;
        if std::fs::metadata(self.path()).is_ok_and(|meta| meta.len() >= self.most) {
            std::fs::rename(self.path(), self.older())?;
        }
        let file = self.open()?;
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
