//! Read-ahead: what a miss reads in addition to the requested extent.
//!
//! A disk that has sought reads on for little. Which blocks around a miss are worth it the policy
//! learns: for each distance, and for each of a few scenes, how many of the blocks that came unasked were used
//! before they had to leave RAM. A stream, forwards or backwards, a dense region and lone misses are
//! scenes that turn out differently, and nothing has to be set for any of them.

use crate::hash::Random;

/// Farthest block that is read ahead, in blocks from what was requested: 384 KiB.
pub(crate) const REACH: u64 = 96;
/// Least share of the blocks like it that were used, for a block to be read ahead.
const WORTH: f32 = 0.03;
/// Share of the others that is read ahead nevertheless, to learn of them.
const TRIED: f32 = 0.03;
/// The same, of blocks of which little is known yet.
const TRIED_AT_FIRST: f32 = 0.3;
/// Minimum number of samples of a share.
const KNOWN: f32 = 50.0;
/// Counts beyond which both halve: what was long ago counts less.
const COUNT_MAX: f32 = 2000.0;

/// Distances are grouped by doublings, in each direction.
const DISTANCES: usize = 16;
const SCENES: usize = 8;

/// In place of a scene's number: the block came for another reason than its distance, and tells nothing of that.
pub(crate) const UNLEARNT: u8 = u8::MAX;

/// Statistics of the surroundings of a miss.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scene {
    /// The block before was used recently.
    pub before: bool,
    /// The block after was.
    pub after: bool,
    /// Other extents nearby were.
    pub dense: bool,
}

impl Scene {
    pub(crate) fn number(self) -> u8 {
        u8::from(self.before) | u8::from(self.after) << 1 | u8::from(self.dense) << 2
    }
}

#[derive(Clone, Copy)]
struct Share {
    used: f32,
    came: f32,
}

/// The outcome of blocks that were read ahead.
pub(crate) struct Ahead {
    shares: [Share; DISTANCES * SCENES * 2],
}

impl Ahead {
    pub(crate) fn new() -> Self {
        let unknown = Share {
            used: 0.5,
            came: 1.0,
        };
        Self {
            shares: [unknown; DISTANCES * SCENES * 2],
        }
    }

    /// Whether a block is worth to be read ahead, or at least to be tried. `distance`: to what was asked
    /// for, positive after it; `known`: it was used before.
    pub(crate) fn judge(
        &self,
        distance: i64,
        scene: u8,
        known: bool,
        random: &mut Random,
    ) -> Verdict {
        let Share { used, came } = self.shares[kind(distance, scene, known)];
        if used >= WORTH * came {
            return Verdict::Worth;
        }
        let tried = if came < KNOWN { TRIED_AT_FIRST } else { TRIED };
        match random.happens(tried) {
            true => Verdict::Tried,
            false => Verdict::Not,
        }
    }

    /// A block that came unasked leaves RAM.
    pub(crate) fn left(&mut self, distance: i64, scene: u8, known: bool, was_used: bool) {
        let share = &mut self.shares[kind(distance, scene, known)];
        share.came += 1.0;
        share.used += f32::from(u8::from(was_used));
        if share.came > COUNT_MAX {
            share.came /= 2.0;
            share.used /= 2.0;
        }
    }
}

/// Decision about a block near a miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Read it.
    Worth,
    /// Keep it if it is read anyway.
    Tried,
    /// Leave it.
    Not,
}

fn kind(distance: i64, scene: u8, known: bool) -> usize {
    let doubling = distance.unsigned_abs().max(1).ilog2().min(7) as usize;
    let side = if distance > 0 { 0 } else { DISTANCES / 2 };
    ((side + doubling) * SCENES + usize::from(scene)) * 2 + usize::from(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_unused_is_left_alone_and_still_tried_now_and_then() {
        let mut ahead = Ahead::new();
        let mut random = Random::new(1);
        (0..1_000).for_each(|_| ahead.left(-3, 2, false, false));
        let verdicts: Vec<_> = (0..1_000)
            .map(|_| ahead.judge(-3, 2, false, &mut random))
            .collect();
        let tried = verdicts.iter().filter(|it| **it == Verdict::Tried).count();
        assert!(!verdicts.contains(&Verdict::Worth));
        assert!((10..60).contains(&tried), "{tried}");
        assert_eq!(ahead.judge(3, 2, false, &mut random), Verdict::Worth);
        assert_eq!(ahead.judge(-3, 3, false, &mut random), Verdict::Worth);
    }

    #[test]
    fn a_few_that_are_used_are_worth_the_rest_and_habits_change() {
        let mut ahead = Ahead::new();
        let mut random = Random::new(1);
        (0..10_000).for_each(|block| ahead.left(5, 0, true, block % 15 == 0));
        assert_eq!(ahead.judge(5, 0, true, &mut random), Verdict::Worth);
        (0..10_000).for_each(|block| ahead.left(5, 0, true, block % 40 == 0));
        assert_ne!(ahead.judge(5, 0, true, &mut random), Verdict::Worth);
    }
}
