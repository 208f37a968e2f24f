//! What share of a sequence each policy would have had.

use crate::failure::Result;
use crate::interrupt;
use rivals::{Belady, Cache, Outcome, POLICIES};

/// Uses between looks at whether somebody wants it to end.
const LOOK: usize = 1 << 20;

/// What came of one policy.
pub struct Row {
    /// Its name in the table.
    pub name: &'static str,
    /// Uses of what was there.
    pub hits: u64,
    /// Entries taken in.
    pub admitted: u64,
    /// Uses in all.
    pub uses: u64,
}

/// The policies in the order of their table, and after them the bound that no policy exceeds.
///
/// # Errors
/// When a person ends it.
pub fn all(keys: &[u64], capacity: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for policy in POLICIES {
        rows.push(one(policy.name, (policy.make)(capacity).as_mut(), keys)?);
    }
    rows.push(one("belady", &mut Belady::new(capacity, keys), keys)?);
    Ok(rows)
}

fn one(name: &'static str, cache: &mut dyn Cache, keys: &[u64]) -> Result<Row> {
    let (mut hits, mut admitted) = (0, 0);
    let mut gone = Vec::new();
    for part in keys.chunks(LOOK) {
        interrupt::check()?;
        for key in part {
            match cache.access(*key, &mut gone) {
                Outcome::Hit => hits += 1,
                Outcome::Admitted => admitted += 1,
                Outcome::Bypassed => {}
            }
            gone.clear();
        }
    }
    Ok(Row {
        name,
        hits,
        admitted,
        uses: keys.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_defeats_lru_and_no_policy_beats_the_bound() {
        let keys: Vec<u64> = (0..10_000).map(|use_| use_ % 100).collect();
        let rows = all(&keys, 50).expect("nobody ends it");
        let hits = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.hits);
        assert_eq!(hits("lru"), Some(0));
        let bound = hits("belady").expect("it is the last row");
        assert!(bound > 4_800);
        assert!(
            rows.iter()
                .all(|row| row.hits <= bound && row.hits + row.admitted <= 10_000)
        );
        assert_eq!(rows.len(), POLICIES.len() + 1);
    }
}
