//! Divides the latency of a volume's I/Os among the stations that they pass. All parts are
//! nanoseconds spent by all I/Os of a second together; divided by the I/Os they are means. Read time
//! by tier is measured for the last minutes, and estimated for the past: a read from a tier takes as
//! long as its drives do, and what remains is waiting.

use super::evidence::{Evidence, Load, TierLoad};

/// Time by station, in nanoseconds a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Split {
    /// Waiting at the gate for the volume's own maximum.
    pub limit: f64,
    /// Waiting at the gate for others.
    pub share: f64,
    /// Reads by drives of the slow tier.
    pub slow_drives: f64,
    /// Reads waiting for the slow tier.
    pub slow_queue: f64,
    /// Reads from the fast tier, with their queue.
    pub fast: f64,
    /// Writes by drives.
    pub written: f64,
    /// Writes waiting.
    pub write_queue: f64,
    /// Reads from RAM, and what the engine does itself.
    pub engine: f64,
}

impl Split {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.limit
            + self.share
            + self.slow_drives
            + self.slow_queue
            + self.fast
            + self.written
            + self.write_queue
            + self.engine
    }
}

/// Nanoseconds a second that I/Os in flight mean (Little's law).
fn waiting(number: Option<f64>) -> f64 {
    number.unwrap_or(0.0) * 1e9
}

fn drive_ns(tier: Option<&TierLoad>, of: fn(&TierLoad) -> f64) -> f64 {
    tier.map_or(0.0, of)
}

/// The reads of a volume: slow drives, slow queue, fast tier, engine.
fn reads(evidence: &Evidence, load: &Load) -> [f64; 4] {
    let all = load.reads * load.read_ns;
    let slow_ns = drive_ns(evidence.slow.as_ref(), |tier| tier.read_ns);
    let fast_ns = drive_ns(evidence.fast.as_ref(), |tier| tier.read_ns);
    if let Some(sources) = &evidence.sources {
        let (slow, fast, ram) = (sources.slow.0, sources.fast.0, sources.ram.0);
        // Runs of one read overlap: their sum can exceed what hosts waited.
        let sum = (slow + fast + ram).max(sources.read_ns);
        if sum > 0.0 {
            let drives = (sources.slow.1 * slow_ns).min(slow) / sum * all;
            let [slow, fast, ram] = [slow, fast, ram].map(|part| part / sum * all);
            // Neither is counted while a read waits for data that another one is fetching.
            let rest = all - slow - fast - ram;
            return match slow > 0.0 {
                true => [drives, slow - drives + rest, fast, ram],
                false => [drives, 0.0, fast, ram + rest],
            };
        }
    }
    let [_, from_fast, from_slow, _] = load.shares();
    let slow = (load.reads * from_slow * slow_ns).min(all);
    let fast = (load.reads * from_fast * fast_ns).min(all - slow);
    let rest = all - slow - fast;
    match (from_slow > 0.0, from_fast > 0.0) {
        (true, _) => [slow, rest, fast, 0.0],
        (false, true) => [0.0, 0.0, fast + rest, 0.0],
        (false, false) => [0.0, 0.0, 0.0, rest],
    }
}

/// The time of a volume's I/Os by station.
pub fn split(evidence: &Evidence, load: &Load) -> Split {
    let [slow_drives, slow_queue, fast, engine] = reads(evidence, load);
    let all_writes = load.writes * load.write_ns;
    let drive = drive_ns(evidence.written(), |tier| tier.write_ns);
    let written = (load.writes * drive).min(all_writes);
    Split {
        limit: waiting(load.limit_wait),
        share: waiting(load.share_wait),
        slow_drives,
        slow_queue,
        fast,
        written,
        write_queue: all_writes - written,
        engine,
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Sources;
    use super::*;

    #[test]
    fn time_in_which_a_read_waits_for_another_one_belongs_to_the_slow_tier() {
        let load = Load {
            reads: 100.0,
            read_ns: 4e6,
            ..Load::default()
        };
        let measured = |slow| Evidence {
            sources: Some(Sources {
                ram: (1e6, 10.0),
                fast: (3e6, 60.0),
                slow: (slow, 30.0),
                read_ns: 400e6,
            }),
            slow: Some(TierLoad {
                read_ns: 4e6,
                ..TierLoad::default()
            }),
            ..Evidence::default()
        };
        let of = split(&measured(150e6), &load);
        assert_eq!((of.engine, of.fast), (1e6, 3e6));
        assert_eq!((of.slow_drives, of.slow_queue), (120e6, 276e6));
        let of = split(&measured(0.0), &load);
        assert_eq!(
            (of.engine, of.slow_drives, of.slow_queue),
            (397e6, 0.0, 0.0)
        );
    }
}
