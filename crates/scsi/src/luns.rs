//! The units that one session reaches, by their numbers (SAM-5 4.7).

use crate::attention::Attention;
use crate::nexus::Nexus;
use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Highest number of a unit.
pub const LUN_MAX: u16 = 255;

/// A unit's number as it is in eight bytes: peripheral device or flat space addressing.
pub fn parse_lun(bytes: [u8; 8]) -> Option<u16> {
    let number = u16::from_be_bytes([bytes[0], bytes[1]]);
    let rest = bytes[2..].iter().any(|byte| *byte != 0);
    match (rest, number >> 14) {
        (false, 0) if number <= LUN_MAX => Some(number),
        (false, 1) => Some(number & 0x3fff),
        _ => None,
    }
}

/// The units that a session may access.
pub struct Luns(RefCell<BTreeMap<u16, Rc<Nexus>>>);

impl Luns {
    /// These units.
    pub fn new(nexuses: BTreeMap<u16, Rc<Nexus>>) -> Self {
        Self(RefCell::new(nexuses))
    }

    /// The nexus to a unit.
    pub fn get(&self, lun: u16) -> Option<Rc<Nexus>> {
        self.0.borrow().get(&lun).cloned()
    }

    /// The nexuses by number, while they do not change.
    pub(crate) fn borrow(&self) -> Ref<'_, BTreeMap<u16, Rc<Nexus>>> {
        self.0.borrow()
    }

    /// All nexuses.
    pub fn all(&self) -> Vec<Rc<Nexus>> {
        self.0.borrow().values().cloned().collect()
    }

    /// The numbers there are.
    pub fn numbers(&self) -> Vec<u16> {
        self.0.borrow().keys().copied().collect()
    }

    /// Takes over what is there now: `make` makes a nexus for each number that is new. Those that
    /// stay are notified. Returns those that are gone.
    pub fn change(&self, numbers: &[u16], make: impl Fn(u16) -> Option<Nexus>) -> Vec<Rc<Nexus>> {
        let before = self.numbers();
        if before == numbers {
            return Vec::new();
        }
        let mut nexuses = self.0.borrow_mut();
        let gone = nexuses.extract_if(.., |number, _| !numbers.contains(number));
        let gone = gone.map(|(_, nexus)| nexus).collect();
        for nexus in nexuses.values() {
            nexus.tell(Attention::LunsChanged);
        }
        for number in numbers {
            if !nexuses.contains_key(number)
                && let Some(nexus) = make(*number)
            {
                nexuses.insert(*number, Rc::new(nexus));
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_forms_and_no_other() {
        for (bytes, number) in [
            ([0, 0, 0, 0, 0, 0, 0, 0], Some(0)),
            ([0, 7, 0, 0, 0, 0, 0, 0], Some(7)),
            ([0x40, 7, 0, 0, 0, 0, 0, 0], Some(7)),
            ([0x41, 7, 0, 0, 0, 0, 0, 0], Some(0x107)),
            ([1, 7, 0, 0, 0, 0, 0, 0], None),
            ([0, 7, 0, 1, 0, 0, 0, 0], None),
            ([0xc1, 1, 0, 0, 0, 0, 0, 0], None),
        ] {
            assert_eq!(parse_lun(bytes), number, "{bytes:?}");
        }
    }
}
