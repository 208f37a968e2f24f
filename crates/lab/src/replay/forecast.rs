//! The forecast of the policy's curve for a fast tier of twice the size, compared with the real result.

use super::blocks::spans;
use super::cost::Tally;
use super::hits::Row;
use super::shipping;
use placement::{Curve, Miniature};
use rivals::{Cache, Lru, Outcome};
use traces::Request;

/// Blocks that the curve tracks.
const SAMPLES: usize = 8192;
/// Blocks that a miniature has of those in use, where that is more than its least share.
const MINIATURE_BLOCKS: f64 = 65_536.0;
const SHARE_LEAST: f64 = 0.01;
/// Sizes at which the curve is held against the real one.
const SIZES: usize = 20;

/// The curve of a sequence, and how well it does.
pub struct Forecast {
    curve: Curve,
    /// Mean of the absolute differences to LRU's real miss ratios.
    error: f64,
}

impl Forecast {
    /// Of a sequence of blocks.
    pub fn of(keys: &[u64]) -> Self {
        let mut curve = Curve::new(SAMPLES);
        keys.iter().for_each(|key| curve.used(*key));
        let distinct = curve.blocks() as usize;
        let errors = (1..=SIZES).map(|step| {
            let size = (distinct * step / SIZES).max(1);
            (curve.miss_ratio(size as u64) - lru_miss_ratio(keys, size)).abs()
        });
        let error = errors.sum::<f64>() / SIZES as f64;
        Self { curve, error }
    }

    /// Prints what the curve says of LRU, and miniatures of Convect's hit share at twice the size, beside reruns.
    pub fn print(&self, hits: &[Row], tiers: &[Tally], twice: &Tally, then: f64, blocks: u64) {
        let lru = hits.iter().find(|row| row.name == "lru");
        let real = lru.map_or(0.0, |row| row.hits as f64 / row.uses.max(1) as f64);
        let [now, more] = [1, 2].map(|times| 1.0 - self.curve.miss_ratio(times * blocks));
        println!(
            "curve of {:.1} % of the blocks: LRU hits {:.1} % (really {:.1}), {:.1} % with twice as much; mean error of the curve {:.4}",
            self.curve.rate() * 100.0,
            now * 100.0,
            real * 100.0,
            more * 100.0,
            self.error,
        );
        let Some(tally) = tiers.first() else { return };
        println!(
            "convect with twice as much: {:.1} % hits forecast, {:.1} % in a rerun",
            (tally.hit_share() + then) * 100.0,
            twice.hit_share() * 100.0
        );
    }
}

/// How much more Convect would hit with twice as many blocks of all that is fast, by two miniatures.
pub fn gain(requests: &[Request], distinct: u64, blocks: u64, seed: u64) -> f64 {
    let share = (MINIATURE_BLOCKS / distinct.max(1) as f64).clamp(SHARE_LEAST, 1.0);
    let [now, then] = [1, 2].map(|times| {
        let miniature = Miniature::new(shipping::config(times * blocks, seed), share);
        let mut miniature = miniature.following();
        for request in requests {
            let spans = spans(request, u64::MAX);
            spans.for_each(|it| miniature.used(it.volume, it.first, it.end, request.write));
        }
        miniature.hit_share().unwrap_or(0.0)
    });
    then - now
}

fn lru_miss_ratio(keys: &[u64], blocks: usize) -> f64 {
    let (mut lru, mut gone) = (Lru::new(blocks), Vec::new());
    let missed = keys.iter().filter(|key| {
        gone.clear();
        lru.access(**key, &mut gone) != Outcome::Hit
    });
    missed.count() as f64 / keys.len().max(1) as f64
}
