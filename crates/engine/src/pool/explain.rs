//! Why a volume's block is where it is, and counts of the pool's moves by reason.

use super::shards::{ask_all, code_of};
use super::{Pool, Result, error};
use crate::control::explain::{Cause, Explanation, MoveCount};
use crate::control::types::{EngineError, ErrorCode};
use crate::device::shard_of_chunk;
use crate::shard::LayerNames;
use units::{BLOCK, CHUNK};

impl Pool {
    /// Where the block with a logical block of a volume is, and why.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when `lba` is beyond the volume's end; a drive's error.
    pub fn explain(&self, name: &str, lba: u64) -> Result<Explanation> {
        let volume = self.find_volume(name)?;
        let lbas = volume.size / u64::from(volume.lba_size);
        if lba >= lbas {
            let text = format!(
                "volume {name} has logical blocks 0 to {} of {} bytes, not {lba}",
                lbas - 1,
                volume.lba_size
            );
            return error(ErrorCode::Invalid, text);
        }
        let offset = lba * u64::from(volume.lba_size);
        let chunk = (offset / CHUNK as u64) as u32;
        let block = (offset % CHUNK as u64) as usize / BLOCK;
        let names = self.layer_names();
        let root = self.config().root(volume.live());
        let shard = &self.shards[shard_of_chunk(root, chunk, self.shards.len())];
        let answer = shard
            .ask(move |shard| async move { shard.explain(volume.id, chunk, block, &names).await });
        let closing = |_| EngineError::new(ErrorCode::Busy, "the pool is closing");
        let answer = reactor::control::receive(answer).map_err(closing)?;
        answer.map_err(|failed| EngineError::new(code_of(&failed), failed.to_string()))
    }

    /// The pool's moves by reason, since it was opened.
    ///
    /// # Errors
    /// When the pool is closing.
    pub fn move_counts(&self) -> Result<Vec<MoveCount>> {
        let parts = ask_all(&self.shards, |shard| async move { shard.move_counts() })?;
        let none = |cause: &Cause| MoveCount {
            cause: *cause,
            moves: 0,
            bytes: 0,
        };
        let mut sums: Vec<MoveCount> = Cause::ALL.iter().map(none).collect();
        for part in parts {
            for (sum, more) in sums.iter_mut().zip(part) {
                sum.moves += more.moves;
                sum.bytes += more.bytes;
            }
        }
        Ok(sums)
    }

    /// Names of the layers that belong to a volume or a snapshot.
    fn layer_names(&self) -> LayerNames {
        let config = self.config();
        let volumes = config.volumes.iter();
        let mut names: LayerNames = volumes
            .map(|volume| (volume.live(), volume.name.clone()))
            .collect();
        for snapshot in &config.snapshots {
            let of = |volume: &&format::VolumeConfig| volume.id == snapshot.volume;
            if let Some(volume) = config.volumes.iter().find(of) {
                let name = format!("{}@{}", volume.name, snapshot.name);
                names.insert(snapshot.layer, name);
            }
        }
        names
    }
}
