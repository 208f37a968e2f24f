//! The sessions of one loop, so that other threads can reach them.

use crate::session::Session;
use reactor::Remote;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

thread_local! {
    static OPEN: RefCell<BTreeMap<u64, Weak<Session>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Enters a session of this loop under its number, which no other one has.
pub(crate) fn enter(number: u64, session: &Rc<Session>) {
    OPEN.with_borrow_mut(|open| open.insert(number, Rc::downgrade(session)));
}

/// Forgets a session.
pub(crate) fn forget(number: u64) {
    // At the end of its thread the list may be gone before the session.
    let _ = OPEN.try_with(|open| open.borrow_mut().remove(&number));
}

/// The session of a number, if it is there and on this loop.
pub(crate) fn find(number: u64) -> Option<Rc<Session>> {
    OPEN.with_borrow(|open| open.get(&number).and_then(Weak::upgrade))
}

/// Has a session of a loop do something, soon; nothing happens when it has ended.
pub(crate) fn with(remote: &Remote, number: u64, job: impl FnOnce(&Rc<Session>) + Send + 'static) {
    remote.run(move |_| {
        if let Some(session) = find(number) {
            job(&session);
        }
    });
}
