//! Numbers and memory of a session's commands, which all of its connections share (RFC 7143, section 4.2.2.1).

use crate::pdu::is_before;
use std::cell::Cell;

/// Memory of what commands read, in bytes; one command always goes on.
const HELD_MAX: u64 = 16 << 20;

/// The window of commands.
pub(crate) struct Window {
    /// The next number of a command (ExpCmdSN).
    next: Cell<u32>,
    /// Commands that have a place.
    in_use: Cell<u32>,
    /// Bytes of what commands have read and are to read.
    held: Cell<u64>,
    depth: u32,
}

impl Window {
    /// `next` is the number that the first command has; `depth` commands have a place.
    pub(crate) fn new(next: u32, depth: u32) -> Self {
        Self {
            next: Cell::new(next),
            in_use: Cell::new(0),
            held: Cell::new(0),
            depth,
        }
    }

    /// The next number of a command (ExpCmdSN).
    pub(crate) fn next(&self) -> u32 {
        self.next.get()
    }

    /// The last number of a command that is taken (MaxCmdSN).
    pub(crate) fn last(&self) -> u32 {
        let free = self.depth.saturating_sub(self.in_use.get());
        self.next.get().wrapping_add(free).wrapping_sub(1)
    }

    /// Whether a number is one of those that may come now.
    pub(crate) fn contains(&self, number: u32) -> bool {
        !is_before(number, self.next.get()) && !is_before(self.last(), number)
    }

    /// The next number has come.
    pub(crate) fn advance(&self) {
        self.next.set(self.next.get().wrapping_add(1));
    }

    /// A command takes its place, until it is answered.
    pub(crate) fn begin_command(&self) {
        self.in_use.set(self.in_use.get() + 1);
    }

    /// The place of a command is free.
    pub(crate) fn end_command(&self) {
        self.in_use.set(self.in_use.get() - 1);
    }

    /// Takes memory for what a command reads; false when there is none now.
    pub(crate) fn hold(&self, bytes: u64) -> bool {
        let held = self.held.get();
        let has = held == 0 || held + bytes <= HELD_MAX;
        if has {
            self.held.set(held + bytes);
        }
        has
    }

    /// Gives memory back.
    pub(crate) fn free(&self, bytes: u64) {
        self.held.set(self.held.get() - bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_closes_with_commands_that_run_and_never_goes_back() {
        let window = Window::new(u32::MAX, 2);
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
    fn one_command_always_has_its_memory() {
        let window = Window::new(1, 2);
        assert!(window.hold(2 * HELD_MAX) && !window.hold(1));
        window.free(2 * HELD_MAX);
        assert!(window.hold(HELD_MAX) && !window.hold(1));
    }
}
