//! The history's first version: records of six figures in a file of their own, taken over once.

use super::rings::{Place, RINGS, Rings};
use super::series::{FIRST_MAX, Kind, SERIES_MAX, Values};
use std::io;
use std::path::Path;

/// Its file, in the history's folder.
const DATA: &str = "data";
/// The same, where it could not be taken over.
pub const ASIDE: &str = "data.first";

/// Writes what it has of these objects to the file of this version, anew; how many steps there were. What it did not keep
/// is not known of them. It can be done again until [`remove`].
///
/// # Errors
/// What the system says: some of it may be there.
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
        // The object that says when the daemon ran is of no kind, and has no figures.
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

/// Removes its file, if there is one.
///
/// # Errors
/// What the system says.
pub fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(DATA)) {
        Ok(()) => reactor::sync_folder(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives its file another name, by which nothing is done with it.
pub fn set_aside(folder: &Path) {
    let renamed = std::fs::rename(folder.join(DATA), folder.join(ASIDE));
    if let Err(error) = renamed.and_then(|()| reactor::sync_folder(folder)) {
        tracing::error!("it could not be set aside: {error}");
    }
}
