//! Space accounting of volumes with a quota or a reservation, and of their layers.

use super::limits::has_limits;
use super::shards::ask_all;
use super::{Pool, Result, lock};
use crate::shard::{Audit, ShardStatus};
use crate::space::{Allowance, SpaceShared};
use format::{BlockCounts, PoolConfig, VolumeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::BLOCK;

/// Remaining space of volumes with limits, by volume number.
#[derive(Clone, Default)]
pub(crate) struct Allowances(BTreeMap<u32, Arc<Allowance>>);

/// Blocks that a quota allows.
pub(super) fn limit(volume: &VolumeConfig) -> i64 {
    match volume.quota {
        0 => Allowance::UNLIMITED,
        bytes => blocks(bytes),
    }
}

/// Blocks reserved for a volume.
pub(super) fn promise(volume: &VolumeConfig) -> i64 {
    match volume.thick {
        true => blocks(volume.size),
        false => blocks(volume.reservation),
    }
}

fn blocks(bytes: u64) -> i64 {
    (bytes / BLOCK as u64) as i64
}

impl Allowances {
    /// For a pool that is being opened: nothing is counted yet, and reservations are kept.
    pub fn new(config: &PoolConfig, space: &SpaceShared) -> Self {
        let limited = config.volumes.iter().filter(|volume| has_limits(volume));
        let made = |volume: &VolumeConfig| {
            let allowance = Allowance::new(limit(volume));
            allowance.owe(promise(volume), space);
            Arc::new(allowance)
        };
        Self(limited.map(|volume| (volume.id, made(volume))).collect())
    }

    /// By the layers that count towards them.
    pub fn of_layers(&self, config: &PoolConfig) -> BTreeMap<u32, Arc<Allowance>> {
        if self.0.is_empty() {
            return BTreeMap::new();
        }
        let holders = config.holders().into_iter();
        holders
            .filter_map(|(layer, volume)| Some((layer, self.0.get(&volume)?.clone())))
            .collect()
    }

    /// Compares the counts of each volume, and of free space, with the shards' findings.
    pub fn audit(&self, config: &PoolConfig, space: &SpaceShared, audit: &mut Audit) {
        let limited = config.volumes.iter().filter(|volume| has_limits(volume));
        let holders = config.holders();
        let mut unused = 0;
        for volume in limited {
            let layers = audit.layers.iter();
            let mine = layers.filter(|(layer, _)| holders.get(layer) == Some(&volume.id));
            let has = mine.map(|(_, blocks)| blocks).sum::<u64>() as i64;
            unused += (promise(volume) - has).max(0);
            let known = self.0.get(&volume.id);
            let right = (limit(volume) - has, promise(volume) - has);
            let counted = known.map(|known| (known.room(), known.kept()));
            if counted != Some(right) {
                let name = &volume.name;
                audit.count += 1;
                audit.wrong.push(format!(
                    "volume {name} with limits counts {counted:?} blocks of room and promise, and it \
                     is {right:?}"
                ));
            }
        }
        let free = space.capacity() - space.stored() - unused;
        if free != space.available() {
            audit.count += 1;
            audit.wrong.push(format!(
                "{} blocks count as free, and it is {free}",
                space.available()
            ));
        }
    }
}

/// Blocks that a volume and its snapshots store.
pub(super) fn held(holders: &BTreeMap<u32, u32>, volume: u32, shards: &[ShardStatus]) -> i64 {
    let counts = counts(holders, volume, shards);
    counts.map(|counts| counts.mapped()).sum::<u64>() as i64
}

/// Blocks that a volume and its snapshots have.
#[derive(Clone, Copy, Default)]
pub(super) struct Has {
    /// In total.
    pub stored: u64,
    /// On the fast tier.
    pub fast: u64,
}

/// What each volume and its snapshots have, in one pass over all layers.
pub(super) fn has(holders: &BTreeMap<u32, u32>, shards: &[ShardStatus]) -> BTreeMap<u32, Has> {
    let mut sums = BTreeMap::<u32, Has>::new();
    for (layer, totals) in shards.iter().flat_map(|shard| &shard.volumes) {
        if let Some(volume) = holders.get(layer) {
            let sum = sums.entry(*volume).or_default();
            sum.stored += totals.counts.mapped();
            sum.fast += totals.counts.fast + totals.counts.clean;
        }
    }
    sums
}

fn counts<'a>(
    holders: &'a BTreeMap<u32, u32>,
    volume: u32,
    shards: &'a [ShardStatus],
) -> impl Iterator<Item = &'a BlockCounts> {
    let layers = shards.iter().flat_map(|shard| &shard.volumes);
    let mine = layers.filter(move |(layer, _)| holders.get(layer) == Some(&volume));
    mine.map(|(_, totals)| &totals.counts)
}

impl Pool {
    /// Tells the shards which layers belong to which volumes, whose limits and settings apply. Every change of
    /// that in the pool's description is followed by this.
    pub(super) fn tell_holders(&self) -> Result<()> {
        self.tell_settings()?;
        self.tell_allowances()
    }

    fn tell_allowances(&self) -> Result<()> {
        let allowances = lock(&self.allowances).clone();
        match allowances.0.is_empty() {
            true => Ok(()),
            false => self.tell(&allowances),
        }
    }

    fn tell(&self, allowances: &Allowances) -> Result<()> {
        let of = Arc::new(allowances.of_layers(&lock(&self.config)));
        ask_all(&self.shards, move |shard| {
            let of = of.clone();
            async move { shard.set_allowances(&of) }
        })
        .map(drop)
    }

    /// The counters of a volume; `None` without limits.
    pub(super) fn allowance(&self, volume: u32) -> Option<Arc<Allowance>> {
        lock(&self.allowances).0.get(&volume).cloned()
    }

    /// Bytes that are reserved for a volume and not used.
    pub(super) fn unused_promise(&self, volume: u32) -> u64 {
        let kept = self.allowance(volume).map_or(0, |known| known.kept());
        kept.max(0) as u64 * BLOCK as u64
    }

    /// Starts counting a volume's blocks.
    pub(super) fn begin_to_count(&self, volume: u32, allowance: Arc<Allowance>) -> Result<()> {
        let all = {
            let mut all = lock(&self.allowances);
            all.0.insert(volume, allowance);
            all.clone()
        };
        self.tell(&all)
    }

    /// Stops counting a volume's blocks, and releases its reservation.
    pub(super) fn end_count(&self, volume: &VolumeConfig) -> Result<()> {
        let left = {
            let mut all = lock(&self.allowances);
            let known = all.0.remove(&volume.id);
            known.map(|known| (known, all.clone()))
        };
        let Some((known, left)) = left else {
            return Ok(());
        };
        known.owe(-promise(volume), &self.shared.space);
        self.tell(&left)
    }
}
