//! Snapshot schedules: when snapshots are due, and which have expired. Pure: history and clocks are
//! passed in.

use units::Utc;

const DAY: u64 = 86_400;
/// Origin of due times: the Monday three days before 1970, so that weekly snapshots fall on
/// Mondays.
const ORIGIN_S: u64 = 3 * DAY;
/// Minimum distance of attempts: half the interval, but at most this many seconds, by the monotonic
/// clock.
const APART_S: u64 = 600;

/// Clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clocks {
    /// Seconds since 1970 by the host's clock, which may jump.
    pub now_s: u64,
    /// Seconds of a monotonic clock.
    pub up_s: u64,
}

/// Interval and retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotRule {
    /// Interval in seconds, above 0.
    pub every_s: u64,
    /// Snapshots to keep per volume.
    pub keep: usize,
}

/// History of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    /// Time of the last snapshot, or of the schedule's creation: seconds since 1970.
    pub last_s: u64,
    /// Last attempt since the daemon's start.
    pub tried: Option<Clocks>,
}

/// Whether a snapshot is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Not before this time, in seconds since 1970.
    At(u64),
    /// Due now.
    Now {
        /// Number of earlier due times without a snapshot.
        missed: u64,
        /// The first of these: seconds since 1970.
        missed_since_s: u64,
    },
}

/// A snapshot taken by a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenSnapshot {
    /// Its name.
    pub name: String,
    /// It cannot be deleted: it is held, cloned or exported.
    pub in_use: bool,
}

impl SnapshotRule {
    /// Number of the interval that contains a time.
    fn interval(&self, time_s: u64) -> u64 {
        time_s.saturating_add(ORIGIN_S) / self.every_s.max(1)
    }

    /// Start of an interval.
    fn begin(&self, interval: u64) -> u64 {
        let since_origin = interval.saturating_mul(self.every_s);
        since_origin.saturating_sub(ORIGIN_S)
    }

    /// Whether a snapshot is due: if none was taken or attempted in the current interval. A missed
    /// snapshot is taken at any time of its interval; of several only the last.
    ///
    /// After a clock was set back by more than an interval, a snapshot is taken and counting
    /// restarts; a smaller step back is waited out.
    pub fn due(&self, past: &Past, now: Clocks) -> Due {
        let (here, last) = (self.interval(now.now_s), self.interval(past.last_s));
        let went_back = past.last_s.saturating_sub(now.now_s) > self.every_s;
        let tried_here = past
            .tried
            .is_some_and(|tried| self.interval(tried.now_s) == here);
        if tried_here || (here <= last && !went_back) {
            let from = if went_back { here } else { here.max(last) };
            return Due::At(self.begin(from.saturating_add(1)));
        }
        let apart = (self.every_s / 2).min(APART_S);
        let since_tried = past
            .tried
            .map_or(apart, |tried| now.up_s.saturating_sub(tried.up_s));
        if since_tried < apart {
            return Due::At(now.now_s.saturating_add(apart - since_tried));
        }
        let missed = here.saturating_sub(last).saturating_sub(1);
        Due::Now {
            missed,
            missed_since_s: self.begin(last.saturating_add(1)),
        }
    }

    /// Names of the expired snapshots of a volume, given all that the schedule took in order.
    /// Snapshots in use are neither deleted nor counted.
    pub fn expired(&self, taken: &[TakenSnapshot]) -> Vec<String> {
        let free = taken.iter().filter(|taken| !taken.in_use);
        let surplus = free.clone().count().saturating_sub(self.keep);
        free.take(surplus).map(|taken| taken.name.clone()).collect()
    }
}

/// Name of the snapshot taken now; names sort chronologically.
pub fn snapshot_name(schedule: &str, now_s: u64) -> String {
    let Utc {
        year,
        month,
        day,
        hour,
        minute,
        second,
    } = Utc::from_unix(now_s);
    format!("{schedule}-{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}Z")
}
