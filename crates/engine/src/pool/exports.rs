//! Exports kept in the pool, and the pool's temperature.

use super::shards::{ask_all, code_of};
use super::{Pool, Result, error, lock};
use crate::control::types::{ErrorCode, ExportRecord};
use crate::shard::{Cooled, UnreadableBlocks};
use format::{ExportConfig, PoolConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

impl Pool {
    /// The exports kept in the pool.
    pub fn exports(&self) -> Vec<ExportRecord> {
        let config = lock(&self.config);
        let record = |export: &ExportConfig| ExportRecord {
            name: export.name.clone(),
            volume: export.volume.clone(),
            kind: export.kind.clone(),
            parameters: export.parameters.clone(),
            initiator: export.initiator.clone(),
            disabled: export.disabled,
        };
        config.exports.iter().map(record).collect()
    }

    /// Replaces the exports kept in the pool.
    ///
    /// # Errors
    /// If an export refers to a missing volume or an invalid initiator, or the labels cannot
    /// be written.
    pub fn set_exports(&self, exports: Vec<ExportRecord>) -> Result<()> {
        let _changing = lock(&self.changing);
        self.update_soon(|config| {
            let devices = Devices::of(config);
            for export in &exports {
                if let Some(Err(wrong)) = export.initiator.as_deref().map(format::check_initiator) {
                    return error(
                        ErrorCode::Invalid,
                        format!("export {}: {wrong}", export.name),
                    );
                }
                if !devices.has(&export.volume) {
                    return error(
                        ErrorCode::NotFound,
                        format!("export {}: no volume '{}'", export.name, export.volume),
                    );
                }
            }
            let keep = |export: ExportRecord| ExportConfig {
                name: export.name,
                volume: export.volume,
                kind: export.kind,
                parameters: export.parameters,
                initiator: export.initiator,
                disabled: export.disabled,
            };
            config.exports = exports.into_iter().map(keep).collect();
            Ok(())
        })
    }

    /// Limits the RAM cache to a number of bytes.
    pub fn set_ram(&self, bytes: u64) {
        let each = bytes / self.shards.len().max(1) as u64;
        self.shared.ram_bytes.store(each, Ordering::Relaxed);
    }

    /// Writes all dirty data back to the slow tier and evicts all clean copies.
    ///
    /// # Errors
    /// A drive's error, `NoSpace` if the slow tier has no room, `Busy` if hosts keep some data
    /// in use all the time, or `Damaged` with the blocks that cannot be read.
    pub fn cool(&self) -> Result<()> {
        let what = "the pool's fast tier cannot be flushed and dropped";
        let mut unread = UnreadableBlocks::default();
        let mut busy = 0;
        for result in ask_all(&self.shards, |shard| async move { shard.cool().await })? {
            match result {
                Ok(Cooled::Cold) => {}
                Ok(Cooled::Busy(chunks)) => busy += chunks,
                Ok(Cooled::Unreadable(blocks)) => unread.add(blocks),
                Err(failed) => return error(code_of(&failed), format!("{what}: {failed}")),
            }
        }
        if unread.count > 0 {
            let blocks = self.name_unread(&unread);
            return error(ErrorCode::Damaged, format!("{what} completely: {blocks}"));
        }
        if busy > 0 {
            let text = format!(
                "{what} completely: hosts or background work keep {busy} chunks of 1 MiB in use all the \
                 time; try again under less load"
            );
            return error(ErrorCode::Busy, text);
        }
        Ok(())
    }
}

/// Volumes and snapshots of a pool by their names, to look up very many.
struct Devices<'a> {
    volumes: BTreeMap<&'a str, u32>,
    snapshots: BTreeSet<(u32, &'a str)>,
}

impl<'a> Devices<'a> {
    fn of(config: &'a PoolConfig) -> Self {
        let volumes = config.volumes.iter();
        let snapshots = config.snapshots.iter();
        Self {
            volumes: volumes
                .map(|known| (known.name.as_str(), known.id))
                .collect(),
            snapshots: snapshots
                .map(|known| (known.volume, known.name.as_str()))
                .collect(),
        }
    }

    /// Whether a volume, or with `volume@snapshot` a snapshot, exists.
    fn has(&self, name: &str) -> bool {
        match name.split_once('@') {
            None => self.volumes.contains_key(name),
            Some((volume, snapshot)) => {
                let volume = self.volumes.get(volume);
                volume.is_some_and(|volume| self.snapshots.contains(&(*volume, snapshot)))
            }
        }
    }
}
