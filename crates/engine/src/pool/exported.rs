//! Numbers by which shards know exports, so that operations are counted by export where they are executed.
//!
//! A number is an export's for as long as the pool has the export or a volume is open by it. Then shards forget
//! what they counted, and another export may get it.

use crate::control::look::ExportLook;
use crate::device::ExportNumber;
use crate::shard::ExportTotals;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

/// Most exports of a pool that are counted.
const EXPORTS_MAX: u16 = 4096;

/// The exports that were opened, by name: their numbers, and whether a volume is open by them.
#[derive(Default)]
pub(crate) struct Exported(BTreeMap<String, (u16, Weak<ExportNumber>)>);

impl Exported {
    /// The number of an export that is opened; `None` if there are too many.
    pub fn number(&mut self, name: &str) -> Option<Arc<ExportNumber>> {
        let known = self.0.get(name);
        if let Some(open) = known.and_then(|(_, open)| open.upgrade()) {
            return Some(open);
        }
        let number = match known {
            Some((number, _)) => *number,
            None => {
                let taken = self.numbers();
                (1..=EXPORTS_MAX).find(|number| !taken.contains(number))?
            }
        };
        let open = Arc::new(ExportNumber(number));
        let entry = (number, Arc::downgrade(&open));
        self.0.insert(name.to_owned(), entry);
        Some(open)
    }

    fn numbers(&self) -> BTreeSet<u16> {
        self.0.values().map(|(number, _)| *number).collect()
    }

    /// The numbers of exports that the pool has, or that are open.
    pub fn kept(&self, is_kept: impl Fn(&str) -> bool) -> BTreeSet<u16> {
        let all = self.0.iter();
        all.filter(|(name, (_, open))| open.strong_count() > 0 || is_kept(name))
            .map(|(_, (number, _))| *number)
            .collect()
    }

    /// Frees the numbers of the others, now that all shards have forgotten them.
    pub fn forget(&mut self, kept: &BTreeSet<u16>) {
        let is_there =
            |number: &u16, open: &Weak<_>| kept.contains(number) || open.strong_count() > 0;
        self.0.retain(|_, (number, open)| is_there(number, open));
    }

    /// Statistics of each, from the shards.
    pub fn looks(&self, shards: &[BTreeMap<u16, ExportTotals>]) -> Vec<ExportLook> {
        let look = |(name, (number, _)): (&String, &(u16, _))| {
            let mut look = ExportLook {
                name: name.clone(),
                ..ExportLook::default()
            };
            let parts = shards.iter().filter_map(|shard| shard.get(number));
            parts.for_each(|part| {
                super::status::add(&mut look.counters, &part.counters);
                look.spread.add(&part.spread);
            });
            look
        };
        self.0.iter().map(look).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_exports_until_that_is_gone_and_closed() {
        let mut exported = Exported::default();
        let (one, two) = (exported.number("a").unwrap(), exported.number("b").unwrap());
        assert_eq!((one.0, two.0), (1, 2));
        assert!(Arc::ptr_eq(&one, &exported.number("a").unwrap()));
        drop((one, two));
        // Closed, and still an export: its next session continues.
        let kept = exported.kept(|name| name == "a");
        assert!(kept.iter().eq(&[1]));
        exported.forget(&kept);
        assert_eq!(exported.number("a").unwrap().0, 1);
        // Deleted, but still open.
        let three = exported.number("c").unwrap();
        assert_eq!(three.0, 2);
        let kept = exported.kept(|_| false);
        assert!(kept.iter().eq(&[2]));
        exported.forget(&kept);
        assert_eq!(exported.number("d").unwrap().0, 1);
        // Opened while the shards forgot old numbers: its counters are its own.
        let kept = exported.kept(|_| false);
        let four = exported.number("e").unwrap();
        exported.forget(&kept);
        assert!(Arc::ptr_eq(&four, &exported.number("e").unwrap()));
        assert_eq!(exported.looks(&[]).len(), 2);
    }

    #[test]
    fn exports_that_are_counted_are_bounded() {
        let mut exported = Exported::default();
        for number in 1..=EXPORTS_MAX {
            assert!(exported.number(&number.to_string()).is_some());
        }
        assert!(exported.number("one more").is_none());
        assert!(exported.number("7").is_some());
    }
}
