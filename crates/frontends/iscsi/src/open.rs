//! The sessions of one loop, so that other threads can have them asked to log out.

use crate::session::Session;
use reactor::Remote;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

thread_local! {
    static OPEN: RefCell<BTreeMap<u64, Weak<Session>>> = const { RefCell::new(BTreeMap::new()) };
}

/// A session's place in its loop's list; left when dropped.
pub(crate) struct Open(u64);

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|open| open.remove(&self.0));
    }
}

/// Enters a session under its number, which no other one has.
pub(crate) fn enter(number: u64, session: &Rc<Session>) -> Open {
    OPEN.with_borrow_mut(|open| open.insert(number, Rc::downgrade(session)));
    Open(number)
}

/// Has a session of a loop ask its initiator to log out.
pub(crate) fn ask_to_log_out(remote: &Remote, number: u64) {
    remote.run(move |_| {
        let session = OPEN.with_borrow(|open| open.get(&number).and_then(Weak::upgrade));
        if let Some(session) = session {
            session.ask_to_log_out();
        }
    });
}
