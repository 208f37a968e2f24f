//! Migration from the history's first format: records of six metrics in a file of its own.

use super::rings::{Place, RINGS, Rings};
use super::series::{FIRST_MAX, Kind, SERIES_MAX, Values};
use std::io;
use std::path::Path;

/// Its file in the history folder.
const DATA: &str = "data";
/// Its name after a failed migration.
pub const ASIDE: &str = "data.first";

/// Rewrites the records of these objects into the current file; returns the number of steps.
/// Metrics that it lacks are unknown. Can be repeated until [`remove`].
///
/// # Errors
/// An I/O error; the migration may be partial.
pub fn take_over<'a>(
    folder: &Path,
    to: &Path,
    objects: impl Iterator<Item = (&'a str, Place)>,
) -> io::Result<usize> {
    if !folder.join(DATA).exists() {
        return Ok(0);
    }
    let first = Rings::<[f32; FIRST_MAX]>::open(&folder.join(DATA))?;
    let rings = Rings::<Values>::open(to)?;
    let mut steps = 0;
    for (object, place) in objects {
        let kind = Kind::of(object);
        // The object that records the daemon's uptime has no metrics.
        let turned = |values: [f32; FIRST_MAX]| match kind {
            Some(kind) => kind.of_first(&values),
            None => [0.0; SERIES_MAX],
        };
        let mut all = Vec::new();
        for ring in &RINGS {
            let known = first.all(place, ring)?.into_iter();
            let known: Vec<_> = known.map(|(step, values)| (step, turned(values))).collect();
            steps += known.len();
            all.push((ring, known));
        }
        rings.write_all(place, &all)?;
    }
    Ok(steps)
}

/// Removes its file, if it exists.
///
/// # Errors
/// An I/O error.
pub fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(DATA)) {
        Ok(()) => reactor::sync_folder(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Renames its file, so that it is ignored.
pub fn set_aside(folder: &Path) {
    let renamed = std::fs::rename(folder.join(DATA), folder.join(ASIDE));
    if let Err(error) = renamed.and_then(|()| reactor::sync_folder(folder)) {
        tracing::error!("cannot set the old history file aside: {error}");
    }
}
