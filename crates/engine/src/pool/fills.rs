//! Usage of a pool's parts, and warning levels.

use super::{Pool, Result, error, lock};
use crate::control::types::{ErrorCode, FillPart, FillStatus, SpacePolicy, Tier, VdriveStatus};
use crate::shard::ShardStatus;
use format::BlockCounts;
use units::{BLOCK, VdriveId};

impl Pool {
    /// Sets the warning levels for the usage of the pool's parts, in per cent; empty:
    /// no warnings.
    ///
    /// # Errors
    /// `Invalid`, or when no drive takes the label.
    pub fn set_warnings(&self, levels: &[u8]) -> Result<()> {
        let _changing = lock(&self.changing);
        if let Err(wrong) = format::check_warn_at(levels) {
            return error(ErrorCode::Invalid, format!("{wrong}: choose others"));
        }
        self.update_soon(|config| {
            config.warn_at = levels.to_vec();
            Ok(())
        })
    }

    /// The parts that can fill: what volumes store, the metadata, and where there are two tiers
    /// those. A fast tier that is meant to be full, with copies or by its policy, is not one of them.
    pub(super) fn fills(
        &self,
        shards: &[ShardStatus],
        vdrives: &[VdriveStatus],
        counts: &BlockCounts,
    ) -> Vec<FillStatus> {
        let space = &self.shared.space;
        let promised = space.promised() as u64;
        let fill = |part, used: u64, capacity: u64| FillStatus {
            part,
            used: used * BLOCK as u64,
            capacity: capacity * BLOCK as u64,
        };
        let pages = shards
            .iter()
            .filter_map(|shard| shard.used.get(&VdriveId(0)));
        let room = shards.iter().map(|shard| shard.page_room);
        let mut fills = vec![
            fill(
                FillPart::Space,
                counts.mapped() + promised,
                space.capacity().max(0) as u64,
            ),
            fill(FillPart::Metadata, pages.sum(), room.sum()),
        ];
        let tier = |tier: Tier| {
            let of_tier = vdrives
                .iter()
                .filter(move |vdrive| vdrive.tier == tier && vdrive.state != "evacuating");
            of_tier.fold((0, 0), |sum, vdrive| {
                (sum.0 + vdrive.used, sum.1 + vdrive.capacity)
            })
        };
        let (_, fast) = tier(Tier::Fast);
        let (slow_used, slow) = tier(Tier::Slow);
        if fast > 0 && slow > 0 {
            if self.shared.policy() == SpacePolicy::SlowFirst {
                fills.push(fill(FillPart::Fast, counts.fast, fast / BLOCK as u64));
            }
            let block = BLOCK as u64;
            fills.push(fill(FillPart::Slow, slow_used / block, slow / block));
        }
        fills
    }
}
