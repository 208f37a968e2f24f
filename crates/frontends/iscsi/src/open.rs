//! The sessions of a loop, for access from other threads.

use crate::session::Session;
use reactor::Remote;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

thread_local! {
    static OPEN: RefCell<BTreeMap<u64, Weak<Session>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Registers a session of this loop under its unique number.
pub(crate) fn enter(number: u64, session: &Rc<Session>) {
    OPEN.with_borrow_mut(|open| open.insert(number, Rc::downgrade(session)));
}

/// Removes a session.
pub(crate) fn forget(number: u64) {
    // The thread-local list may be destroyed before the session at thread exit.
    let _ = OPEN.try_with(|open| open.borrow_mut().remove(&number));
}

/// The session with a number, if it is on this loop.
pub(crate) fn find(number: u64) -> Option<Rc<Session>> {
    OPEN.with_borrow(|open| open.get(&number).and_then(Weak::upgrade))
}

/// Schedules a job for a session on its loop; without effect if it has ended.
pub(crate) fn with(remote: &Remote, number: u64, job: impl FnOnce(&Rc<Session>) + Send + 'static) {
    remote.run(move |_| {
        if let Some(session) = find(number) {
            job(&session);
        }
    });
}
