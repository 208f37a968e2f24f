//! The tools as a program calls them: drives by name, a loop of their own, a report.

use crate::check::inspect;
use crate::error::{InspectError, Result};
use crate::inspection::{Inspection, Mode, OnProgress};
use crate::pool::Pool;
use crate::report::Report;
use drives::OpenDrive;
use reactor::{Handle, Reactor};
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
            return Err(InspectError::new(format!("{spec} is named twice")));
        }
        let drive = match mode {
            Mode::Look => drives::open_read_only(&canonical),
            Mode::Mend => drives::open(&canonical),
        };
        opened.push(drive.map_err(|error| InspectError::new(error.to_string()))?);
        known.push(canonical);
    }
    Ok(opened)
}

/// A loop for a tool, with a seed that nothing depends on.
pub(crate) fn reactor() -> Result<Reactor> {
    Reactor::new(1).map_err(|error| {
        InspectError::new(format!(
            "the system gives no io_uring, which drives are read by: {error}"
        ))
    })
}

/// Looks at the pool on these drives, and with [`Mode::Mend`] mends what can be.
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
                "pool {} cannot be mended: {newer}",
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

/// Looks at the pool on these drives, and writes nothing.
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

/// Looks at the pool on these drives and mends what can be. The report says what was found, as
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
