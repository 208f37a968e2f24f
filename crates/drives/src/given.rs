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
