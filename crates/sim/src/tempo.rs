//! When a drive answers: each in a way of its own, so that requests end in other orders than they began, late, or many at
//! one moment.

use crate::random::Random;
use reactor::Handle;

/// Longest that a request takes by this, in nanoseconds: far less than the engine waits.
const LONGEST_NS: u64 = 10_000_000_000;

/// How a drive's answers are in time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Tempo {
    /// Each after a time of its own.
    #[default]
    Even,
    /// All at the next multiple of this many nanoseconds.
    Bursts(u64),
    /// One in four takes this many times as long.
    Late(u64),
    /// A stall of this many nanoseconds, then the usual speed for as long.
    Pauses(u64),
}

impl Tempo {
    /// Some way; disks are slower in all of this.
    pub fn any(random: &mut Random, slow: bool) -> Self {
        let times = if slow { 20 } else { 1 };
        let ns = random.within(1..=40) * 50_000 * times;
        match random.below(5) {
            0 | 1 => Self::Even,
            2 => Self::Bursts(ns),
            3 => Self::Late(random.within(2..=40)),
            _ => Self::Pauses(4 * ns),
        }
    }

    /// How long a request takes that would take `delay` nanoseconds by itself.
    pub fn delay(self, handle: &Handle, delay: u64) -> u64 {
        let now = handle.now_ns();
        let end = now + delay;
        let late = match self {
            Self::Even => return delay,
            Self::Bursts(ns) => end.next_multiple_of(ns) - now,
            Self::Late(times) if handle.random().is_multiple_of(4) => delay * times,
            Self::Late(_) => delay,
            Self::Pauses(ns) if (end / ns).is_multiple_of(2) => end.next_multiple_of(ns) - now,
            Self::Pauses(_) => delay,
        };
        late.min(LONGEST_NS).max(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::Clock;

    struct At(u64);

    impl Clock for At {
        fn now_ns(&self) -> u64 {
            self.0
        }
    }

    fn delay(tempo: Tempo, now: u64, delay: u64) -> u64 {
        let handle = Handle::simulated(Box::new(At(now)), 1).expect("an event descriptor");
        tempo.delay(&handle, delay)
    }

    #[test]
    fn answers_come_together_or_after_a_pause() {
        assert_eq!(delay(Tempo::Even, 1005, 10), 10);
        assert_eq!(delay(Tempo::Bursts(100), 1005, 10), 95);
        assert_eq!(delay(Tempo::Bursts(100), 1005, 96), 195);
        assert_eq!(
            delay(Tempo::Pauses(100), 1005, 10),
            95,
            "a pause until 1100"
        );
        assert_eq!(delay(Tempo::Pauses(100), 1105, 10), 10);
        assert_eq!(delay(Tempo::Bursts(u64::MAX), 5, 10), LONGEST_NS);
    }
}
