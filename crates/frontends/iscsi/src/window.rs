//! Command window and memory of a session, shared by its connections (RFC 7143, section 4.2.2.1).

use crate::pdu::is_before;
use reactor::Account;
use std::cell::Cell;
use std::rc::Rc;

/// Maximum memory of read data, in bytes; one command can always proceed.
const HELD_MAX: u64 = 16 << 20;

/// The command window.
pub(crate) struct Window {
    /// Next expected command number (ExpCmdSN).
    next: Cell<u32>,
    /// Occupied slots.
    in_use: Cell<u32>,
    /// Bytes of read data of commands.
    held: Cell<u64>,
    /// The account charged for all memory of the session's commands.
    pub account: Rc<Account>,
    /// Bytes reserved for the command that waited for them.
    reserved: Cell<usize>,
    depth: u32,
}

/// Why there is no memory for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Short {
    /// The session's other commands hold it.
    Own,
    /// Other sessions hold it, and must be waited for.
    Others,
}

impl Window {
    /// `next` is the number of the first command; `depth` is the number of slots.
    pub(crate) fn new(next: u32, depth: u32, account: Rc<Account>) -> Self {
        Self {
            next: Cell::new(next),
            in_use: Cell::new(0),
            held: Cell::new(0),
            account,
            reserved: Cell::new(0),
            depth,
        }
    }

    /// Next expected command number (ExpCmdSN).
    pub(crate) fn next(&self) -> u32 {
        self.next.get()
    }

    /// Last acceptable command number (MaxCmdSN).
    pub(crate) fn last(&self) -> u32 {
        let free = self.depth.saturating_sub(self.in_use.get());
        self.next.get().wrapping_add(free).wrapping_sub(1)
    }

    /// Whether a number is in the window.
    pub(crate) fn contains(&self, number: u32) -> bool {
        !is_before(number, self.next.get()) && !is_before(self.last(), number)
    }

    /// The next number has arrived.
    pub(crate) fn advance(&self) {
        self.next.set(self.next.get().wrapping_add(1));
    }

    /// Occupies a slot for a command until its response.
    pub(crate) fn begin_command(&self) {
        self.in_use.set(self.in_use.get() + 1);
    }

    /// Releases a slot.
    pub(crate) fn end_command(&self) {
        self.in_use.set(self.in_use.get() - 1);
    }

    /// Reserves memory for the read data of a command.
    ///
    /// # Errors
    /// Whom to wait for.
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), Short> {
        let held = self.held.get();
        if held > 0 && held + bytes > HELD_MAX {
            return Err(Short::Own);
        }
        if !self.lend(bytes) {
            return Err(Short::Others);
        }
        self.held.set(held + bytes);
        Ok(())
    }

    /// Charges memory to the account only, using reserved bytes first; false if the budgets are
    /// exhausted.
    pub(crate) fn lend(&self, bytes: u64) -> bool {
        let bytes = bytes as usize;
        let reserved = self.reserved.get();
        if bytes > 0 && reserved >= bytes {
            self.reserved.set(reserved - bytes);
            return true;
        }
        self.account.try_take(bytes)
    }

    /// Waits for memory, runs `then`, and releases what it has not used.
    pub(crate) async fn reserve(&self, bytes: u64, then: impl FnOnce()) {
        self.account.take(bytes as usize).await;
        self.reserved.set(bytes as usize);
        then();
        self.account.give(self.reserved.take());
    }

    /// Releases memory.
    pub(crate) fn free(&self, bytes: u64) {
        self.held.set(self.held.get() - bytes);
        self.account.give(bytes as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Rc<Account> {
        Rc::new(Account::new([]))
    }

    #[test]
    fn window_closes_with_running_commands_and_never_moves_back() {
        let window = Window::new(u32::MAX, 2, account());
        assert_eq!(window.last(), 0);
        assert!(window.contains(u32::MAX) && window.contains(0) && !window.contains(1));
        for last in [0, 0] {
            window.advance();
            window.begin_command();
            assert_eq!(window.last(), last);
        }
        assert!(!window.contains(1), "two run");
        window.end_command();
        assert!(window.contains(1) && !window.contains(0) && !window.contains(2));
    }

    #[test]
    fn one_command_always_has_memory() {
        let window = Window::new(1, 2, account());
        for bytes in [2 * HELD_MAX, HELD_MAX] {
            assert_eq!(window.hold(bytes), Ok(()));
            assert_eq!(window.hold(1), Err(Short::Own));
            window.free(bytes);
        }
    }

    #[test]
    fn memory_of_others_is_awaited() {
        let budget = reactor::Budget::new(1 << 20);
        let window = Window::new(1, 2, Rc::new(Account::new([budget.clone()])));
        let other = Account::new([budget.clone()]);
        assert!(other.try_take(1 << 20));
        assert_eq!(window.hold(1 << 20), Err(Short::Others));
        drop(other);
        assert_eq!(window.hold(1 << 20), Ok(()));
        assert!(!window.lend(1 << 20));
        window.free(1 << 20);
        assert_eq!(budget.used(), 0);
    }
}
