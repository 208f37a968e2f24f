//! Forecasts for other sizes of the fast tier (docs/placement.md).

/// Sizes that are told of, in percent of the fast tier of now, or of what a volume has of it now.
pub const POINTS: [u64; 6] = [25, 50, 100, 200, 400, 800];

/// What one size would give.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForecastPoint {
    /// Percent of the size of now.
    pub percent: u64,
    /// That size in bytes.
    pub bytes: u64,
    /// The share of the uses that LRU would answer without the slow tier, 0 to 1; writes never wait for it.
    pub lru_hits: f64,
    /// The same by the pool's own policy; only of a pool, and of the half, the whole and twice the size.
    pub hits: Option<f64>,
    /// Mean time of a read or write, in nanoseconds, with that share (LRU's where there is no other) and what
    /// reads of each tier have recently taken; nothing when one of them had no read yet.
    pub mean_ns: Option<u64>,
}

/// What other sizes would give a pool or a volume, by recent traffic.
#[derive(Clone, PartialEq, Debug)]
pub struct Forecast {
    /// The volume; none: all of the pool.
    pub volume: Option<String>,
    /// Uses of 4 KiB blocks that it comes from.
    pub uses: u64,
    /// Bytes of the different blocks that were used, about.
    pub used_bytes: u64,
    /// The sizes, the smallest first.
    pub points: Vec<ForecastPoint>,
}

/// The forecasts of a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct WhatIf {
    /// What a read of the fast tier has recently taken, in nanoseconds.
    pub fast_ns: Option<u64>,
    /// The same of the slow tier.
    pub slow_ns: Option<u64>,
    /// Of all that the pool's hosts do.
    pub pool: Forecast,
    /// Of each volume that was used recently and has something on the fast tier, by name.
    pub volumes: Vec<Forecast>,
}
