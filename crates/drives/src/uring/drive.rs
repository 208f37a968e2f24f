//! The drive, and its row of the table.

use super::discover::{Found, size};
use super::open::{Access, LockedFile, check_type, open_locked};
use super::queue::UringQueue;
use crate::spec::{Named, parse_named};
use crate::{DriveKind, OpenDrive, OpenError};
use block::{Drive, DriveInfo, DriveQueue};
use reactor::Handle;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const KIND: DriveKind = DriveKind {
    name: "file",
    about: "A file or a block device. With a size, a missing file is created, sparse.",
    grammar: "file:PATH[?size=SIZE], or the absolute PATH alone; append another question mark to a path that contains one, file:PATH?",
    keeps_data: true,
    open: |rest| open(rest, Access::Write),
    open_read_only: |rest| open(rest, Access::Read),
    canonical,
    found_on,
    path: |rest| parse(rest).ok().map(|named| named.name.into()),
};

fn parse(rest: &str) -> Result<Named, OpenError> {
    let mut named = parse_named("file", rest)?;
    let path = Path::new(&named.name);
    if !path.is_absolute() || named.name.contains('\0') {
        return Err(OpenError::syntax(format!(
            "'{}' is not an absolute path: use one, as in file:/srv/drive1",
            named.name
        )));
    }
    // Without doubled and trailing slashes and `.`, so that one path has one text.
    let plain: PathBuf = path.components().collect();
    named.name = plain.to_string_lossy().into_owned();
    Ok(named)
}

fn canonical(rest: &str) -> Result<String, OpenError> {
    let named = Named {
        size: None,
        ..parse(rest)?
    };
    Ok(named.text("file"))
}

fn open(rest: &str, access: Access) -> Result<Arc<dyn OpenDrive>, OpenError> {
    let (file, found) = open_locked(&parse(rest)?, access)?;
    Ok(Arc::new(Uring {
        spec: canonical(rest)?,
        file: Arc::new(file),
        found,
    }))
}

fn found_on(rest: &str) -> Result<Option<String>, OpenError> {
    let named = parse(rest)?;
    let path = Path::new(&named.name);
    let explain =
        |error: io::Error| OpenError::system(&format!("cannot examine {}", path.display()), &error);
    let meta = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.size.is_some() => {
            return Ok(None);
        }
        result => result.map_err(explain)?,
    };
    check_type(path, &meta)?;
    // The file may have been replaced by a FIFO since the check: opening must not wait.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(explain)?;
    check_type(path, &file.metadata().map_err(explain)?)?;
    let bytes = size(&file).map_err(explain)?;
    crate::signature(|offset, buf| file.read_exact_at(buf, offset), bytes).map_err(explain)
}

struct Uring {
    spec: String,
    file: Arc<LockedFile>,
    found: Found,
}

impl Drive for Uring {
    fn info(&self) -> DriveInfo {
        self.found.info(&self.spec)
    }
}

impl OpenDrive for Uring {
    fn queue(&self, handle: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(UringQueue::new(
            handle,
            self.file.clone(),
            &self.found,
        )?))
    }
}
