//! What a fast tier of another size would give (docs/placement.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What one size of the fast tier would give.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ForecastPoint {
    /// Percent of the fast tier of now, or of what a volume has of it now.
    pub percent: u64,
    /// That size in bytes.
    pub bytes: u64,
    /// The share of the uses that LRU would answer without the slow tier, 0 to 1; writes never wait for it.
    pub lru_hits: f64,
    /// The same by the pool's own policy: of a pool with half of the size, all of it and twice as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<f64>,
    /// Mean time of a read or write in nanoseconds, with that share (LRU's where there is no other) and what reads
    /// of each tier take of late; nothing when one of the tiers was not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<u64>,
}

/// What other sizes would give a pool or a volume, by the traffic of late.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// The volume; nothing: all of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Uses of 4 KiB blocks that this comes from.
    pub uses: u64,
    /// Bytes of the different blocks that were used, about.
    pub used_bytes: u64,
    /// The sizes, the smallest first.
    pub points: Vec<ForecastPoint>,
}

/// What other sizes of the fast tier would give a pool and its volumes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// What a read of the fast tier takes of late, in nanoseconds; nothing before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_ns: Option<u64>,
    /// The same of the slow tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_ns: Option<u64>,
    /// Of all that hosts do in the pool.
    pub pool: Forecast,
    /// Of each volume that was used of late and has something on the fast tier, by name.
    pub volumes: Vec<Forecast>,
}
