//! Forecasts for other sizes of the fast tier, from the shards' statistics.

use super::shards::ask_all;
use super::{Pool, Result, error};
use crate::control::types::ErrorCode;
use crate::control::what_if::{Forecast, ForecastPoint, POINTS, WhatIf};
use crate::shard::ShardForecast;
use format::VolumeConfig;
use placement::Told;
use std::sync::Arc;
use units::BLOCK;

/// Points that the policy's own models cover.
const MODELLED: [u64; 3] = [50, 100, 200];

impl Pool {
    /// Forecasts for other sizes of the fast tier, from recent traffic.
    ///
    /// # Errors
    /// `Invalid` if the pool lacks a tier, or when it is closing.
    pub fn what_if(&self) -> Result<WhatIf> {
        let config = self.config();
        let holders = Arc::new(config.holders());
        let told = ask_all(&self.shards, move |shard| {
            let holders = holders.clone();
            async move { shard.what_if(&holders) }
        })?;
        let told: Vec<ShardForecast> = told.into_iter().flatten().collect();
        if told.is_empty() {
            let text = format!(
                "pool {} lacks a fast or a slow tier, so there is nothing to forecast: add a vdrive of the \
                 other tier first",
                self.name
            );
            return error(ErrorCode::Invalid, text);
        }
        let waits = Waits::of(&told);
        let fast: u64 = told.iter().map(|shard| shard.fast_blocks).sum();
        let mut pool = forecast(None, fast, told.iter().map(|shard| &shard.all), waits);
        for point in &mut pool.points {
            let model = MODELLED
                .iter()
                .position(|percent| *percent == point.percent);
            let Some(at) = model else { continue };
            point.hits = policy(&told, at);
            let known = point.hits.unwrap_or(point.lru_hits);
            point.mean_ns = waits.mean_ns(known);
        }
        let of = |volume: &VolumeConfig| {
            let parts = told
                .iter()
                .filter_map(|shard| shard.volumes.get(&volume.id));
            let fast: u64 = parts.clone().map(|(fast, _)| fast).sum();
            let curves = parts.map(|(_, curve)| curve);
            let some = fast > 0 && curves.clone().next().is_some();
            some.then(|| forecast(Some(volume.name.clone()), fast, curves, waits))
        };
        let named = config.volumes.iter().filter(|volume| !volume.deleting);
        let mut volumes: Vec<Forecast> = named.filter_map(of).collect();
        volumes.sort_unstable_by(|one, next| one.volume.cmp(&next.volume));
        Ok(WhatIf {
            fast_ns: waits.fast_ns,
            slow_ns: waits.slow_ns,
            pool,
            volumes,
        })
    }
}

/// Latency of reads of the tiers.
#[derive(Clone, Copy)]
struct Waits {
    fast_ns: Option<u64>,
    slow_ns: Option<u64>,
}

impl Waits {
    fn of(shards: &[ShardForecast]) -> Self {
        let mean = |waits: Vec<u64>| {
            let count = waits.len() as u64;
            (count > 0).then(|| waits.into_iter().sum::<u64>() / count)
        };
        Self {
            fast_ns: mean(shards.iter().filter_map(|shard| shard.fast_ns).collect()),
            slow_ns: mean(shards.iter().filter_map(|shard| shard.slow_ns).collect()),
        }
    }

    fn mean_ns(self, hits: f64) -> Option<u64> {
        let (fast, slow) = (self.fast_ns? as f64, self.slow_ns? as f64);
        Some((hits * fast + (1.0 - hits) * slow) as u64)
    }
}

/// The shards' curves together, each as often as it was used.
fn forecast<'a>(
    volume: Option<String>,
    fast_blocks: u64,
    parts: impl Iterator<Item = &'a [Told; POINTS.len()]> + Clone,
    waits: Waits,
) -> Forecast {
    let uses: u64 = parts.clone().map(|part| part[0].uses).sum();
    let points = POINTS.iter().enumerate().map(|(at, percent)| {
        let missed = parts
            .clone()
            .map(|part| part[at].missed * part[at].uses as f64);
        let lru_hits = match uses {
            0 => 0.0,
            uses => 1.0 - missed.sum::<f64>() / uses as f64,
        };
        let blocks = u128::from(fast_blocks) * u128::from(*percent) / 100;
        ForecastPoint {
            percent: *percent,
            bytes: blocks as u64 * BLOCK as u64,
            lru_hits,
            hits: None,
            mean_ns: waits.mean_ns(lru_hits).filter(|_| uses > 0),
        }
    });
    Forecast {
        volume,
        uses,
        used_bytes: parts.clone().map(|part| part[0].blocks).sum::<u64>() * BLOCK as u64,
        points: points.collect(),
    }
}

/// The models' hit shares together.
fn policy(shards: &[ShardForecast], at: usize) -> Option<f64> {
    let known = shards
        .iter()
        .filter_map(|shard| Some((shard.policy[at]?, shard.all[0].uses)));
    let (hits, uses) = known.fold((0.0, 0), |(hits, uses), (share, count)| {
        (hits + share * count as f64, uses + count)
    });
    (uses > 0).then(|| hits / uses as f64)
}
