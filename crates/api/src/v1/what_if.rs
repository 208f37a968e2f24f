//! Forecasts for other sizes of the fast tier (docs/placement.md#what-if).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Forecast for one size of the fast tier.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ForecastPoint {
    /// Size in percent of the present fast tier, or of what the volume has on it.
    pub percent: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Hit ratio of LRU: share of accesses that do not wait for the slow tier, 0 to 1. Writes count
    /// as hits.
    pub lru_hits: f64,
    /// Hit ratio of the pool's placement policy; only for a pool, with half, the present and twice
    /// the size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<f64>,
    /// Mean latency of reads and writes in nanoseconds with that hit ratio (LRU's if it is the only
    /// one) and the recent read latency of each tier; absent while a tier has not been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<u64>,
}

/// Forecast for a pool or a volume, from recent I/O.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// Name of the volume; absent for the whole pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Accesses of 4 KiB blocks that the forecast is based on.
    pub uses: u64,
    /// Working set: bytes of distinct blocks that were accessed, approximately.
    pub used_bytes: u64,
    /// Forecasts by size, ascending.
    pub points: Vec<ForecastPoint>,
}

/// Forecasts for a pool and its volumes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// Recent read latency of the fast tier in nanoseconds; absent before the first read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_ns: Option<u64>,
    /// Recent read latency of the slow tier in nanoseconds; absent before the first read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_ns: Option<u64>,
    /// Forecast for the whole pool.
    pub pool: Forecast,
    /// Forecasts for volumes with recent I/O and data on the fast tier, by name.
    pub volumes: Vec<Forecast>,
}
