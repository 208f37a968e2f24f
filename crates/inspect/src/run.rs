//! Entry points of the tools: they take drive specifications, run a loop, and return a report.

use crate::check::inspect;
use crate::dump::{What, dump};
use crate::error::{InspectError, Result};
use crate::inspection::{Inspection, Mode, OnProgress};
use crate::membership;
use crate::pool::Pool;
use crate::report::Report;
use crate::restore::{Restored, restore_volume};
use drives::{OpenDrive, OpenErrorKind};
use reactor::{FileIdentity, Handle, Reactor};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// How a tool goes about its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The content of every block is read and compared with its checksum.
    pub data: bool,
}

/// Opens drives: to be read beside others who read, or alone to be written.
///
/// # Errors
/// When a drive is in use, or is none.
pub fn open_drives(specs: &[String], mode: Mode) -> Result<Vec<Arc<dyn OpenDrive>>> {
    let mut opened: Vec<Arc<dyn OpenDrive>> = Vec::new();
    let mut known = Vec::new();
    for spec in specs {
        let canonical =
            drives::canonical(spec).map_err(|error| InspectError::new(error.to_string()))?;
        if known.contains(&canonical) {
            return Err(InspectError::new(format!("{spec} is given twice")));
        }
        let drive = match mode {
            Mode::Look => drives::open_read_only(&canonical),
            Mode::Mend => drives::open(&canonical),
        };
        let explain = |error: drives::OpenError| match error.kind {
            // No file is created in place of a pool's drive.
            OpenErrorKind::NotFound => InspectError::new(format!(
                "{spec} does not exist: specify existing drives only"
            )),
            OpenErrorKind::TooSmall => InspectError::new(format!(
                "{error}: it was truncated and has no data of a pool; omit it"
            )),
            _ => InspectError::new(error.to_string()),
        };
        opened.push(drive.map_err(explain)?);
        known.push(canonical);
    }
    Ok(opened)
}

/// A loop for a tool, with a seed that nothing depends on.
pub(crate) fn reactor() -> Result<Reactor> {
    Reactor::new(1).map_err(|error| {
        InspectError::new(format!(
            "io_uring, which is needed to read drives, is not available: {error}"
        ))
    })
}

/// Examines the pool on these drives, and with [`Mode::Mend`] repairs what can be.
///
/// # Errors
/// When there is no pool on them, or they cannot be opened.
pub async fn inspect_drives(
    handle: &Handle,
    drives: &[Arc<dyn OpenDrive>],
    mode: Mode,
    options: Options,
    progress: OnProgress<'_>,
) -> Result<Report> {
    let pool = Pool::open(handle, drives).await?;
    if mode == Mode::Mend {
        let writable = pool.config().features.check_writable();
        writable.map_err(|newer| {
            InspectError::new(format!(
                "pool {} cannot be repaired: {newer}",
                pool.config().name
            ))
        })?;
    }
    let inspection = Inspection::new(&pool, mode, options.data, progress);
    inspect(&inspection).await;
    Ok(inspection.report.into_inner())
}

fn pass(
    specs: &[String],
    mode: Mode,
    options: Options,
    progress: impl Fn(crate::Progress) + 'static,
) -> Result<Report> {
    let drives = open_drives(specs, mode)?;
    let reactor = reactor()?;
    let handle = reactor.handle().clone();
    let ended = reactor
        .block_on(async move { inspect_drives(&handle, &drives, mode, options, &progress).await });
    ended.map_err(|error| InspectError::new(format!("the loop failed: {error}")))?
}

/// Examines the pool on these drives, and writes nothing.
///
/// # Errors
/// When a drive is in use or cannot be opened, or no pool is on them.
pub fn check(
    specs: &[String],
    options: Options,
    progress: impl Fn(crate::Progress) + 'static,
) -> Result<Report> {
    pass(specs, Mode::Look, options, progress)
}

/// Examines the pool on these drives and repairs what can be. The report says what was found, as
/// [`check`]'s would have; check again to see what is left.
///
/// # Errors
/// As [`check`]'s.
pub fn repair(
    specs: &[String],
    options: Options,
    progress: impl Fn(crate::Progress) + 'static,
) -> Result<Report> {
    pass(specs, Mode::Mend, options, progress)
}

/// Shows a kind of record of the pool on these drives. `out` takes lines; false ends it.
///
/// # Errors
/// As [`check`]'s; when there is no such record.
pub fn dump_drives(
    specs: &[String],
    what: What,
    mut out: impl FnMut(&str) -> bool + 'static,
) -> Result<()> {
    let drives = open_drives(specs, Mode::Look)?;
    let reactor = reactor()?;
    let handle = reactor.handle().clone();
    let ended = reactor.block_on(async move {
        let pool = Pool::open(&handle, &drives).await?;
        let inspection = Inspection::new(&pool, Mode::Look, false, &|_| ());
        dump(&inspection, &what, &mut out).await
    });
    ended.map_err(|error| InspectError::new(format!("the loop failed: {error}")))?
}

/// Copies a volume of the pool on these drives into a new, sparse file. Nothing is written to the
/// drives. What cannot be read stays a hole.
///
/// # Errors
/// As [`check`]'s; when there is no such volume, or the file exists or cannot be written.
pub fn restore(
    specs: &[String],
    volume: &str,
    to: &Path,
    progress: impl Fn(crate::Progress) + 'static,
) -> Result<(Restored, Report)> {
    let drives = open_drives(specs, Mode::Look)?;
    let failed = |what: &str, error: std::io::Error| {
        InspectError::new(format!("{} cannot be {what}: {error}", to.display()))
    };
    let file = std::fs::File::create_new(to).map_err(|error| failed("made", error))?;
    let reactor = reactor()?;
    let handle = reactor.handle().clone();
    let (volume, target) = (
        volume.to_owned(),
        file.try_clone().map_err(|error| failed("used", error))?,
    );
    let ended = reactor.block_on(async move {
        let pool = Pool::open(&handle, &drives).await?;
        let inspection = Inspection::new(&pool, Mode::Look, false, &progress);
        let mut sink = |offset: u64, bytes: &[u8]| target.write_all_at(bytes, offset);
        membership::tell_evidence(&inspection);
        let restored = restore_volume(&inspection, &volume, &mut sink).await?;
        let mut report = inspection.report.into_inner();
        report.settle();
        Ok((restored, report))
    });
    let ended: Result<(Restored, Report)> =
        ended.map_err(|error| InspectError::new(format!("the loop failed: {error}")))?;
    match ended {
        Ok((restored, report)) => {
            let sized = file.set_len(restored.volume.size);
            let written = sized
                .and_then(|()| file.sync_all())
                // Its name, too, outlives a power cut.
                .and_then(|()| reactor::sync_folder_of(to));
            written.map_err(|error| failed("written", error))?;
            Ok((restored, report))
        }
        Err(error) => {
            // It holds nothing, or not all that could be had: a second try makes it again.
            if let Ok(meta) = file.metadata() {
                let _ = reactor::remove_file_if(to, FileIdentity::of(&meta));
            }
            Err(error)
        }
    }
}
