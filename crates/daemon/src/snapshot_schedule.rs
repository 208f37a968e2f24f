//! When snapshots are taken by themselves, and which of them go: decided from what was and from
//! clocks that are given, without looking at anything.

use units::Utc;

const DAY: u64 = 86_400;
/// Due times are counted from a Monday, three days before 1970, so that weeks begin as people's do.
const ORIGIN_S: u64 = 3 * DAY;
/// Two tries of a schedule are apart by half its interval, or by this many seconds when that is
/// less, whatever the clock of the host says meanwhile.
const APART_S: u64 = 600;

/// What time it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clocks {
    /// Seconds since 1970, as the host says; it may jump.
    pub now_s: u64,
    /// Seconds since some moment, by a clock that only goes forward.
    pub up_s: u64,
}

/// How often snapshots are taken and how many are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotRule {
    /// From one due time to the next, in seconds, above 0.
    pub every_s: u64,
    /// Snapshots that are kept of each volume.
    pub keep: usize,
}

/// What the next due time depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    /// When the last one was taken, or since when the schedule counts: seconds since 1970.
    pub last_s: u64,
    /// When one was tried last since the daemon started.
    pub tried: Option<Clocks>,
}

/// Whether a snapshot is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Not before this, in seconds since 1970.
    At(u64),
    /// It is to be taken.
    Now {
        /// Due times before this one for which none was taken.
        missed: u64,
        /// The first of them: seconds since 1970.
        missed_since_s: u64,
    },
}

/// A snapshot that a schedule took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Its name.
    pub name: String,
    /// It cannot be deleted: it is held, cloned from or exported.
    pub in_use: bool,
}

impl SnapshotRule {
    /// Number of the interval that a second lies in.
    fn interval(&self, time_s: u64) -> u64 {
        time_s.saturating_add(ORIGIN_S) / self.every_s.max(1)
    }

    /// First second of an interval.
    fn begin(&self, interval: u64) -> u64 {
        let since_origin = interval.saturating_mul(self.every_s);
        since_origin.saturating_sub(ORIGIN_S)
    }

    /// Whether one is due: when none was taken yet in the interval that it is now, nor tried. One
    /// that was missed is taken at any time of its interval; of several only the last.
    ///
    /// A clock that went back by more than an interval begins to count anew, with a snapshot; one
    /// that went back by less is waited for.
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

    /// Names of those that are to be deleted of a volume, of all that the schedule took of it in the
    /// order of taking. Those in use stay, and do not count as kept.
    pub fn expired(&self, taken: &[Taken]) -> Vec<String> {
        let free = taken.iter().filter(|taken| !taken.in_use);
        let surplus = free.clone().count().saturating_sub(self.keep);
        free.take(surplus).map(|taken| taken.name.clone()).collect()
    }
}

/// Name of the snapshot that a schedule takes now: names sort as the times do.
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
