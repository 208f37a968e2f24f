//! A queue of requests to a disk, over any protocol.

use std::io::Result;
use std::os::fd::RawFd;
use std::time::Duration;

/// A request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Where, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// Whether it writes.
    pub write: bool,
}

/// A queue with slots, each of which has one request at a time and its data. Nothing is allocated once it has
/// begun.
pub trait Port: Send {
    /// Called once, on the thread that uses it from then on.
    ///
    /// # Errors
    /// When the system refuses something.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Puts a request into a free slot. It is on its way after the next `send` and a look for answers.
    ///
    /// # Errors
    /// When the connection broke.
    fn queue(&mut self, slot: u16, request: Request) -> Result<()>;

    /// Sends what was queued, as far as that goes without waiting.
    ///
    /// # Errors
    /// When the connection broke.
    fn send(&mut self) -> Result<()>;

    /// Adds the slots of requests that were answered meanwhile. There are as many places as slots.
    ///
    /// # Errors
    /// When the connection broke, or a request failed.
    fn take(&mut self, answered: &mut Vec<u16>) -> Result<()>;

    /// Puts bytes into the data of a slot that is free, from `at` on.
    fn fill(&mut self, slot: u16, at: usize, bytes: &[u8]);

    /// Copies bytes out of the data of a slot whose read was answered, from `at` on.
    fn fetch(&self, slot: u16, at: usize, bytes: &mut [u8]);

    /// Asks for an event with the next answer; true when there is something to take already.
    fn arm(&mut self) -> bool;

    /// What becomes readable with the next answer, and whether it is to be examined for writing too.
    fn event(&self) -> (RawFd, bool);

    /// Takes the event that came.
    fn disarm(&mut self) {}

    /// Sleeps until there is something to take, or until the time is over, where the system has a call for that.
    ///
    /// # Errors
    /// When the system refuses it.
    fn wait(&mut self, timeout: Duration) -> Result<()> {
        if !self.arm() {
            let (fd, writing) = self.event();
            super::wait::wait(&mut [super::wait::watch(fd, writing)], timeout)?;
        }
        self.disarm();
        Ok(())
    }
}
