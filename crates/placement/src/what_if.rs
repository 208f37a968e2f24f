//! Online forecasts for other sizes of the fast tier under the current traffic.
//!
//! Uses are sampled: [`Curve`]s say what LRU would keep, of all and of each volume, and [`Miniature`]s what
//! the policy itself would, with half of the fast tier, with all and with twice as much. Both count in windows, so that
//! they tell of recent traffic. What is kept is bounded whatever hosts do.

use crate::curve::{Counts, Curve};
use crate::miniature::Miniature;
use crate::policy::Config;
use units::CHUNK_BLOCKS;
use units::hash::mix_but_last;

/// Blocks that the curve of all tracks, and that of a volume.
const SAMPLES: usize = 8192;
const VOLUME_SAMPLES: usize = 1024;
/// Volumes that have a curve of their own: those used last.
const VOLUMES: usize = 64;
/// The share of the blocks that is sampled at most.
const SHARE: f64 = 1.0 / 16.0;
/// No curve samples a block with a hash from here on.
const SAMPLED_BELOW: u64 = (u64::MAX as f64 * SHARE) as u64;
// The upper bits of a hash alone say whether it is below.
const _: () = assert!(SAMPLED_BELOW.is_multiple_of(1 << 31));
/// Sampled uses of a window for each block that is tracked.
const WINDOW: u64 = 16;
/// Blocks that a miniature's fast tier is to have, and between which shares of the chunks that is sought.
const MINIATURE_BLOCKS: u64 = 16_384;
const CHUNKS: (f64, f64) = (1.0 / 1024.0, 1.0 / 16.0);
/// Uses of extents that a miniature counts in a window.
const MINIATURE_WINDOW: u64 = 1 << 18;
/// Sizes of the fast tier that miniatures have, in halves of the real one's.
const HALVES: [u64; 3] = [1, 2, 4];

/// Result of the curves for one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Told {
    /// Uses of blocks that it comes from.
    pub uses: u64,
    /// Different blocks that were used, about.
    pub blocks: u64,
    /// The share of the uses that would have waited for the slow tier.
    pub missed: f64,
}

/// A recent curve: of the last complete window of uses; until there is one, of the window in progress.
struct Recent {
    samples: usize,
    curve: Curve,
    last: Option<(Counts, u64)>,
}

impl Recent {
    fn new(samples: usize) -> Self {
        Self {
            samples,
            curve: Curve::sampling(samples, SHARE),
            last: None,
        }
    }

    fn note(&mut self, block: u64, hash: u64, write: bool) {
        self.curve.note(block, hash, write);
        if self.curve.counts().sampled >= WINDOW * self.samples as u64 {
            self.begin();
        }
    }

    /// Begins the next window.
    #[cold]
    fn begin(&mut self) {
        self.last = Some((self.curve.counts().clone(), self.curve.blocks()));
        if !self.curve.count_anew() {
            self.curve = Curve::sampling(self.samples, SHARE);
        }
    }

    fn told(&self, blocks: u64) -> Told {
        let (counts, used) = match &self.last {
            Some((counts, used)) => (counts, *used),
            None => (self.curve.counts(), self.curve.blocks()),
        };
        Told {
            uses: counts.uses(),
            blocks: used,
            missed: counts.miss_ratio(blocks),
        }
    }
}

/// A volume's curve, and when it was used last.
struct OfVolume {
    volume: u32,
    used: u64,
    curve: Recent,
}

/// A model of the policy with its hit share in the last whole window.
struct Model {
    miniature: Miniature,
    last: Option<f64>,
}

/// The real results, in the same windows as the models'.
#[derive(Default)]
struct Seen {
    blocks: u64,
    waited: u64,
    last: Option<f64>,
}

impl Seen {
    fn hit_share(&self) -> Option<f64> {
        // Waits are reported at their end, perhaps in another window.
        let share = || 1.0 - self.waited.min(self.blocks) as f64 / self.blocks as f64;
        (self.blocks > 0).then(share)
    }

    fn count_anew(&mut self) {
        let last = self.hit_share();
        *self = Self {
            last,
            ..Self::default()
        };
    }
}

/// Sampling of the traffic of one owner: a shard.
pub struct WhatIf {
    all: Recent,
    volumes: Vec<OfVolume>,
    /// Of those the one that was used last, ...
    at: usize,
    /// ... and its uses of blocks that no curve has counted yet.
    uncounted: u64,
    /// Uses by hosts.
    uses: u64,
    /// The share of the chunks that models have.
    share: f64,
    models: [Model; 3],
    seen: Seen,
    sizes: (u64, u64),
}

impl WhatIf {
    /// Beside a policy of this configuration.
    pub fn new(config: Config) -> Self {
        let wanted = MINIATURE_BLOCKS as f64 / config.fast_blocks.max(1) as f64;
        let share = wanted.clamp(CHUNKS.0, CHUNKS.1);
        let model = |halves| {
            let whole = Config {
                fast_blocks: of_halves(config.fast_blocks, halves),
                ..config
            };
            Model {
                miniature: Miniature::new(whole, share),
                last: None,
            }
        };
        Self {
            all: Recent::new(SAMPLES),
            volumes: Vec::new(),
            at: 0,
            uncounted: 0,
            uses: 0,
            share,
            models: HALVES.map(model),
            seen: Seen::default(),
            sizes: (config.fast_blocks, config.ram_blocks),
        }
    }

    /// The fast tier and RAM have other sizes, in blocks.
    pub fn resize(&mut self, fast_blocks: u64, ram_blocks: u64) {
        if self.sizes == (fast_blocks, ram_blocks) {
            return;
        }
        self.sizes = (fast_blocks, ram_blocks);
        self.count();
        for (model, halves) in self.models.iter_mut().zip(HALVES) {
            let fast = of_halves(fast_blocks, halves);
            model.miniature.resize(fast, ram_blocks, self.share);
            model.miniature.count_anew();
            model.last = None;
        }
        self.seen = Seen::default();
    }

    /// A volume's host uses blocks of one chunk of a layer, by their numbers within the chunk, in order.
    #[inline]
    pub fn used(
        &mut self,
        volume: u32,
        (layer, chunk): (u32, u32),
        blocks: impl Iterator<Item = usize>,
        write: bool,
    ) {
        self.uses += 1;
        if (self.volumes.get(self.at)).is_none_or(|known| known.volume != volume) {
            self.find(volume);
        }
        let first = u64::from(chunk) * CHUNK_BLOCKS as u64;
        let (mut low, mut high, mut count) = (u64::MAX, 0, 0);
        for block in blocks {
            let number = first + block as u64;
            if count == 0 {
                low = number;
            }
            high = number + 1;
            count += 1;
            let block = u64::from(layer) << 40 ^ number;
            let most = mix_but_last(block);
            if most < SAMPLED_BELOW {
                self.sampled(block, most ^ most >> 33, write);
            }
        }
        self.uncounted += count;
        if low < high && self.models[0].miniature.takes(layer, u64::from(chunk)) {
            self.modelled(layer, low, high, write);
        }
    }

    /// Work that most uses are spared.
    #[inline(never)]
    fn sampled(&mut self, block: u64, hash: u64, write: bool) {
        self.count();
        self.all.note(block, hash, write);
        self.volumes[self.at].curve.note(block, hash, write);
    }

    /// Attributes the counted uses to the volume that was used last.
    fn count(&mut self) {
        let blocks = std::mem::take(&mut self.uncounted);
        self.seen.blocks += blocks;
        self.all.curve.count(blocks);
        if let Some(known) = self.volumes.get_mut(self.at) {
            known.curve.curve.count(blocks);
        }
    }

    /// Records blocks of uses that were read from the slow tier while a host waited.
    #[inline]
    pub fn waited(&mut self, blocks: u64) {
        self.seen.waited += blocks;
    }

    /// A layer is no more.
    pub fn forget(&mut self, layer: u32) {
        for model in &mut self.models {
            model.miniature.forget(layer);
        }
    }

    /// Forecast of LRU with a number of blocks.
    pub fn all(&mut self, blocks: u64) -> Told {
        self.count();
        self.all.told(blocks)
    }

    /// The same of one volume with each of these numbers of blocks for itself; nothing when it was not used recently.
    pub fn of_volume<const N: usize>(
        &mut self,
        volume: u32,
        blocks: [u64; N],
    ) -> Option<[Told; N]> {
        self.count();
        let known = self.volumes.iter().find(|known| known.volume == volume)?;
        Some(blocks.map(|blocks| known.curve.told(blocks)))
    }

    /// The share of the uses that would not wait for the slow tier: with half of the fast tier, all of it, and twice as
    /// much. With all of it that is what was seen. Models know neither what else the drives have to do nor what the
    /// tiers began with, so of theirs only the difference counts: what the smaller one misses more comes on top of
    /// what was seen to miss, and of that the larger one takes the same part away as of its model's.
    /// Nothing where nothing was used.
    pub fn policy(&mut self) -> [Option<f64>; 3] {
        self.count();
        let told = |model: &Model| model.last.or_else(|| model.miniature.hit_share());
        let [half, same, twice] = [0, 1, 2].map(|at: usize| told(&self.models[at]));
        let seen = self.seen.last.or_else(|| self.seen.hit_share());
        let (Some(seen), Some(half), Some(same), Some(twice)) = (seen, half, same, twice) else {
            return [None; 3];
        };
        let less = seen - (same - half).max(0.0);
        let left = match same < twice {
            true => (1.0 - twice) / (1.0 - same),
            false => 1.0,
        };
        let more = 1.0 - (1.0 - seen) * left;
        [Some(less.max(0.0)), Some(seen), Some(more)]
    }

    #[inline(never)]
    fn modelled(&mut self, layer: u32, first: u64, end: u64, write: bool) {
        self.count();
        let mut is_over = false;
        for Model { miniature, last } in &mut self.models {
            miniature.used(layer, first, end, write);
            if miniature.uses() >= MINIATURE_WINDOW {
                *last = miniature.hit_share();
                miniature.count_anew();
                is_over = true;
            }
        }
        if is_over {
            self.seen.count_anew();
        }
    }

    /// Another volume than before is used: its curve takes the place of the one that was not used for the longest time
    /// when there are too many.
    #[inline(never)]
    fn find(&mut self, volume: u32) {
        self.count();
        if let Some(before) = self.volumes.get_mut(self.at) {
            before.used = self.uses - 1;
        }
        let known = self.volumes.iter().position(|known| known.volume == volume);
        self.at = known.unwrap_or_else(|| self.take_up(volume));
    }

    fn take_up(&mut self, volume: u32) -> usize {
        let new = OfVolume {
            volume,
            used: 0,
            curve: Recent::new(VOLUME_SAMPLES),
        };
        if self.volumes.len() < VOLUMES {
            self.volumes.push(new);
            return self.volumes.len() - 1;
        }
        let oldest = self
            .volumes
            .iter()
            .enumerate()
            .min_by_key(|(_, known)| known.used);
        let at = oldest.map_or(0, |(at, _)| at);
        self.volumes[at] = new;
        at
    }
}

fn of_halves(blocks: u64, halves: u64) -> u64 {
    blocks.saturating_mul(halves) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::hash::mix;

    const CONFIG: Config = Config {
        fast_blocks: 100_000,
        ram_blocks: 5_000,
        margin: 9.0,
        seed: 1,
    };
    const CHUNK: u64 = CHUNK_BLOCKS as u64;

    /// Uses of blocks of `all`, far from each other.
    fn use_some(what_if: &mut WhatIf, volume: u32, uses: u64, all: u64, write: bool) {
        for use_ in 0..uses {
            let block = mix(use_) % all * 7;
            let chunk = (block / CHUNK) as u32;
            let at = std::iter::once((block % CHUNK) as usize);
            what_if.used(volume, (volume, chunk), at, write);
        }
    }

    #[test]
    fn more_room_misses_less_and_what_is_not_used_tells_nothing() {
        let mut what_if = WhatIf::new(CONFIG);
        assert_eq!(what_if.policy(), [None; 3]);
        assert_eq!(what_if.of_volume(1, [100]), None);
        use_some(&mut what_if, 1, 1_000_000, 200_000, false);
        let models = [0, 1, 2].map(|at: usize| what_if.models[at].miniature.hit_share().unwrap());
        assert!(
            models[0] + 0.05 < models[1] && models[1] + 0.05 < models[2],
            "{models:?}"
        );
        for (blocks, missed) in [(50_000, 0.75), (100_000, 0.5), (150_000, 0.25)] {
            let all = what_if.all(blocks);
            // Each block's first use misses, too.
            assert!((all.missed - missed).abs() < 0.1, "{blocks}: {all:?}");
            assert!((all.blocks as f64 - 200_000.0).abs() < 10_000.0, "{all:?}");
        }
    }

    #[test]
    fn forecasts_begin_with_what_was_seen() {
        // Every tenth waits; the models' own misses are more.
        let mut what_if = WhatIf::new(CONFIG);
        use_some(&mut what_if, 1, 1_000_000, 200_000, false);
        what_if.waited(100_000);
        let [half, same, twice] = what_if.policy().map(Option::unwrap);
        assert_eq!(same, 0.9);
        let models = [0, 1, 2].map(|at: usize| what_if.models[at].miniature.hit_share().unwrap());
        let less = 0.9 - (models[1] - models[0]);
        assert!((half - less).abs() < 1e-9, "{half} {models:?}");
        let missed = 0.1 * (1.0 - models[2]) / (1.0 - models[1]);
        assert!((1.0 - twice - missed).abs() < 1e-9, "{twice} {models:?}");
        assert!(twice > 0.92, "{twice}");
        // More waited than were used in this window: they began in the one before.
        what_if.seen.count_anew();
        use_some(&mut what_if, 1, 1_000, 200_000, false);
        what_if.waited(2_000);
        what_if.seen.count_anew();
        assert_eq!(what_if.policy()[1], Some(0.0));
    }

    #[test]
    fn volumes_are_told_apart() {
        let mut what_if = WhatIf::new(CONFIG);
        use_some(&mut what_if, 1, 400_000, 20_000, false);
        use_some(&mut what_if, 2, 400_000, 200_000, false);
        let [small, large] = [1, 2].map(|volume| what_if.of_volume(volume, [30_000]).unwrap()[0]);
        assert!(
            small.missed < 0.1 && large.missed > 0.7,
            "{small:?} {large:?}"
        );
    }

    #[test]
    fn writes_never_wait() {
        let mut what_if = WhatIf::new(CONFIG);
        use_some(&mut what_if, 1, 200_000, 200_000, true);
        assert_eq!(what_if.all(1).missed, 0.0);
        assert_eq!(what_if.policy()[0], Some(1.0));
    }

    #[test]
    fn another_traffic_takes_the_place_of_the_one_before() {
        let mut what_if = WhatIf::new(CONFIG);
        use_some(&mut what_if, 1, 3_000_000, 100_000, false);
        let before = what_if.of_volume(1, [5_000]).unwrap()[0];
        use_some(&mut what_if, 1, 3_000_000, 4_000, false);
        let after = what_if.of_volume(1, [5_500]).unwrap()[0];
        assert!(
            before.missed > 0.9 && after.missed < 0.1,
            "{before:?} {after:?}"
        );
    }

    #[test]
    fn of_too_many_volumes_those_are_kept_that_are_used() {
        let mut what_if = WhatIf::new(CONFIG);
        for volume in 0..2 * VOLUMES as u32 {
            use_some(&mut what_if, 1_000, 1, 10, false);
            use_some(&mut what_if, volume, 1, 10, false);
        }
        assert_eq!(what_if.volumes.len(), VOLUMES);
        assert!(what_if.of_volume(1_000, [1]).is_some() && what_if.of_volume(0, [1]).is_none());
    }

    #[test]
    fn another_size_of_the_tier_is_followed() {
        let mut what_if = WhatIf::new(CONFIG);
        use_some(&mut what_if, 1, 400_000, 200_000, false);
        let hits = |what_if: &WhatIf| what_if.models[1].miniature.hit_share();
        let before = hits(&what_if).unwrap();
        what_if.waited(40_000);
        what_if.resize(400_000, 5_000);
        assert_eq!(what_if.policy(), [None; 3]);
        use_some(&mut what_if, 1, 400_000, 200_000, false);
        assert!(hits(&what_if).unwrap() > before + 0.1);
        assert_eq!(what_if.policy()[1], Some(1.0));
    }
}
