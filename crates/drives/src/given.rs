//! Drives that the program itself makes, a simulation say, and names for the calling thread.

use crate::OpenDrive;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Opens a drive: each time a handle of its own.
pub type Opener = Rc<dyn Fn() -> Arc<dyn OpenDrive>>;

thread_local! {
    static GIVEN: RefCell<BTreeMap<String, Opener>> = const { RefCell::new(BTreeMap::new()) };
    static NUMBERS: RefCell<BTreeMap<String, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Gives `spec` a number on the calling thread, by which [`crate::identity`] knows the drive from its copies.
pub fn give_number(spec: &str, number: u64) {
    NUMBERS.with_borrow_mut(|numbers| numbers.insert(spec.to_owned(), number));
}

pub(crate) fn number_of(spec: &str) -> Option<u64> {
    NUMBERS.with_borrow(|numbers| numbers.get(spec).copied())
}

/// Makes [`crate::open`] use `opener` for `spec` on the calling thread, or forgets it.
pub fn give(spec: &str, opener: Option<Opener>) {
    GIVEN.with_borrow_mut(|given| match opener {
        Some(opener) => given.insert(spec.to_owned(), opener),
        None => given.remove(spec),
    });
}

pub(crate) fn find(spec: &str) -> Option<Arc<dyn OpenDrive>> {
    let opener = GIVEN.with_borrow(|given| given.get(spec).cloned());
    opener.map(|opener| opener())
}
