//! The result of a trace on a pool of one size, as a row of a table.

use super::player::Played;
use api::v1::{Counters, Forecast, Pool, Tier};
use units::{BLOCK, format_bytes};

/// Result of a trace on a pool of a size.
pub struct Row {
    /// Of RAM and the fast tier.
    pub fast_bytes: u64,
    pub played: Played,
    pub counters: Counters,
    /// Requests to the slow drives.
    pub slow: u64,
    /// The daemon's forecasts for half, once and twice its fast tier: hit rates.
    pub forecast: [Option<f64>; 3],
}

impl Row {
    /// Blocks of hosts, read or written, that waited for no slow drive, of all.
    fn hits(&self) -> f64 {
        let it = &self.counters;
        let written = it.write_bytes / BLOCK as u64;
        let all = it.blocks_ram + it.blocks_fast + it.blocks_slow + it.blocks_zero + written;
        1.0 - it.blocks_slow as f64 / all.max(1) as f64
    }

    /// Under [`HEAD`].
    pub fn cells(&self) -> Vec<String> {
        let (it, played) = (&self.counters, &self.played);
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let ms = |percentile| played.latencies.percentile(percentile) as f64 / 1e6;
        let migrated = (it.promoted_bytes + it.demoted_bytes) as f64;
        let mut cells = vec![
            format_bytes(self.fast_bytes),
            percent(self.hits()),
            format!("{:.3}", played.mean_ms()),
            format!("{:.3}", ms(50.0)),
            format!("{:.3}", ms(99.0)),
            format!("{:.2}", self.slow as f64 / played.requests.max(1) as f64),
            format!("{:.2}", migrated / played.bytes.max(1) as f64),
            format_bytes(it.promoted_bytes + it.write_bytes),
        ];
        let forecast = self.forecast.iter();
        cells.extend(forecast.map(|share| share.map_or("-".to_owned(), percent)));
        cells
    }
}

/// The columns' titles.
pub const HEAD: [&str; 11] = [
    "live: RAM and fast tier",
    "hits %",
    "mean ms",
    "p50 ms",
    "p99 ms",
    "slow I/Os an I/O",
    "migrated B/B",
    "flash written",
    "forecast: half %",
    "once %",
    "twice %",
];

/// Differences between two readings.
pub fn since(after: Counters, before: Counters) -> Counters {
    Counters {
        write_bytes: after.write_bytes - before.write_bytes,
        blocks_ram: after.blocks_ram - before.blocks_ram,
        blocks_fast: after.blocks_fast - before.blocks_fast,
        blocks_slow: after.blocks_slow - before.blocks_slow,
        blocks_zero: after.blocks_zero - before.blocks_zero,
        promoted_bytes: after.promoted_bytes - before.promoted_bytes,
        demoted_bytes: after.demoted_bytes - before.demoted_bytes,
        ..after
    }
}

/// Requests that the drives of the slow tier had.
pub fn slow_requests(pool: &Pool) -> u64 {
    let slow = pool
        .vdrives
        .iter()
        .filter(|vdrive| vdrive.tier == Tier::Slow);
    let drives = slow.flat_map(|vdrive| &vdrive.drives);
    drives.map(|drive| drive.reads + drive.writes).sum()
}

/// Forecast hit rate for a percentage of the fast tier.
pub fn forecast(pool: &Forecast, percent: u64) -> Option<f64> {
    let points = pool.points.iter();
    points.clone().find(|point| point.percent == percent)?.hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_what_no_slow_drive_had_are_hits() {
        let counters = Counters {
            write_bytes: 3 * BLOCK as u64,
            blocks_ram: 1,
            blocks_fast: 2,
            blocks_zero: 1,
            blocks_slow: 3,
            ..Counters::default()
        };
        let row = Row {
            fast_bytes: 1 << 30,
            played: Played::default(),
            counters,
            slow: 0,
            forecast: [None, Some(0.5), None],
        };
        assert!((row.hits() - 0.7).abs() < 1e-9);
        assert_eq!(row.cells().len(), HEAD.len());
    }
}
