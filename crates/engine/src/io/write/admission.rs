//! Write admission: once space on the fast tier is short, hosts' writes take it about as fast as it is freed.
//!
//! Space is freed in bursts: demoted data is flushed, then a barrier ends, then reads. Hosts that take all of it at
//! once then stall until the next burst. So each write waits its turn, longer the less of the reserve is left;
//! writes of a higher level do not wait for turns of lower ones.

use qos::Due;
use units::mutation::{Mutation, is_on};

const SECOND: u64 = 1_000_000_000;
/// Time over which the rate is measured, in nanoseconds.
const WINDOW_NS: u64 = 500_000_000;
/// Rate of taking space relative to that of freeing it, in eighths: with the whole reserve left, and at least.
const MOST: u64 = 32;
const LEAST: u64 = 4;
/// The longest wait, in nanoseconds: after it a write takes free space, or waits for some.
const LONGEST_NS: u64 = 60_000_000;

/// The pace of one shard's writes.
#[derive(Default, Debug)]
pub(crate) struct Pacing {
    /// Slots freed since then.
    freed: u64,
    since_ns: u64,
    /// The recent rate, per second.
    rate: u64,
    /// Time of the next write's turn, by rank.
    next_ns: [u64; Due::RANKS],
    /// Slots below which room is short.
    pub reserve: u64,
}

impl Pacing {
    /// Slots were freed.
    pub fn freed(&mut self, now_ns: u64, slots: u64) {
        self.freed += slots;
        let time = now_ns.saturating_sub(self.since_ns);
        if time < WINDOW_NS {
            return;
        }
        let rate = u128::from(self.freed) * u128::from(SECOND) / u128::from(time);
        self.rate = self.rate.midpoint(rate as u64);
        (self.freed, self.since_ns) = (0, now_ns);
    }

    /// Whether writes wait their turn, with this number of free slots.
    pub fn is_short(&self, free: u64) -> bool {
        free < self.reserve && self.rate != 0
    }

    /// The delay of a write of a number of blocks and a priority, in nanoseconds, with a number of free slots, of which it
    /// leaves some to others. Writes of higher levels do not wait for lower ones, whose turns are delayed by them.
    pub fn wait_ns(&mut self, now_ns: u64, due: Due, blocks: u64, [free, kept]: [u64; 2]) -> u64 {
        if !self.is_short(free) {
            return 0;
        }
        let eighths = (MOST * free.saturating_sub(kept) / self.reserve).max(LEAST);
        let each = SECOND * 8 / (self.rate * eighths).max(1);
        let (latest, takes) = (now_ns + LONGEST_NS, each.saturating_mul(blocks));
        let rank = match is_on(Mutation::RoomUndue) {
            true => 0,
            false => due.rank(),
        };
        let begins = self.next_ns[rank].max(now_ns);
        for next_ns in &mut self.next_ns[rank..] {
            *next_ns = (*next_ns).max(now_ns).saturating_add(takes).min(latest);
        }
        begins.min(latest) - now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A tier of which 3,000 slots become free every 300 ms, and hosts that always have a number of waiting writes: the
    /// longest time in ms without any write, of ten seconds, and writes per second.
    fn longest_pause(paced: bool) -> (u64, u64) {
        let mut pacing = Pacing {
            reserve: 10_000,
            ..Pacing::default()
        };
        let (mut free, mut last, mut longest, mut done) = (10_000u64, 0, 0, 0);
        // When each of 128 that are outstanding may go.
        let mut waiting = vec![0u64; 128];
        for ms in 1..20_000u64 {
            let now = ms * MS;
            if ms % 300 == 0 {
                free += 3_000;
                pacing.freed(now, 3_000);
            }
            for until in &mut waiting {
                if *until > now || free == 0 {
                    continue;
                }
                free -= 1;
                if ms > 10_000 {
                    (longest, done) = (longest.max(ms - last), done + 1);
                }
                last = ms;
                *until = now + MS / 2;
                if paced {
                    *until += pacing.wait_ns(now, Due::NONE, 1, [free, 0]);
                }
            }
        }
        (longest, done / 10)
    }

    #[test]
    fn hosts_go_on_evenly_where_room_comes_in_bursts() {
        let (without, _) = longest_pause(false);
        let (with, rate) = longest_pause(true);
        assert!(without > 200, "{without} ms");
        assert!(with < 50, "{with} ms");
        assert!((9_000..11_000).contains(&rate), "{rate} writes a second");
    }

    #[test]
    fn nobody_waits_while_there_is_room_or_longer_than_a_moment() {
        let mut pacing = Pacing {
            reserve: 1_000,
            ..Pacing::default()
        };
        let wait_ns = |pacing: &mut Pacing, now, blocks, free| {
            pacing.wait_ns(now, Due::NONE, blocks, [free, 0])
        };
        assert_eq!(wait_ns(&mut pacing, 5, 1, 0), 0, "nothing is known yet");
        pacing.freed(SECOND, 10);
        assert_eq!(wait_ns(&mut pacing, SECOND, 1, 1_000), 0);
        for _ in 0..1_000 {
            assert!(wait_ns(&mut pacing, SECOND, 256, 10) <= LONGEST_NS);
        }
    }

    #[test]
    fn who_was_promised_more_does_not_wait_for_those_who_flood() {
        let mut pacing = Pacing {
            reserve: 1_000,
            ..Pacing::default()
        };
        pacing.freed(SECOND, 10_000);
        let [first, third] = [1, 3].map(|level| Due::new(level, u64::MAX));
        let mut wait = |due| pacing.wait_ns(SECOND, due, 1, [500, 0]);
        for _ in 0..1_000 {
            wait(third);
        }
        assert_eq!([wait(third), wait(first)], [LONGEST_NS, 0]);
        // It waits for itself, and they wait for it.
        assert!(wait(first) > 0 && wait(first) < LONGEST_NS);
        let mut pacing = Pacing {
            reserve: 1_000,
            ..Pacing::default()
        };
        pacing.freed(SECOND, 10_000);
        pacing.wait_ns(SECOND, first, 1, [500, 0]);
        assert!(pacing.wait_ns(SECOND, third, 1, [500, 0]) > 0);
    }
}
