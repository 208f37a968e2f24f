//! Polling policy: how long a ring is polled before its task sleeps.

use std::sync::atomic::{AtomicU8, Ordering};

/// Polling time after progress.
const LOOK_NS: u64 = 20_000;
/// A kick this soon after the last progress would have been seen by polling: waking up takes time
/// as well.
const SOON_NS: u64 = 2 * LOOK_NS;
/// Number of consecutive requests, each arriving with none in flight, that indicate a guest at
/// queue depth 1.
const ALONE: u8 = 16;
/// Otherwise, idle polling is limited to this fraction of the time that requests took, so that its
/// cost stays proportional to the load.
const WORK: u64 = 16;
/// After this many simultaneous requests the ring is polled for as long as they took: a guest that
/// has received all responses is about to send as many again.
const MANY: usize = 16;
/// Maximum typical wait for a drive during which the CPU polls.
const SHORT_NS: u64 = 150_000;
/// Weight of a wait in the moving average.
const USUAL: u64 = 8;
/// From this queue depth on, the longest recent wait counts. Completions tend to arrive in bursts:
/// sleeping through the gap between two of them would delay the responses of the next one, all
/// together, and so preserve the bursts.
const DEEP: usize = 4;
/// Decay of the longest wait: this fraction at each wait.
const FORGET: u64 = 32;
/// Maximum such wait during which the CPU polls.
const LONG_NS: u64 = 300_000;

/// Policy of an export's rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polling {
    /// Poll while requests are in flight and waits are typically short; sleep otherwise, after a
    /// last poll if the next request is likely to follow immediately.
    Adaptive,
    /// Always poll.
    Busy,
    /// Never poll.
    Interrupt,
}

impl Polling {
    pub(crate) const ALL: [(&'static str, Self); 3] = [
        ("adaptive", Self::Adaptive),
        ("busy", Self::Busy),
        ("interrupt", Self::Interrupt),
    ];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(name, polling)| (name == text).then_some(polling))
    }
}

/// The policy of all rings of an export; it may change while they are served.
pub(crate) struct Choice(AtomicU8);

impl Choice {
    pub(crate) fn new(polling: Polling) -> Self {
        Self(AtomicU8::new(polling as u8))
    }

    pub(crate) fn set(&self, polling: Polling) {
        self.0.store(polling as u8, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Polling {
        Polling::ALL[usize::from(self.0.load(Ordering::Relaxed))].1
    }
}

/// Observed waits of a ring.
#[derive(Default)]
pub(crate) struct Looking {
    progressed_ns: u64,
    /// Moving average of the time between progress while requests were in flight.
    usual_ns: u64,
    /// Longest recent wait.
    longest_ns: u64,
    /// The last sleep without requests in flight was too short to be worthwhile.
    eager: bool,
    /// Consecutive requests that arrived with none in flight, at most [`ALONE`].
    alone: u8,
    /// Maximum simultaneous arrivals among the present or last requests.
    came: usize,
    /// Remaining allowance for idle polling.
    saved_ns: u64,
    /// End of the last sleep or idle polling.
    idle_until_ns: u64,
}

impl Looking {
    /// There was progress; `waited`: requests were in flight before.
    pub(crate) fn progressed(&mut self, now_ns: u64, waited: bool) {
        let took = now_ns.saturating_sub(self.progressed_ns);
        if waited && self.progressed_ns > 0 {
            self.usual_ns = self.usual_ns - self.usual_ns / USUAL + took / USUAL;
            self.longest_ns = took.max(self.longest_ns - self.longest_ns / FORGET);
        }
        let worked = now_ns.saturating_sub(self.progressed_ns.max(self.idle_until_ns));
        let part = if self.came >= MANY { 1 } else { WORK };
        self.saved_ns = (self.saved_ns + worked / part).min(LOOK_NS);
        self.progressed_ns = now_ns;
    }

    /// `count` requests arrived; `waited`: others were in flight.
    pub(crate) fn came(&mut self, count: usize, waited: bool) {
        self.came = count.max(self.came * usize::from(waited));
        match count {
            0 => {}
            1 if !waited => self.alone = (self.alone + 1).min(ALONE),
            _ => self.alone = 0,
        }
    }

    /// A sleep has ended; `rested`: no request was in flight.
    pub(crate) fn woke(&mut self, now_ns: u64, rested: bool) {
        self.eager = rested && now_ns < self.progressed_ns.saturating_add(SOON_NS);
        self.idle_until_ns = now_ns;
    }

    /// Whether to poll once more before sleeping, with `under_way` requests in flight.
    pub(crate) fn goes_on(&mut self, polling: Polling, now_ns: u64, under_way: usize) -> bool {
        if under_way == 0 {
            let looked = now_ns.saturating_sub(self.progressed_ns.max(self.idle_until_ns));
            self.saved_ns = self.saved_ns.saturating_sub(looked);
            self.idle_until_ns = now_ns;
        }
        let window = match polling {
            Polling::Busy => return true,
            Polling::Interrupt => return false,
            Polling::Adaptive if under_way == 0 && !self.looks_idly() => return false,
            Polling::Adaptive if under_way >= DEEP && self.longest_ns <= LONG_NS => {
                LOOK_NS + 2 * self.longest_ns
            }
            Polling::Adaptive if under_way > 0 && self.usual_ns <= SHORT_NS => {
                LOOK_NS + 2 * self.usual_ns
            }
            Polling::Adaptive => LOOK_NS,
        };
        now_ns < self.progressed_ns.saturating_add(window)
    }

    /// Whether to poll without requests in flight.
    fn looks_idly(&self) -> bool {
        self.eager && (self.alone == ALONE || self.saved_ns > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    /// When a ring whose requests have this latency stops polling, in microseconds.
    fn looks_for(took_us: u64, under_way: usize) -> u64 {
        let (mut looking, mut now) = (Looking::default(), US);
        for _ in 0..100 {
            looking.progressed(now, true);
            now += took_us * US;
        }
        looking.progressed(now, true);
        let on = |us: &u64| looking.goes_on(Polling::Adaptive, now + us * US, under_way);
        (0..10_000).take_while(on).count() as u64
    }

    #[test]
    fn short_waits_are_polled_and_long_ones_slept() {
        let fast = looks_for(70, 1);
        assert!((100..200).contains(&fast), "{fast}");
        assert_eq!(looks_for(4_000, 1), 20, "a disk");
        assert_eq!(looks_for(70, 0), 0, "nothing in flight");
    }

    #[test]
    fn gap_between_bursts_is_polled() {
        let looks = |gap_us: u64, under_way: usize| {
            let (mut looking, mut now) = (Looking::default(), US);
            for _ in 0..100 {
                for took in [gap_us, 5, 5, 5, 5, 5, 5, 5] {
                    now += took * US;
                    looking.progressed(now, true);
                }
            }
            looking.goes_on(Polling::Adaptive, now + (gap_us - 1) * US, under_way)
        };
        assert!(looks(190, 30));
        assert!(!looks(190, 3), "few requests");
        assert!(!looks(4_000, 30), "a disk");
    }

    /// A ring that was woken soon after its last response, with `count` requests arriving at a
    /// time.
    fn woken_soon(count: usize) -> Looking {
        let mut looking = Looking::default();
        for _ in 0..ALONE {
            looking.came(count, false);
        }
        looking.woke(96 * US, true);
        looking.progressed(100 * US, false);
        looking.woke(110 * US, true);
        looking
    }

    #[test]
    fn fast_guest_is_polled_for() {
        let mut looking = woken_soon(1);
        assert!(looking.goes_on(Polling::Adaptive, 119 * US, 0));
        assert!(!looking.goes_on(Polling::Adaptive, 120 * US, 0));
        looking.woke(500 * US, true);
        assert!(!looking.goes_on(Polling::Adaptive, 101 * US, 0));

        let mut looking = woken_soon(1);
        looking.came(1, true);
        looking.goes_on(Polling::Adaptive, 111 * US, 0);
        let looks = looking.goes_on(Polling::Adaptive, 112 * US, 0);
        assert!(!looks, "not at queue depth 1");
    }

    /// Tenths of a microsecond of idle polling in a hundred rounds with nine of work each, after
    /// `count` simultaneous requests.
    fn looked_tenths(count: usize) -> u64 {
        const TENTH: u64 = US / 10;
        let mut looking = woken_soon(2);
        let mut looked = 0;
        for round in 2..102 {
            let began = 100 * round * US;
            looking.woke(began - 9 * US, true);
            looking.came(count, false);
            looking.progressed(began, false);
            looking.woke(began, true);
            let on = |tenth: &u64| looking.goes_on(Polling::Adaptive, began + tenth * TENTH, 0);
            looked += (1..900).take_while(on).count() as u64;
        }
        looked
    }

    #[test]
    fn idle_polling_is_a_fraction_of_the_work() {
        let worked = 9 * 10 * 100;
        for (count, most) in [(2, worked / WORK), (MANY, worked)] {
            let looked = looked_tenths(count);
            assert!((most / 2..=most).contains(&looked), "{count}: {looked}");
        }
    }

    #[test]
    fn busy_always_polls_and_interrupt_never() {
        let mut looking = Looking::default();
        for under_way in [0, 1, 32] {
            assert!(looking.goes_on(Polling::Busy, u64::MAX, under_way));
            assert!(!looking.goes_on(Polling::Interrupt, 0, under_way));
        }
        let choice = Choice::new(Polling::Adaptive);
        for (name, polling) in Polling::ALL {
            assert_eq!(Polling::parse(name), Some(polling));
            choice.set(polling);
            assert_eq!(choice.get(), polling);
        }
        assert_eq!(Polling::parse("often"), None);
    }
}
