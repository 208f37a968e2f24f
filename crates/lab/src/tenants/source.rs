//! The next request of a session.

use crate::chance::Chance;
use crate::load::{Aim, Blocks, Pace, Request};

/// Action of a session for a free slot.
pub enum Next {
    /// Sends this. Its latency counts from `due_ns`, in nanoseconds after the beginning.
    Send { request: Request, due_ns: u64 },
    /// Asks again at this moment.
    At(u64),
}

/// A stream of requests of one session.
pub trait Source: Send {
    /// The next request, as a slot is free.
    fn next(&mut self, now_ns: u64) -> Next;

    /// Whether it is still in its first stage: a desktop that boots.
    fn is_starting(&self) -> bool {
        false
    }
}

/// Kinds of requests of a load.
#[derive(Clone)]
pub struct Shape {
    /// Sizes.
    pub blocks: Blocks,
    /// Reads of a hundred requests.
    pub read_percent: u8,
    /// Where they go.
    pub aim: Aim,
}

impl Shape {
    /// A request.
    pub fn request(&self, chance: &mut Chance) -> Request {
        let length = self.blocks.next(chance);
        Request {
            offset: (self.aim)(chance, length),
            length,
            write: chance.below(100) >= u64::from(self.read_percent),
        }
    }
}

/// A closed loop: every slot always has a request outstanding.
pub struct Closed {
    pub shape: Shape,
    pub chance: Chance,
}

impl Source for Closed {
    fn next(&mut self, now_ns: u64) -> Next {
        Next::Send {
            request: self.shape.request(&mut self.chance),
            due_ns: now_ns,
        }
    }
}

/// An open loop: requests are due at a rate, whether others were answered or not.
pub struct Open {
    pub shape: Shape,
    pub chance: Chance,
    pub pace: Pace,
}

impl Source for Open {
    fn next(&mut self, now_ns: u64) -> Next {
        let due_ns = self.pace.due_ns();
        if due_ns > now_ns {
            return Next::At(due_ns);
        }
        self.pace.advance(&mut self.chance);
        Next::Send {
            request: self.shape.request(&mut self.chance),
            due_ns,
        }
    }
}
