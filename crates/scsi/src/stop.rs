//! Cancels a command whose result is no longer needed.

use std::cell::Cell;
use std::rc::Rc;

/// Set when a command was aborted, or its connection is gone: what is long stops at its next piece.
#[derive(Clone, Default)]
pub struct Stop(Rc<Cell<bool>>);

impl Stop {
    /// Has the command stop soon. What it has changed by then stays so.
    pub fn set(&self) {
        self.0.set(true);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get()
    }
}
