//! Who was slowed for whom: while operations of a tenant are held, others are served.
//!
//! At each tick the time for which a tenant's operations were held is attributed to those that were charged for most of the
//! shard's time meanwhile, in proportion to that. A tenant remembers a few of them by decayed sums: a newcomer takes the
//! place of the smallest, or wears that down (Misra and Gries 1982), so that a tenant for which it is held again and again is
//! among them, however many others there are. Time held for its own maximum is attributed to no other tenant.
//!
//! Leaves out: what operations wait for beneath the gate.

/// Tenants that are examined in a tick, and that a tenant remembers.
const RIVALS: usize = 4;
const REMEMBERED: usize = 8;
/// Part of a decayed sum that is forgotten with each window: half of it in about 350 of them.
const FORGET: u64 = 512;

/// Those that were charged for most in a tick, by their keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rivals {
    most: [(u32, u64); RIVALS],
    all_ns: u64,
}

impl Rivals {
    /// Of all that were charged, by key and nanoseconds.
    pub fn of(charged: impl Iterator<Item = (u32, u64)>) -> Self {
        let mut rivals = Self::default();
        for (key, ns) in charged {
            rivals.all_ns += ns;
            let at = rivals.most.iter().position(|known| known.1 < ns);
            if let Some(at) = at {
                rivals.most[at..].rotate_right(1);
                rivals.most[at] = (key, ns);
            }
        }
        rivals
    }

    /// Lays the time for which `key`, which was charged for `own_ns` itself, was held to the others.
    fn lay(&self, key: u32, own_ns: u64, held_ns: u64) -> impl Iterator<Item = (u32, u64)> {
        let others = self.all_ns.saturating_sub(own_ns);
        let charged = self.most.into_iter();
        let charged = charged.filter(move |(rival, ns)| *rival != key && *ns > 0);
        charged.map(move |(rival, ns)| {
            let part = u128::from(held_ns) * u128::from(ns) / u128::from(others.max(1));
            (rival, part as u64)
        })
    }
}

/// For whom a tenant was held recently, in decayed nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldFor {
    /// By their keys; those of 0 ns are free.
    whom: [(u32, u64); REMEMBERED],
    held_ns: u64,
}

impl HeldFor {
    /// The tenant of this key, which was charged for `own_ns`, was held for so long while others were served.
    pub fn note(&mut self, rivals: &Rivals, key: u32, own_ns: u64, held_ns: u64) {
        self.held_ns += held_ns;
        for (rival, ns) in rivals.lay(key, own_ns, held_ns) {
            let mut known = self.whom.iter_mut();
            let known = known.find(|(of, sum)| *of == rival && *sum > 0);
            if let Some((_, sum)) = known {
                *sum += ns;
                continue;
            }
            let least = self.whom.iter_mut().min_by_key(|(_, sum)| *sum);
            match least {
                Some(least) if least.1 < ns => *least = (rival, ns),
                Some(least) => least.1 -= ns,
                None => {}
            }
        }
    }

    /// A window has passed.
    pub fn forget(&mut self) {
        let less = |ns: u64| ns - ns.div_ceil(FORGET);
        self.held_ns = less(self.held_ns);
        self.whom.iter_mut().for_each(|(_, ns)| *ns = less(*ns));
    }

    /// The tenants that it was held for, largest first, with their shares of that time in millionths.
    pub fn whom(&self) -> Vec<(u32, u64)> {
        let mut whom: Vec<(u32, u64)> = self.whom.into_iter().filter(|of| of.1 > 0).collect();
        whom.sort_by_key(|(key, ns)| (std::cmp::Reverse(*ns), *key));
        for (_, ns) in &mut whom {
            let part = u128::from(*ns) * 1_000_000 / u128::from(self.held_ns.max(1));
            *ns = (part as u64).min(1_000_000);
        }
        whom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_time_is_laid_to_whom_was_served_in_proportion() {
        let rivals = Rivals::of([(1, 100), (2, 600), (3, 300), (9, 0)].into_iter());
        let mut held_for = HeldFor::default();
        held_for.note(&rivals, 1, 100, 9000);
        assert_eq!(held_for.whom(), [(2, 666_666), (3, 333_333)]);
        // Alone, it is not held for others.
        let mut alone = HeldFor::default();
        alone.note(&Rivals::of([(1, 100)].into_iter()), 1, 100, 9000);
        assert_eq!(alone.whom(), []);
    }

    #[test]
    fn few_of_very_many_are_looked_at_and_the_greatest_among_them() {
        let charged = (1..1000).map(|key| (key, u64::from(key)));
        let rivals = Rivals::of(charged);
        assert_eq!(rivals.most.map(|of| of.0), [999, 998, 997, 996]);
        assert_eq!(rivals.all_ns, 499_500);
    }

    #[test]
    fn whoever_it_is_held_for_again_and_again_is_remembered() {
        let mut held_for = HeldFor::default();
        for tick in 0..5000 {
            // Everyone is there once in a while, and one of them always.
            let passing = 100 + tick % 50;
            let rivals = Rivals::of([(7, 300), (passing, 700)].into_iter());
            held_for.note(&rivals, 1, 0, 20_000_000);
            if tick % 5 == 0 {
                held_for.forget();
            }
        }
        let whom = held_for.whom();
        assert!(whom.len() <= REMEMBERED);
        assert_eq!(whom[0].0, 7, "{whom:?}");
        assert!((200_000..=310_000).contains(&whom[0].1), "{whom:?}");
        (0..10_000).for_each(|_| held_for.forget());
        assert_eq!(held_for.whom(), []);
    }
}
