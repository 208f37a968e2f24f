//! Forecasts for other sizes of the fast tier (docs/placement.md).

/// Forecast sizes, in percent of the present fast tier, or of a volume's present part of it.
pub const POINTS: [u64; 6] = [25, 50, 100, 200, 400, 800];

/// Forecast for one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForecastPoint {
    /// Percent of the size of now.
    pub percent: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The share of the uses that LRU would answer without the slow tier, 0 to 1; writes never wait for it.
    pub lru_hits: f64,
    /// The same by the pool's own policy; only of a pool, and of the half, the whole and twice the size.
    pub hits: Option<f64>,
    /// Mean time of a read or write, in nanoseconds, with that share (LRU's where there is no other) and what
    /// reads of each tier have recently taken; nothing when one of them had no read yet.
    pub mean_ns: Option<u64>,
}

/// Forecasts for a pool or a volume, from recent traffic.
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
    /// Recent latency of reads of the fast tier, in nanoseconds.
    pub fast_ns: Option<u64>,
    /// The same of the slow tier.
    pub slow_ns: Option<u64>,
    /// For all traffic of the pool's hosts.
    pub pool: Forecast,
    /// For each recently used volume with data on the fast tier, by name.
    pub volumes: Vec<Forecast>,
}
