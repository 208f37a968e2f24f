//! Write-back rate control: how much is demoted while hosts are busy: a share of what they request, larger as
//! the fast tier fills.

/// Blocks per second of one shard's hosts above which they count as busy.
const BUSY: u64 = 1000;
/// Chunks that are demoted together while hosts are busy: few, so that their own requests do not queue behind them.
pub const CHUNKS: usize = 4;
const SECOND: u64 = 1_000_000_000;
/// Minimum time over which hosts' rate is measured, in nanoseconds: there may be no request between two checks.
const WINDOW_NS: u64 = 50_000_000;

/// Write-back rate control of a shard.
#[derive(Debug, Default)]
pub struct WritebackRate {
    /// Blocks that hosts had requested at the last check.
    asked: u64,
    /// The same, and the time in nanoseconds, when the rate was last measured; and whether it was that of
    /// busy hosts.
    began: u64,
    began_ns: u64,
    busy: bool,
    /// Sixteenths of blocks that may be demoted; below zero after more has been demoted.
    may: i64,
}

/// The amount that may be demoted now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demote {
    /// Hosts are nearly idle, or space is needed: everything.
    All,
    /// A few chunks.
    Some,
    /// Nothing yet.
    Nothing,
}

/// Sixteenths of a block that may be demoted for each block that hosts request, with `not_demoted` of `all`
/// blocks of the fast tier being dirty.
fn share(not_demoted: u64, all: u64) -> Option<u64> {
    match not_demoted.saturating_mul(8) / all.max(1) {
        0..4 => Some(1),
        4..6 => Some(4),
        6 => Some(16),
        _ => None,
    }
}

impl WritebackRate {
    /// Updates the rate: `asked` blocks since the start; of the fast tier's `all` blocks `not_demoted` are
    /// dirty.
    pub fn look(&mut self, now_ns: u64, asked: u64, not_demoted: u64, all: u64) -> Demote {
        let new = asked.saturating_sub(self.asked);
        self.asked = asked;
        let time = now_ns.saturating_sub(self.began_ns);
        if time >= WINDOW_NS {
            let since = u128::from(asked.saturating_sub(self.began));
            self.busy = since * u128::from(SECOND) > u128::from(BUSY) * u128::from(time);
            (self.began, self.began_ns) = (asked, now_ns);
        }
        let share = share(not_demoted, all).filter(|_| self.busy);
        let Some(share) = share else {
            self.may = 0;
            return Demote::All;
        };
        let gained = i64::try_from(new.saturating_mul(share)).unwrap_or(i64::MAX);
        // Unused credit is not saved.
        self.may = self.may.min(0).saturating_add(gained);
        match self.may > 0 {
            true => Demote::Some,
            false => Demote::Nothing,
        }
    }

    /// Counts blocks that were demoted.
    pub fn demoted(&mut self, blocks: u64) {
        let sixteenths = i64::try_from(blocks.saturating_mul(16)).unwrap_or(i64::MAX);
        self.may = self.may.saturating_sub(sixteenths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = 1_000_000;

    /// Blocks that are demoted in ten seconds while hosts request `rate` blocks per second, with looks every
    /// tenth of a second at which a batch of 1,024 blocks is demoted if it may.
    fn in_ten_seconds(rate: u64, not_demoted: u64) -> u64 {
        let (mut writeback_rate, mut demoted) = (WritebackRate::default(), 0);
        for look in 1..=100 {
            if writeback_rate.look(look * SECOND / 10, look * rate / 10, not_demoted, ALL)
                != Demote::Nothing
            {
                writeback_rate.demoted(1024);
                demoted += 1024;
            }
        }
        demoted
    }

    #[test]
    fn a_sixteenth_is_demoted_while_hosts_are_busy_and_more_as_the_tier_fills() {
        let rate = 16_000;
        for (not_demoted, least, most) in [(0, 9, 12), (600_000, 38, 44), (800_000, 100, 100)] {
            let batches = in_ten_seconds(rate, not_demoted) / 1024;
            assert!(
                (least..=most).contains(&batches),
                "{not_demoted}: {batches}"
            );
        }
    }

    #[test]
    fn nothing_is_held_back_when_hosts_ask_for_little_or_space_is_needed() {
        let mut writeback_rate = WritebackRate::default();
        assert_eq!(writeback_rate.look(SECOND, 900, 0, ALL), Demote::All);
        assert_eq!(
            writeback_rate.look(2 * SECOND, 90_000, 0, ALL),
            Demote::Some
        );
        writeback_rate.demoted(1_000_000);
        assert_eq!(
            writeback_rate.look(3 * SECOND, 180_000, 0, ALL),
            Demote::Nothing
        );
        assert_eq!(
            writeback_rate.look(4 * SECOND, 270_000, 900_000, ALL),
            Demote::All
        );
        assert_eq!(
            writeback_rate.look(5 * SECOND, 360_000, 0, ALL),
            Demote::Some,
            "forgiven"
        );
    }

    #[test]
    fn two_looks_within_a_moment_forgive_nothing() {
        let mut writeback_rate = WritebackRate::default();
        assert_eq!(writeback_rate.look(SECOND, 90_000, 0, ALL), Demote::Some);
        writeback_rate.demoted(1_000_000);
        assert_eq!(
            writeback_rate.look(SECOND + 1000, 90_000, 0, ALL),
            Demote::Nothing
        );
        assert_eq!(
            writeback_rate.look(SECOND + 2000, 90_000, 0, ALL),
            Demote::Nothing
        );
        // For a tenth of a second hosts were idle.
        assert_eq!(
            writeback_rate.look(SECOND + SECOND / 10, 90_000, 0, ALL),
            Demote::All
        );
    }
}
