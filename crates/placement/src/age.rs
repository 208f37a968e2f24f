//! Time as the policy counts it: in blocks that hosts use, never in seconds.
//!
//! A **tick** is a 32nd of the fast tier's blocks. Ages are measured in ticks, and grouped the coarser
//! the older they are: a doubling has four groups.

/// Ticks in which hosts use as many blocks as the fast tier has.
pub(crate) const TICKS_PER_FILL: u32 = 32;
/// An extent that was not used for this many ticks counts as never used: 16 times the fast tier.
pub(crate) const FORGOTTEN: u16 = 16 * TICKS_PER_FILL as u16;
/// Groups of ages.
pub(crate) const GROUPS: usize = 33;

/// Ticks are kept in 12 bits.
const MASK: u16 = 0xfff;

/// The number of a tick; it wraps at 4,096.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tick(pub u16);

impl Tick {
    pub(crate) fn next(self) -> Self {
        Self((self.0 + 1) & MASK)
    }

    /// Ticks since `then`, as long as it is less than 4,096 ticks ago.
    pub(crate) fn since(self, then: Self) -> u16 {
        self.0.wrapping_sub(then.0) & MASK
    }
}

/// The group of an age in ticks.
#[inline]
pub(crate) fn group(age: u16) -> usize {
    match age {
        0..8 => usize::from(age),
        FORGOTTEN.. => GROUPS - 1,
        _ => {
            let doubling = age.ilog2();
            (8 + 4 * (doubling - 3) + u32::from(age >> (doubling - 2) & 3)) as usize
        }
    }
}

/// Ticks that a group spans.
#[inline]
pub(crate) fn width(group: usize) -> f32 {
    match group {
        0..8 => 1.0,
        _ => (1u32 << ((group - 8) / 4 + 1)) as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_each_other_and_span_all_ages() {
        let mut seen = [0.0; GROUPS];
        for age in 0..FORGOTTEN {
            seen[group(age)] += 1.0;
            assert!(group(age + 1) - group(age) <= 1);
        }
        let widths: Vec<f32> = (0..GROUPS - 1).map(width).collect();
        assert_eq!(seen[..GROUPS - 1], widths);
    }

    #[test]
    fn ages_are_right_across_the_wrap() {
        assert_eq!(Tick(3).since(Tick(4_090)), 9);
        assert_eq!(Tick(4_095).next(), Tick(0));
    }
}
