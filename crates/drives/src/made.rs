//! Creating the files of drives, and removing them when the operation that needed them fails.

use crate::uring::create;
use crate::{OpenError, given};
use reactor::FileIdentity;
use std::path::{Path, PathBuf};

/// A file that was made for a drive.
#[derive(Debug)]
pub struct MadeFile {
    path: PathBuf,
    identity: FileIdentity,
}

impl MadeFile {
    /// Removes it, if it is still the one that was made.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self) -> std::io::Result<()> {
        reactor::remove_file_if(&self.path, self.identity).map(drop)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates the file of a specification that has a size, if it does not exist. The file is new then, and outlives a
/// power cut. Any other drive is left alone: opening it says what is wrong with it.
///
/// # Errors
/// When it cannot be made; nothing is left behind.
pub fn make_file(spec: &str) -> Result<Option<MadeFile>, OpenError> {
    if given::find(spec).is_some() {
        return Ok(None);
    }
    // A modelled disk has a file within.
    let file = match (spec.starts_with('/'), spec.split_once("file:")) {
        (true, _) => spec,
        (false, Some((_, file))) => file,
        (false, None) => return Ok(None),
    };
    let Ok(named) = crate::spec::parse_named("file", file) else {
        return Ok(None);
    };
    let path = PathBuf::from(&named.name);
    let absent = path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    match named.size {
        Some(size) if path.is_absolute() && absent => {
            let identity = create(&path, size)?;
            Ok(Some(MadeFile { path, identity }))
        }
        _ => Ok(None),
    }
}
