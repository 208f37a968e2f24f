//! Finding drives with labels, and the pools on them.

use super::pool_drives::known_error;
use super::{Result, labels};
use crate::control::types::{EngineError, Importable};
use drives::{OpenDrive, OpenErrorKind};
use format::Label;
use reactor::Remote;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::PoolId;

/// A drive with a label.
pub struct Found {
    /// Its specification.
    pub spec: String,
    /// The drive.
    pub drive: Arc<dyn OpenDrive>,
    /// Its newest label.
    pub label: Label,
}

/// A drive that could not be opened, or whose labels could not be read.
pub struct PassedOver {
    /// Why.
    pub error: EngineError,
    /// It does not exist, or is too small for any pool. Otherwise it may have data that no other drive has.
    pub gone: bool,
}

/// Result of a search.
pub struct Scanned {
    /// Drives with a label.
    pub found: Vec<Found>,
    /// Skipped drives.
    pub passed_over: Vec<PassedOver>,
}

/// Opens drives and reads their labels. Drives without one are skipped, and so are those that cannot be opened: they
/// are recorded. A drive that is given twice, for example by different links in `/dev/disk`, counts once.
///
/// # Errors
/// If a specification is invalid, or no drive can be opened.
pub fn scan(remote: &Remote, specs: &[String]) -> Result<Scanned> {
    let mut found: Vec<Found> = Vec::new();
    let mut passed_over = Vec::new();
    let mut seen = BTreeSet::new();
    let mut opened = false;
    for spec in specs {
        let canonical =
            drives::canonical(spec).map_err(|failed| super::pool_drives::open_error(&failed))?;
        let identity = drives::identity(&canonical);
        if found.iter().any(|known| known.spec == canonical)
            || identity.is_some_and(|identity| !seen.insert(identity))
        {
            continue;
        }
        let drive = match drives::open(&canonical) {
            Ok(drive) => drive,
            Err(failed) => {
                let gone = [OpenErrorKind::NotFound, OpenErrorKind::TooSmall];
                passed_over.push(PassedOver {
                    gone: gone.contains(&failed.kind),
                    error: known_error(&canonical, &failed),
                });
                continue;
            }
        };
        match labels::read(remote, &drive) {
            Ok(Some(label)) => found.push(Found {
                spec: canonical,
                drive,
                label,
            }),
            Ok(None) => opened = true,
            Err(error) => passed_over.push(PassedOver { error, gone: false }),
        }
    }
    match passed_over.first() {
        Some(first) if found.is_empty() && !opened => Err(first.error.clone()),
        _ => Ok(Scanned { found, passed_over }),
    }
}

/// Pools among drives that were found.
pub fn importable(found: &[Found]) -> Vec<Importable> {
    let mut pools: BTreeMap<PoolId, Importable> = BTreeMap::new();
    let mut sorted: Vec<&Found> = found.iter().collect();
    sorted.sort_by_key(|found| found.label.generation);
    for drive in sorted {
        let config = &drive.label.config;
        let entry = pools.entry(drive.label.pool).or_insert_with(|| Importable {
            id: drive.label.pool.to_string(),
            name: config.name.clone(),
            found: Vec::new(),
            missing: Vec::new(),
        });
        entry.name.clone_from(&config.name);
        entry.found.push(drive.spec.clone());
        let has = |id: &str| {
            found.iter().any(|other| {
                other.label.pool == drive.label.pool && other.label.drive.to_string() == id
            })
        };
        entry.missing = config
            .drives
            .iter()
            .filter(|known| !has(&known.id))
            .map(|known| known.spec.clone())
            .collect();
    }
    pools.into_values().collect()
}
