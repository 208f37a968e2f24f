//! Files of the state folder that are written as a whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Puts a file with these bytes in the place of the one of this name, durably: after a crash it is the old one or
/// the new one. Nobody but its owner, and its group where `mode` says so, may read it.
///
/// # Errors
/// When it cannot be written; the old one is still there then.
pub fn write_whole(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let fresh = folder.join(format!("{name}.new"));
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&fresh, folder.join(name))?;
    File::open(folder)?.sync_all()
}
