//! Placement of a block and its history: the engine's placement log in wall-clock time.

use super::Diagnostics;
use crate::clock::now_s;
use crate::control::PoolCalls;
use crate::manager::Result;
use crate::mapping::ToApi;
use api::v1;
use units::EXTENT;

const NS: u64 = 1_000_000_000;

/// The time `ago_ns` before `now_s`, in seconds since 1970.
fn at_s(now_s: u64, ago_ns: u64) -> u64 {
    now_s.saturating_sub(ago_ns / NS)
}

fn moved(status: engine::MoveStatus, now_s: u64) -> v1::Move {
    let cause = status.cause;
    let figure = |value: f32| (value > 0.0).then_some(f64::from(value));
    v1::Move {
        at_s: at_s(now_s, status.ago_ns),
        from: cause.from().name().to_owned(),
        to: cause.to().name().to_owned(),
        dropped: cause.drops(),
        reason: cause.reason().to_owned(),
        about: cause.about().to_owned(),
        blocks: (0..16)
            .filter(|block| status.blocks >> block & 1 == 1)
            .collect(),
        worth: figure(status.worth),
        wanted: figure(status.wanted),
        displaced: status.displaced.map(ToApi::to_api),
    }
}

fn place(status: engine::BlockPlace, now_s: u64) -> v1::BlockPlace {
    v1::BlockPlace {
        tier: status.tier.name().to_owned(),
        kind: status.kind.name().to_owned(),
        vdrive: status.vdrive,
        drives: status.drives.to_api(),
        came: status.came.map(|came| moved(came, now_s)),
        log_since_s: at_s(now_s, status.log_ns),
    }
}

fn heat(status: engine::ExtentHeat) -> v1::ExtentHeat {
    v1::ExtentHeat {
        uses: status.uses,
        idle_bytes: status.idle_bytes,
        worth: status.worth.into(),
        bar: status.bar.into(),
        wanted: status.wanted.into(),
    }
}

impl Diagnostics {
    /// Where and why the block with a logical block number is stored; the first block by default.
    ///
    /// # Errors
    /// When the volume or the block does not exist.
    pub fn volume_explain(
        &self,
        pool: &str,
        volume: &str,
        lba: Option<usize>,
    ) -> Result<v1::Explanation> {
        let lba = lba.unwrap_or(0) as u64;
        let told = self.registry.volume_explain(pool, volume, lba)?;
        let now_s = now_s();
        let places = told.places.into_iter();
        let moves = told.moves.into_iter();
        Ok(v1::Explanation {
            lba,
            offset: told.offset,
            extent: told.offset / EXTENT as u64 * EXTENT as u64,
            inherited: told.inherited,
            snapshot: told.snapshot,
            places: places.map(|known| place(known, now_s)).collect(),
            heat: told.heat.map(heat),
            moves: moves.map(|known| moved(known, now_s)).collect(),
            log_since_s: at_s(now_s, told.log_ns),
            log_is_whole: told.log_is_whole,
        })
    }

    /// Number of moves of a pool by reason.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn pool_moves(&self, pool: &str) -> Result<v1::MoveCountList> {
        let counts = self.registry.pool_moves(pool)?;
        let items = counts.into_iter().map(|count| v1::MoveCount {
            from: count.cause.from().name().to_owned(),
            to: count.cause.to().name().to_owned(),
            dropped: count.cause.drops(),
            reason: count.cause.reason().to_owned(),
            about: count.cause.about().to_owned(),
            moves: count.moves,
            bytes: count.bytes,
        });
        Ok(v1::MoveCountList {
            items: items.collect(),
        })
    }
}
