//! Whether blocks that nobody asked for this time should stay with those that somebody did.
//!
//! Some extents are used in the same few blocks every time; of others every use takes different ones,
//! and a copy of half the extent is half as good as one of all. The policy learns which: of extents
//! that left RAM, by kind, how often at the next use the blocks that had been left untouched were asked for,
//! beside those that had been touched.

/// Kinds of extents.
const KINDS: usize = 48;
/// Counts beyond which all of a kind halve.
const COUNT_MAX: f32 = 5000.0;

#[derive(Clone, Copy)]
struct Counts {
    untouched: f32,
    untouched_used: f32,
    touched: f32,
    touched_used: f32,
}

/// What was learned.
pub(crate) struct Neighbours {
    counts: [Counts; KINDS],
}

impl Neighbours {
    pub(crate) fn new() -> Self {
        let unknown = Counts {
            untouched: 1.0,
            untouched_used: 0.2,
            touched: 1.0,
            touched_used: 0.2,
        };
        Self {
            counts: [unknown; KINDS],
        }
    }

    /// The chance that an untouched block is asked for, in chances of a touched one, at most 1.
    pub(crate) fn chance(&self, kind: u8) -> f32 {
        let counts = &self.counts[usize::from(kind)];
        let untouched = counts.untouched_used / counts.untouched;
        let touched = counts.touched_used / counts.touched;
        (untouched / touched.max(0.001)).min(1.0)
    }

    /// An extent of this kind is used again for the first time since it left RAM: what for, and what
    /// had been untouched and touched then.
    pub(crate) fn learn(&mut self, kind: u8, used: u16, untouched: u16, touched: u16) {
        let ones = |mask: u16| mask.count_ones() as f32;
        let counts = &mut self.counts[usize::from(kind)];
        counts.untouched += ones(untouched);
        counts.untouched_used += ones(untouched & used);
        counts.touched += ones(touched);
        counts.touched_used += ones(touched & used);
        if counts.untouched + counts.touched > COUNT_MAX {
            counts.untouched /= 2.0;
            counts.untouched_used /= 2.0;
            counts.touched /= 2.0;
            counts.touched_used /= 2.0;
        }
    }
}

/// The kind of an extent: by how often it was used, how much of it ever was, and how much is kept.
pub(crate) fn kind(uses: u8, ever_used: u16, kept: u16) -> u8 {
    let uses = uses.clamp(1, 8).ilog2() as u8;
    let ever_used = match ever_used.count_ones() {
        16 => 3,
        8..=15 => 2,
        4..=7 => 1,
        _ => 0,
    };
    let kept = match kept.count_ones() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    uses * 4 + ever_used + 16 * kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_that_are_used_in_the_same_blocks_keep_those_alone() {
        let mut neighbours = Neighbours::new();
        (0..100).for_each(|_| neighbours.learn(5, 0b11, !0b11, 0b11));
        assert!(neighbours.chance(5) < 0.01);
    }

    #[test]
    fn extents_that_are_used_all_over_keep_everything() {
        let mut neighbours = Neighbours::new();
        for block in 0..160 {
            neighbours.learn(5, 1 << (block % 16), !0b11, 0b11);
        }
        assert!(neighbours.chance(5) > 0.9);
        assert_eq!(Neighbours::new().chance(5), 1.0);
    }

    #[test]
    fn a_kind_is_one_of_the_table() {
        for uses in 0..=15 {
            for used in [0, 0xf, 0xff, u16::MAX] {
                assert!(usize::from(kind(uses, used, used)) < KINDS);
            }
        }
    }
}
