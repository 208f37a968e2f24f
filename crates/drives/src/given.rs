//! Drives that the program itself makes, a simulation say, and names for the calling thread.

use crate::OpenDrive;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

thread_local! {
    static GIVEN: RefCell<BTreeMap<String, Arc<dyn OpenDrive>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Makes [`crate::open`] return `drive` for `spec` on the calling thread, or forgets it.
pub fn give(spec: &str, drive: Option<Arc<dyn OpenDrive>>) {
    GIVEN.with_borrow_mut(|given| match drive {
        Some(drive) => given.insert(spec.to_owned(), drive),
        None => given.remove(spec),
    });
}

pub(crate) fn find(spec: &str) -> Option<Arc<dyn OpenDrive>> {
    GIVEN.with_borrow(|given| given.get(spec).cloned())
}
