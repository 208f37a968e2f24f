//! Recent read latency of a vdrive, and an estimate of that of the next read.
//!
//! A block that two vdrives have is read from the one that responds sooner ([`choose`]). A read is
//! answered after the work in flight before it and its own, times what a unit of work takes while
//! more is waiting (Little's law), and never sooner than a read that is alone. Of the vdrive that
//! is read as a rule the best that it did recently is believed, of the other one rather the worst:
//! a flush, or a lucky read of a disk, moves nothing. What is learned comes from the reads that
//! are made anyway. Of a vdrive that gets none the same block is read once more beside the host's
//! own read, rarely, and only where it might respond sooner: no host waits for that.
//!
//! Plain code: times are handed in, nanoseconds of one clock.

use units::EXTENT_BLOCKS;

/// Longest read that counts as a small one, in blocks.
const SMALL: usize = EXTENT_BLOCKS;
/// Work of a read whatever its length; each block adds one unit. A read of one block is `BASE + 1`.
const BASE: u64 = 15;
const READ: u64 = BASE + 1;
/// Small reads before a vdrive is known.
const KNOWN: u32 = 4;
/// Weight of a read in what is usual.
const USUAL: u64 = 16;
/// The best is that of the last one or two such times in which reads waited for each other.
const WINDOW_NS: u64 = 500_000_000;
/// Reads that make such a time, at least.
const WINDOW_READS: u32 = 16;
/// A vdrive without completions for this long will not have one immediately.
const SILENT_NS: u64 = 250_000_000;
/// Older values decay to this part with each new one.
const STALE_NS: u64 = 1_000_000_000;
const STALE_PART: u64 = 8;
/// Time from one read to learn to the next: of a vdrive that is not known yet; of one that is, this many
/// times what a read of it takes, within bounds.
const LEARN_NS: u64 = 10_000_000;
const PROBE_TIMES: u64 = 100;
const PROBE_NS: (u64, u64) = (STALE_NS, 5_000_000_000);
/// Time for which a vdrive is not chosen after a bad block.
const BARRED_NS: u64 = 10_000_000_000;

/// Time per small read under load, in nanoseconds. Small reads and large ones
/// have one each.
#[derive(Clone, Copy, Default, Debug)]
struct Pace {
    usual_ns: Option<u64>,
    /// The least of what was usual: in the last time in which reads waited, if there was one, and since.
    least_ns: (Option<u64>, u64),
    /// The time in progress: its begin, the reads that ended, those of them that had waited.
    since_ns: u64,
    ended: u32,
    waited: u32,
}

impl Pace {
    fn note(&mut self, now_ns: u64, took_ns: u64, waited: bool, stale: bool) {
        let usual = match self.usual_ns {
            None => took_ns,
            Some(usual) if stale => took_ns.max(usual / STALE_PART),
            Some(usual) => toward(usual, took_ns, USUAL),
        };
        let first = self.usual_ns.replace(usual).is_none();
        self.least_ns.1 = if first {
            usual
        } else {
            self.least_ns.1.min(usual)
        };
        self.ended += 1;
        self.waited += u32::from(waited);
        if now_ns.saturating_sub(self.since_ns) < WINDOW_NS || self.ended < WINDOW_READS {
            return;
        }
        // A vdrive of which little is asked shows nothing of what it can do.
        if self.waited >= self.ended / 2 {
            self.least_ns = (Some(self.least_ns.1), usual);
        }
        (self.since_ns, self.ended, self.waited) = (now_ns, 0, 0);
    }

    /// The recent best; none when reads never waited for each other.
    fn least_ns(&self) -> Option<u64> {
        self.least_ns.0.map(|before| before.min(self.least_ns.1))
    }
}

/// A read in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    since_ns: u64,
    blocks: usize,
    /// Work that had ended before.
    done: u64,
    alone: bool,
}

/// Statistics of one vdrive's reads.
#[derive(Default, Debug)]
pub(super) struct ReadCost {
    /// Work in flight.
    in_flight: u64,
    /// Work that has ended.
    done: u64,
    /// When a read last ended, or the first of those in flight began.
    moved_ns: u64,
    /// Small reads that were learned from, up to `KNOWN`.
    known: u32,
    /// Latency of a small read without load: upper and lower estimate.
    alone_ns: u64,
    swift_ns: u64,
    /// The least that the former was.
    best_ns: u64,
    paces: [Pace; 2],
    learned_ns: u64,
    probed_ns: u64,
    barred_until_ns: u64,
}

impl ReadCost {
    /// A read of a number of blocks begins.
    pub fn begin(&mut self, now_ns: u64, blocks: usize) -> Begun {
        let alone = self.in_flight == 0;
        if alone {
            self.moved_ns = now_ns;
        }
        self.in_flight += work(blocks);
        Begun {
            since_ns: now_ns,
            blocks,
            done: self.done,
            alone,
        }
    }

    /// Another drive is there: all that is kept is what is in flight.
    pub fn renew(&mut self) {
        *self = Self {
            in_flight: self.in_flight,
            done: self.done,
            moved_ns: self.moved_ns,
            ..Self::default()
        };
    }

    /// A read was cancelled: nothing is learned from it.
    pub fn forget(&mut self, begun: Begun) {
        self.in_flight -= work(begun.blocks);
    }

    /// A read has ended, and gave what it should or did not.
    pub fn end(&mut self, now_ns: u64, begun: Begun, right: bool) {
        let own = work(begun.blocks);
        self.in_flight -= own;
        self.moved_ns = now_ns;
        if !right {
            self.barred_until_ns = now_ns.saturating_add(BARRED_NS);
            return;
        }
        self.done += own;
        let took = now_ns.saturating_sub(begun.since_ns);
        let stale = now_ns.saturating_sub(self.learned_ns) >= STALE_NS;
        self.learned_ns = now_ns;
        if begun.blocks <= SMALL {
            self.learn_small(took, begun.alone, stale);
        }
        let ended = self.done - begun.done;
        let is_long = took > 2 * share(self.swift_ns, own);
        let pace = (u128::from(took) * u128::from(READ) / u128::from(ended)) as u64;
        self.paces[size(begun.blocks)].note(now_ns, pace, is_long && ended > own, stale);
    }

    fn learn_small(&mut self, took_ns: u64, alone: bool, stale: bool) {
        if self.known < KNOWN {
            let first = self.known == 0;
            self.known += 1;
            self.alone_ns = self.alone_ns.max(took_ns);
            self.swift_ns = if first {
                took_ns
            } else {
                self.swift_ns.min(took_ns)
            };
            self.best_ns = self.alone_ns;
            return;
        }
        let is_less = |than: u64| took_ns < than;
        self.alone_ns = match self.alone_ns {
            before if stale => took_ns.max(before / STALE_PART),
            before if is_less(before) => toward(before, took_ns, 32),
            before if alone => toward(before, took_ns, 4),
            before => before,
        };
        self.swift_ns = match self.swift_ns {
            before if is_less(before) && stale => took_ns,
            before if is_less(before) => toward(before, took_ns, 4),
            before if alone => toward(before, took_ns, 64),
            before => before,
        };
        self.best_ns = self.best_ns.min(self.alone_ns);
    }

    fn silence_ns(&self, now_ns: u64) -> u64 {
        match self.in_flight {
            0 => 0,
            _ => now_ns.saturating_sub(self.moved_ns),
        }
    }

    /// Optimistic estimate of a read's latency.
    fn soonest_ns(&self, now_ns: u64, blocks: usize) -> u64 {
        let pace = self.paces[size(blocks)].least_ns().unwrap_or(0);
        let queued = share(pace, self.in_flight + work(blocks));
        let silent = self.silence_ns(now_ns);
        let silent = if silent < SILENT_NS { 0 } else { silent };
        queued.max(self.swift_ns).max(silent)
    }

    /// Pessimistic estimate of a read's latency. `None` if unknown, or the last
    /// one failed.
    fn likely_ns(&self, now_ns: u64, blocks: usize) -> Option<u64> {
        if self.known < KNOWN || now_ns < self.barred_until_ns {
            return None;
        }
        let [small, large] = self.paces.map(|pace| pace.usual_ns);
        let pace = match size(blocks) {
            0 => small,
            _ => large.or(small),
        };
        let queued = share(pace?, self.in_flight + work(blocks));
        Some(queued.max(self.alone_ns).max(self.silence_ns(now_ns)))
    }

    /// Latency of a small read with a number of others in flight, in nanoseconds; 0 if unknown.
    pub fn in_turn_ns(&self, beside: u64) -> u64 {
        let pace = self.paces[0].usual_ns.unwrap_or(0);
        pace.saturating_mul(beside).max(self.alone_ns)
    }

    /// Whether one read more is to be made to learn, when the host's own takes `otherwise_ns`
    /// elsewhere.
    fn is_to_be_learned(&mut self, now_ns: u64, otherwise_ns: u64) -> bool {
        let known = self.known >= KNOWN;
        let (least, most) = PROBE_NS;
        let pause = match known {
            true => self.alone_ns.saturating_mul(PROBE_TIMES).clamp(least, most),
            false => LEARN_NS,
        };
        let since = now_ns.saturating_sub(self.learned_ns.max(self.probed_ns));
        let may_pay = !known || otherwise_ns > self.best_ns;
        let due = self.in_flight == 0 && now_ns >= self.barred_until_ns && since >= pause;
        if due && may_pay {
            self.probed_ns = now_ns;
        }
        due && may_pay
    }
}

/// Where a read goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    /// To the other vdrive, not to the one that is read as a rule.
    pub other: bool,
    /// The one that it does not go to is to be read as well, to learn what that takes.
    pub probe: bool,
}

/// Chooses between the usual vdrive (`as_a_rule`) and an `other` one for a read of a number of blocks.
pub(super) fn choose(
    as_a_rule: &mut ReadCost,
    other: &mut ReadCost,
    now_ns: u64,
    blocks: usize,
) -> Choice {
    let soonest = as_a_rule.soonest_ns(now_ns, blocks);
    let likely = other.likely_ns(now_ns, blocks);
    if let Some(likely) = likely.filter(|likely| *likely < soonest) {
        return Choice {
            other: true,
            probe: as_a_rule.is_to_be_learned(now_ns, likely),
        };
    }
    let is_loaded = soonest > 2 * share(as_a_rule.swift_ns, work(blocks));
    Choice {
        other: false,
        probe: is_loaded && other.is_to_be_learned(now_ns, soonest),
    }
}

fn work(blocks: usize) -> u64 {
    BASE + blocks as u64
}

fn size(blocks: usize) -> usize {
    usize::from(blocks > SMALL)
}

/// Cost of an amount of work, relative to a small read.
fn share(read_ns: u64, work: u64) -> u64 {
    (u128::from(read_ns) * u128::from(work) / u128::from(READ)) as u64
}

fn toward(before: u64, value: u64, weight: u64) -> u64 {
    match value > before {
        true => before + (value - before) / weight,
        false => before - (before - value) / weight,
    }
}

#[cfg(test)]
mod tests;
