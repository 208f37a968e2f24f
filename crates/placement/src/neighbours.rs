//! Whether blocks that were not requested should be kept with the requested ones.
//!
//! Some extents are used in the same few blocks every time; of others every use takes different ones,
//! and a copy of half the extent is half as good as one of all. The policy learns which: of extents
//! that left RAM, by kind, how often at the next use the blocks that had been left untouched were requested,
//! beside those that had been touched.

/// Kinds of extents.
const KINDS: usize = 48;
/// Probability classes: blocks that were used before, and others.
const CHANCES: usize = 2 * KINDS;
/// Counts beyond which all of a kind halve.
const COUNT_MAX: f32 = 5000.0;

#[derive(Clone, Copy)]
struct Counts {
    untouched: f32,
    untouched_used: f32,
    touched: f32,
    touched_used: f32,
}

/// Statistics.
pub(crate) struct Neighbours {
    counts: [Counts; CHANCES],
}

impl Neighbours {
    pub(crate) fn new() -> Self {
        let at_first = |used: f32| Counts {
            untouched: 1.0,
            untouched_used: used,
            touched: 1.0,
            touched_used: 0.2,
        };
        let mut counts = [at_first(0.2); CHANCES];
        counts[KINDS..].fill(at_first(0.02));
        Self { counts }
    }

    /// The chance that an untouched block is requested, in chances of a touched one, at most 1.
    /// `known`: it was used before.
    pub(crate) fn chance(&self, kind: u8, known: bool) -> f32 {
        let counts = &self.counts[place(kind, known)];
        let untouched = counts.untouched_used / counts.untouched;
        let touched = counts.touched_used / counts.touched;
        (untouched / touched.max(0.001)).min(1.0)
    }

    /// An extent of this kind is used again for the first time since it left RAM: what for, and what
    /// had been untouched and touched then. `known` as in [`Neighbours::chance`], for all untouched ones.
    pub(crate) fn learn(
        &mut self,
        (kind, known): (u8, bool),
        used: u16,
        untouched: u16,
        touched: u16,
    ) {
        if untouched == 0 {
            return;
        }
        let ones = |mask: u16| mask.count_ones() as f32;
        let counts = &mut self.counts[place(kind, known)];
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

fn place(kind: u8, known: bool) -> usize {
    usize::from(kind) + if known { 0 } else { KINDS }
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
        (0..100).for_each(|_| neighbours.learn((5, true), 0b11, !0b11, 0b11));
        assert!(neighbours.chance(5, true) < 0.01);
    }

    #[test]
    fn extents_that_are_used_all_over_keep_everything() {
        let mut neighbours = Neighbours::new();
        for block in 0..160 {
            neighbours.learn((5, false), 1 << (block % 16), !0b11, 0b11);
        }
        assert!(neighbours.chance(5, false) > 0.9);
    }

    #[test]
    fn at_first_blocks_that_were_used_before_are_believed_in_and_others_are_not() {
        let neighbours = Neighbours::new();
        assert_eq!(neighbours.chance(7, true), 1.0);
        assert!(neighbours.chance(7, false) <= 0.11);
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
