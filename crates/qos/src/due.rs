//! The scheduling parameters of an operation by its volume's policy: its level and its deadline.

/// Bits of the level; the rest is the moment, in units of eight nanoseconds.
const LEVEL: u64 = 7;

/// Small enough to go with an operation wherever that waits: a level, and a deadline in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Due(u64);

impl Due {
    /// For an operation without a policy, and for work that no host waits for.
    pub const NONE: Self = Self(0);
    /// How many ranks there are.
    pub const RANKS: usize = 6;

    /// For a level, with the deadline `deadline_ns`.
    pub fn new(level: u8, deadline_ns: u64) -> Self {
        debug_assert!(format::QOS_LEVELS.contains(&level));
        Self(deadline_ns & !LEVEL | u64::from(level))
    }

    /// The level; none without a policy.
    pub fn level(self) -> Option<u8> {
        let level = (self.0 & LEVEL) as u8;
        (level != 0).then_some(level)
    }

    /// The level as a place in a row, the most important first; without a policy the last one.
    pub fn rank(self) -> usize {
        self.level()
            .map_or(Self::RANKS - 1, |level| usize::from(level) - 1)
    }

    /// By when it is to end, in nanoseconds of its loop's clock, rounded down by less than eight; nothing of what is
    /// due no time.
    pub fn deadline_ns(self) -> Option<u64> {
        let deadline_ns = self.0 & !LEVEL;
        (self.level().is_some() && deadline_ns != !LEVEL).then_some(deadline_ns)
    }
}

impl std::fmt::Debug for Due {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = to.debug_struct("Due");
        shown.field("level", &self.level());
        shown.field("deadline_ns", &self.deadline_ns()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_and_a_moment_are_kept_together() {
        let due = Due::new(3, 10_000_003);
        assert_eq!((due.level(), due.rank()), (Some(3), 2));
        assert_eq!(due.deadline_ns(), Some(10_000_000));
        assert_eq!(Due::new(1, u64::MAX).deadline_ns(), None);
        assert_eq!((Due::NONE.level(), Due::NONE.deadline_ns()), (None, None));
        assert_eq!(Due::NONE.rank(), Due::RANKS - 1);
        assert_eq!(Due::default(), Due::NONE);
    }
}
