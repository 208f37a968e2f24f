//! Measurements, and conclusions from them.

use super::postgres::Transactions;
use super::scene::{BACKUP, DATABASE, DESKTOPS, FLOOR_MS, MAIL};
use crate::tenants::{Attained, Outcome, WINDOW_NS, Window};
use serde::Serialize;

/// Windows of a second.
const SECOND: usize = (1_000_000_000 / WINDOW_NS) as usize;
/// Of a hundred windows, those in which policy 1 has to get its floor, and in which p99 has to be within its maximum.
pub const MET_PERCENT: f64 = 99.0;
/// Per cent of the transactions alone that a real database has to have in the storm with policies.
pub const TRANSACTIONS_PERCENT: f64 = 95.0;
/// Of a hundred windows without policies, those in which it has to be below its floor for the storm to be one.
pub const UNMET_PERCENT: f64 = 50.0;
/// The floor of policy 1 as built in, and the part of what the machine gives the database alone where that is less.
const FLOOR_IOPS: f64 = 75_000.0;
const FLOOR_PART: f64 = 0.7;

/// Which part of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The database alone.
    Alone,
    /// Everybody, without policies.
    Without,
    /// Everybody, with policies.
    With,
}

impl Kind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Without => "storm without policies",
            Self::With => "storm with policies",
        }
    }
}

/// A part of the run.
pub struct Phase {
    /// Which.
    pub kind: Kind,
    /// Service attained by the tenants.
    pub outcome: Outcome,
    /// Windows that the daemon counted for the database's policy, and of them those in which it was met.
    pub counted: Option<(u64, u64)>,
    /// The machine's state meanwhile.
    pub machine: Machine,
}

/// The machine's state in a part of the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Machine {
    /// Cores that the daemon took.
    pub daemon_cores: f64,
    /// Cores that the clients took.
    pub client_cores: f64,
    /// Cores that everybody else took.
    pub other_cores: f64,
    /// Parts of the blocks read that came from RAM, the fast and the slow tier, from 0 to 1.
    pub served: [f64; 3],
}

/// In which windows policy 1 got what it was promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Judged {
    /// Windows in which it had work queued all the time.
    pub windows: usize,
    /// Per cent of them in which it got its floor.
    pub floor_percent: f64,
    /// Per cent of them in which p99 was within the maximum.
    pub latency_percent: f64,
}

impl Judged {
    /// Of these windows.
    pub fn of(windows: &[Window], floor_iops: f64, latency_ns: u64) -> Self {
        let queued: Vec<&Window> = windows.iter().filter(|window| window.queued).collect();
        let percent = |met: &dyn Fn(&Window) -> bool| {
            let count = queued.iter().filter(|window| met(window)).count();
            100.0 * count as f64 / queued.len().max(1) as f64
        };
        let a_window = floor_iops * WINDOW_NS as f64 / 1e9;
        Self {
            windows: queued.len(),
            floor_percent: percent(&|window| window.answered as f64 >= a_window),
            latency_percent: percent(&|window| window.answered > 0 && window.p99_ns <= latency_ns),
        }
    }

    /// Whether both hold in as many windows as they have to.
    pub fn is_met(&self) -> bool {
        self.windows > 0 && self.floor_percent >= MET_PERCENT && self.latency_percent >= MET_PERCENT
    }
}

/// Everything that was measured.
pub struct Storms {
    /// The machine, in a line.
    pub machine: String,
    /// Desktops.
    pub desktops: u32,
    /// Bytes that each reads to boot.
    pub boot_bytes: u64,
    /// Requests that the database has outstanding.
    pub depth: u16,
    /// The parts of the run, as far as it came.
    pub phases: Vec<Phase>,
    /// Results of a real database in each part, if there was one.
    pub transactions: Vec<(Kind, Transactions)>,
}

impl Storms {
    /// A part of the run, where it came to it.
    pub fn phase(&self, kind: Kind) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.kind == kind)
    }

    /// Results of a real database in a part of the run, in per cent of its result alone.
    pub fn transactions_percent(&self, kind: Kind) -> Option<f64> {
        let of = |wanted: Kind| {
            let found = self.transactions.iter().find(|(kind, _)| *kind == wanted);
            found.map(|(_, seen)| seen.per_second)
        };
        Some(100.0 * of(kind)? / of(Kind::Alone)?.max(f64::MIN_POSITIVE))
    }

    /// IOPS of the database alone.
    pub fn alone_iops(&self) -> f64 {
        let alone = self.phase(Kind::Alone);
        alone.map_or(0.0, |phase| phase.outcome.of(DATABASE).iops())
    }

    /// The floor of policy 1 in this run.
    pub fn floor_iops(&self) -> f64 {
        (self.alone_iops() * FLOOR_PART).min(FLOOR_IOPS).floor()
    }

    /// Whether policy 1 got what it was promised in a part of the run.
    pub fn judged(&self, phase: &Phase) -> Judged {
        let windows = phase.outcome.of(DATABASE).windows;
        Judged::of(&windows, self.floor_iops(), FLOOR_MS * 1_000_000)
    }
}

impl Phase {
    /// IOPS and bytes per second of all tenants together.
    pub fn total(&self) -> [f64; 2] {
        let tenants = &self.outcome.tenants;
        let iops = tenants.iter().map(Attained::iops).sum();
        [iops, tenants.iter().map(Attained::bytes_per_s).sum()]
    }

    /// The most IOPS of a second that desktops had.
    pub fn burst_iops(&self) -> u64 {
        let windows = self.outcome.of(DESKTOPS).windows;
        let seconds = windows.chunks_exact(SECOND);
        let sums = seconds.map(|second| second.iter().map(|window| window.answered).sum());
        sums.max().unwrap_or(0)
    }

    /// Desktops that had booted at the end.
    pub fn booted(&self, desktops: u32) -> u32 {
        let windows = self.outcome.of(DESKTOPS).windows;
        let starting = windows.last().map_or(desktops, |window| window.starting);
        desktops - starting.min(desktops)
    }

    /// Seconds until all desktops had booted; nothing when they had not at the end.
    pub fn boot_seconds(&self) -> Option<f64> {
        let windows = self.outcome.of(DESKTOPS).windows;
        let last = windows.iter().position(|window| window.starting == 0)?;
        Some((last + 1) as f64 * WINDOW_NS as f64 / 1e9)
    }
}

/// Name of a tenant in charts, by its policy in the storm with policies.
pub fn policy_name(tenant: &str) -> &'static str {
    match tenant {
        DATABASE => "database (policy 1)",
        MAIL => "mail (policy 2)",
        DESKTOPS => "desktops (level 3)",
        BACKUP => "backup (policy 5)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(answered: u64, p99_ns: u64, queued: bool) -> Window {
        Window {
            answered,
            p99_ns,
            queued,
            ..Window::default()
        }
    }

    #[test]
    fn only_windows_with_work_queued_are_judged_each_for_floor_and_latency() {
        let windows = [
            window(100, 1_000_000, true),
            window(99, 1_000_000, true),
            window(500, 11_000_000, true),
            window(0, 0, true),
            window(3, 1_000, false),
        ];
        let judged = Judged::of(&windows, 1000.0, 10_000_000);
        let expected = Judged {
            windows: 4,
            floor_percent: 50.0,
            latency_percent: 50.0,
        };
        assert_eq!(judged, expected);
        assert!(!judged.is_met() && !Judged::default().is_met());
        assert!(Judged::of(&windows[..1], 1000.0, 10_000_000).is_met());
    }

    #[test]
    fn a_storm_tells_its_bursts_and_when_all_have_booted() {
        let windows = (0..25).map(|number| Window {
            answered: if number < 10 { 300 } else { 100 },
            starting: 12_u32.saturating_sub(number),
            ..Window::default()
        });
        let desktops = Attained {
            name: DESKTOPS.to_owned(),
            windows: windows.collect(),
            ..Attained::default()
        };
        let mut phase = Phase {
            kind: Kind::With,
            outcome: Outcome {
                tenants: vec![desktops],
                interrupted: false,
            },
            counted: None,
            machine: Machine::default(),
        };
        assert_eq!((phase.burst_iops(), phase.booted(12)), (3_000, 12));
        assert_eq!(phase.boot_seconds(), Some(1.3));
        phase.outcome.tenants[0].windows.truncate(5);
        assert_eq!((phase.booted(12), phase.boot_seconds()), (4, None));
    }
}
