//! How a shard's time is shared among the volumes that are busy.
//!
//! Everyone gets their minimum, and of the rest a part by weight. Where the minimums do not fit, each keeps a hundredth of
//! its own, and volumes without one a hundredth of everything; then level 1 gets its minimums, then level 2, and so on:
//! the first level that does not fit is scaled down, and those after it have nothing beyond their hundredth.

use units::mutation::{Mutation, is_on};

/// Part of its minimum that a volume keeps whatever others were promised.
const KEPT: u64 = 100;
/// Part of everything that these hundredths have together at most: levels count in the rest, however many volumes there are.
const KEPT_MOST: u64 = 4;

/// Demand of a busy volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Service level, 1 to 5.
    pub level: u8,
    /// Its minimum, in nanoseconds of the shard's time a second; 0: none.
    pub floor: u64,
    /// Part in what is left over, at least 1.
    pub weight: u32,
}

/// Shares of `capacity` nanoseconds a second, one for each claim, at least 1 each.
pub fn shares(claims: &[Claim], capacity: u64) -> Vec<u64> {
    let floors: u128 = claims.iter().map(|claim| u128::from(claim.floor)).sum();
    let mut shares: Vec<u64> = match floors <= u128::from(capacity) {
        true => claims.iter().map(|claim| claim.floor).collect(),
        false => scaled(claims, capacity),
    };
    let given: u64 = shares.iter().sum();
    let spare = capacity.saturating_sub(given);
    let mut leaves = claims
        .iter()
        .map(|claim| u64::from(claim.weight))
        .sum::<u64>();
    if floors > u128::from(capacity) {
        // What is left is for those that have no minimum.
        leaves = (claims.iter())
            .filter(|claim| claim.floor == 0)
            .map(|claim| u64::from(claim.weight))
            .sum();
    }
    for (share, claim) in shares.iter_mut().zip(claims) {
        if leaves > 0 && (claim.floor == 0 || floors <= u128::from(capacity)) {
            let part = u128::from(spare) * u128::from(claim.weight) / u128::from(leaves);
            *share += part as u64;
        }
        *share = (*share).max(1);
    }
    shares
}

/// The feasible part of the minimums; a hundredth of the capacity is left to volumes without one, if any.
fn scaled(claims: &[Claim], capacity: u64) -> Vec<u64> {
    let others = claims.iter().any(|claim| claim.floor == 0);
    let room = capacity - if others { capacity / KEPT } else { 0 };
    let kept: u128 = claims
        .iter()
        .map(|claim| u128::from(claim.floor / KEPT))
        .sum();
    // Only beyond a hundred times the capacity.
    let scale = |part: u64, of: u128, room: u64| match of <= u128::from(room) {
        true => part,
        false => (u128::from(part) * u128::from(room) / of.max(1)) as u64,
    };
    let mut shares: Vec<u64> = claims
        .iter()
        .map(|claim| match is_on(Mutation::QosNothingKept) {
            true => 0,
            false => scale(claim.floor / KEPT, kept, room / KEPT_MOST),
        })
        .collect();
    let mut left = room.saturating_sub(shares.iter().sum());
    for level in format::QOS_LEVELS {
        let is_of = |claim: &Claim| claim.level == level || is_on(Mutation::QosLevelsFlat);
        let more = |claim: &Claim, share: u64| match is_of(claim) {
            true => claim.floor.saturating_sub(share),
            false => 0,
        };
        let wanted = claims.iter().zip(&shares);
        let wanted: u128 = wanted
            .map(|(claim, share)| u128::from(more(claim, *share)))
            .sum();
        let room = left;
        for (share, claim) in shares.iter_mut().zip(claims) {
            let given = scale(more(claim, *share), wanted, room);
            *share += given;
            left = left.saturating_sub(given);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(level: u8, floor: u64) -> Claim {
        Claim {
            level,
            floor,
            weight: 100,
        }
    }

    #[test]
    fn everyone_has_the_minimum_and_a_part_of_the_rest_by_weight() {
        let mut claims = [claim(1, 400), claim(5, 100), claim(5, 0)];
        assert_eq!(shares(&claims, 1100), [600, 300, 200]);
        claims[2].weight = 400;
        assert_eq!(shares(&claims, 1100), [500, 200, 400]);
        assert_eq!(shares(&[], 1000), [] as [u64; 0]);
        assert_eq!(shares(&[claim(3, 0)], 1000), [1000]);
    }

    #[test]
    fn levels_lose_their_minimum_from_the_last_to_the_first() {
        // 150 % of the capacity: three levels of half of it each.
        let claims = [claim(5, 5000), claim(1, 5000), claim(3, 5000)];
        assert_eq!(shares(&claims, 10_000), [50, 5000, 4950]);
        let claims: Vec<_> = (1..=5).map(|level| claim(level, 3000)).collect();
        assert_eq!(shares(&claims, 10_000), [3000, 3000, 3000, 970, 30]);
        // Two of one level share what is left.
        let claims = [claim(2, 6000), claim(1, 6000), claim(2, 6000)];
        assert_eq!(shares(&claims, 10_000), [2000, 6000, 2000]);
    }

    #[test]
    fn nobody_is_below_a_hundredth_however_much_was_promised() {
        let claims = [claim(1, 50_000), claim(5, 20_000), claim(4, 0)];
        let got = shares(&claims, 10_000);
        assert_eq!(got, [9700, 200, 100]);
        let claims: Vec<_> = (0..40).map(|at| claim(at % 5 + 1, 1_000_000)).collect();
        let got = shares(&claims, 1000);
        // The hundredths are ten thousand of a thousand: all of them together have a fourth of it, and level 1 the rest.
        let (first, last): (Vec<_>, Vec<_>) =
            claims.iter().zip(&got).partition(|of| of.0.level == 1);
        assert!(first.iter().all(|of| *of.1 == 101), "{got:?}");
        assert!(last.iter().all(|of| *of.1 == 6), "{got:?}");
    }

    #[test]
    fn shares_never_exceed_what_there_is_by_more_than_one_each() {
        let mut seed = 7u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..2000 {
            let claims: Vec<_> = (0..next(9))
                .map(|_| Claim {
                    level: next(5) as u8 + 1,
                    floor: next(3) * next(2_000_000_000),
                    weight: next(10_000) as u32 + 1,
                })
                .collect();
            let capacity = 1 + next(2_000_000_000);
            let got = shares(&claims, capacity);
            let sum: u64 = got.iter().sum();
            assert!(sum <= capacity + claims.len() as u64, "{claims:?} {got:?}");
            let floors: u64 = claims.iter().map(|claim| claim.floor).sum();
            for (claim, share) in claims.iter().zip(&got) {
                assert!(floors > capacity || *share >= claim.floor);
                assert!(*share >= 1);
            }
        }
    }
}
