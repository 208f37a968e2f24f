//! Drives of a pool.

use super::{Result, error};
use crate::control::types::{DriveReport, EngineError, ErrorCode};
use crate::vdrive::DriveShared;
use block::{Drive, DriveInfo, Rotation};
use drives::{OpenDrive, OpenErrorKind};
use std::path::Path;
use std::sync::Arc;
use units::DriveId;

/// A drive of an open pool.
#[derive(Clone)]
pub struct PoolDrive {
    /// Its id.
    pub id: DriveId,
    /// Its specification.
    pub spec: String,
    /// The drive; none when it is missing.
    pub drive: Option<Arc<dyn OpenDrive>>,
    /// Size in bytes.
    pub size: u64,
    /// Counters.
    pub shared: Arc<DriveShared>,
}

/// Translates a drive's error for the control plane.
pub(crate) fn open_error(error: &drives::OpenError) -> EngineError {
    let code = match error.kind {
        OpenErrorKind::NotFound => ErrorCode::NotFound,
        OpenErrorKind::Busy => ErrorCode::Exists,
        OpenErrorKind::Permission => ErrorCode::Refused,
        OpenErrorKind::Syntax | OpenErrorKind::TooSmall | OpenErrorKind::Unsupported => {
            ErrorCode::Invalid
        }
        _ => ErrorCode::Io,
    };
    EngineError::new(code, error.to_string())
}

/// The reason why a drive of a pool cannot be opened, without the hint to create a file.
pub(crate) fn known_error(spec: &str, failed: &drives::OpenError) -> EngineError {
    let message = match failed.kind {
        OpenErrorKind::NotFound => {
            format!("{spec} does not exist: attach it, or specify its current path")
        }
        OpenErrorKind::TooSmall => format!("{spec} was truncated: {failed}"),
        _ => return open_error(failed),
    };
    EngineError::new(open_error(failed).code, message)
}

/// Opens a drive; refuses, unless `force`, one that contains foreign data.
pub(crate) fn open_drive(spec: &str, force: bool) -> Result<(String, Arc<dyn OpenDrive>)> {
    let canonical = drives::canonical(spec).map_err(|failed| open_error(&failed))?;
    let named = drives::file_path(spec);
    let creates = named.is_some_and(|(path, sized)| sized && !Path::new(&path).exists());
    if !force && !creates {
        refuse_bearing(&canonical)?;
    }
    let drive = drives::open(spec).map_err(|failed| open_error(&failed))?;
    if !force && creates {
        drop(drive);
        refuse_bearing(&canonical)?;
        let drive = drives::open(spec).map_err(|failed| open_error(&failed))?;
        return Ok((canonical, drive));
    }
    Ok((canonical, drive))
}

/// Files of drives created by a request: removed if it fails.
pub(crate) struct MadeFiles(Vec<drives::MadeFile>);

impl MadeFiles {
    /// Creates the files of specifications with a size that do not exist.
    pub(crate) fn make<'a>(specs: impl Iterator<Item = &'a String>) -> Result<Self> {
        let mut made = Self(Vec::new());
        for spec in specs {
            match drives::make_file(spec) {
                Ok(file) => made.0.extend(file),
                Err(failed) => {
                    made.remove();
                    return Err(open_error(&failed));
                }
            }
        }
        Ok(made)
    }

    /// Removes them. A file that another program created in the place of one is kept.
    pub(crate) fn remove(&self) {
        for file in &self.0 {
            if let Err(failed) = file.remove() {
                let path = file.path().display();
                tracing::warn!(%path, error = %failed, "a newly created file could not be removed");
            }
        }
    }
}

fn refuse_bearing(spec: &str) -> Result<()> {
    match drives::found_on(spec).map_err(|failed| open_error(&failed))? {
        None => Ok(()),
        Some(found) => error(
            ErrorCode::Refused,
            format!("{spec} contains {found}: use --force to overwrite it (destroys its data)"),
        ),
    }
}

/// Opens a drive and reports its properties and content.
pub fn report(spec: &str) -> Result<DriveReport> {
    let canonical = drives::canonical(spec).map_err(|failed| open_error(&failed))?;
    let found = drives::found_on(spec).map_err(|failed| open_error(&failed))?;
    let drive = drives::open(spec).map_err(|failed| open_error(&failed))?;
    Ok(describe(&canonical, &Drive::info(&*drive), found))
}

/// Properties of a drive.
pub fn describe(spec: &str, info: &DriveInfo, found: Option<String>) -> DriveReport {
    let rotation = match info.rotation {
        Rotation::Solid => "solid",
        Rotation::Spinning => "spinning",
        Rotation::Unknown => "unknown",
    };
    DriveReport {
        spec: spec.to_owned(),
        size: info.size,
        logical_sector: info.logical_sector,
        physical_sector: info.physical_sector,
        rotation: rotation.to_owned(),
        write_cache: info.write_cache,
        found,
        pool: None,
    }
}
