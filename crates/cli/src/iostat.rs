//! Load of a pool or volume, computed from two samples of its counters.

use api::v1::Counters;

/// Load between two samples of the counters.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Load {
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes read per second.
    pub read_bytes: f64,
    /// Bytes written per second.
    pub write_bytes: f64,
    /// Mean read latency, in milliseconds.
    pub read_ms: f64,
    /// Mean write latency, in milliseconds.
    pub write_ms: f64,
    /// Percentages of blocks read from RAM, the fast and the slow tier.
    pub shares: [f64; 3],
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Load {
    /// Load between two samples `seconds` apart. Counters that decreased (the pool was reopened)
    /// restart at zero.
    pub fn between(before: &Counters, after: &Counters, seconds: f64) -> Self {
        let went = |of: fn(&Counters) -> u64| {
            let (before, after) = (of(before), of(after));
            after.checked_sub(before).unwrap_or(after) as f64
        };
        let reads = went(|c| c.reads);
        let writes = went(|c| c.writes);
        let tiers = [
            went(|c| c.blocks_ram),
            went(|c| c.blocks_fast),
            went(|c| c.blocks_slow),
        ];
        let blocks = tiers.iter().sum::<f64>();
        Self {
            read_iops: ratio(reads, seconds),
            write_iops: ratio(writes, seconds),
            read_bytes: ratio(went(|c| c.read_bytes), seconds),
            write_bytes: ratio(went(|c| c.write_bytes), seconds),
            read_ms: ratio(went(|c| c.read_ns) / 1e6, reads),
            write_ms: ratio(went(|c| c.write_ns) / 1e6, writes),
            shares: tiers.map(|tier| 100.0 * ratio(tier, blocks)),
        }
    }
}

/// Header of the lines of [`load_line`].
pub const LOAD_HEAD: &str = "\
pool              read IOPS write IOPS  read MB/s write MB/s  read ms write ms  RAM%  fast%  slow%";

/// A load in one line, with decimal megabytes as in iostat.
pub fn load_line(pool: &str, load: &Load) -> String {
    format!(
        "{pool:<16} {:>10.0} {:>10.0} {:>10.1} {:>10.1} {:>8.3} {:>8.3} {:>5.1}  {:>5.1}  {:>5.1}",
        load.read_iops,
        load.write_iops,
        load.read_bytes / 1e6,
        load.write_bytes / 1e6,
        load.read_ms,
        load.write_ms,
        load.shares[0],
        load.shares[1],
        load.shares[2]
    )
}

/// Columns of a line of load without the shares by tier.
pub const LOAD_SHORT: usize = 78;

/// A line of load, or its head, without the shares by tier where the terminal is too narrow for
/// them.
pub fn fitting(line: &str, columns: Option<usize>) -> String {
    match columns.is_some_and(|columns| columns < LOAD_HEAD.len()) {
        true => line.chars().take(LOAD_SHORT).collect(),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_load_fits_80_columns_without_cut_figures() {
        assert!(LOAD_HEAD[LOAD_SHORT..].starts_with("  RAM%"));
        let line = load_line("tank", &Load::default());
        assert!(fitting(&line, Some(80)).ends_with(" 0.000"));
        assert_eq!(fitting(&line, Some(LOAD_HEAD.len())), line);
        assert_eq!(fitting(&line, None), line);
    }
}
