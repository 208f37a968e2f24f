//! The bare latency of drives in memory: one thread that polls for requests and copies, with nothing between
//! it and the client but a channel each way. What it takes longer than a copy is due to the machine and the client.

use crate::failure::{Failure, Result};
use crate::load::{Port, Request};
use crate::machine;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A request, with its slot and the slot's data.
struct Job {
    slot: u16,
    request: Request,
    data: Vec<u8>,
}

/// A guest's requests, answers and memory.
struct Served {
    requests: Receiver<Job>,
    answers: Sender<Job>,
    memory: Vec<u8>,
}

impl Served {
    /// Answers one, if there is any.
    fn serve(&mut self) {
        let Ok(mut job) = self.requests.try_recv() else {
            return;
        };
        let Request {
            offset,
            length,
            write,
        } = job.request;
        let (start, length) = (offset as usize, length as usize);
        let place = &mut self.memory[start..start + length];
        match write {
            true => place.copy_from_slice(&job.data[..length]),
            false => job.data[..length].copy_from_slice(place),
        }
        // This fails only if the receiver is gone.
        let _ = self.answers.send(job);
    }
}

/// The thread, which ends with this.
pub struct Bare {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Bare {
    /// On this core, for guests with a number of bytes each, request slots, and room in each slot.
    pub fn start(
        core: usize,
        memories: &[u64],
        slots: u16,
        slot_bytes: &[u32],
    ) -> (Self, Vec<Box<dyn Port>>) {
        let (mut all, mut ports): (Vec<_>, Vec<Box<dyn Port>>) = (Vec::new(), Vec::new());
        for (bytes, room) in memories.iter().zip(slot_bytes) {
            let (to_serve, requests) = channel();
            let (answers, answered) = channel();
            // Not zeroes, which the system would not have in memory.
            let memory = vec![1; *bytes as usize];
            all.push(Served {
                requests,
                answers,
                memory,
            });
            ports.push(Box::new(BarePort {
                requests: to_serve,
                answers: answered,
                data: vec![Some(vec![1; *room as usize]); usize::from(slots)],
            }));
        }
        let ends = Arc::new(AtomicBool::new(false));
        let seen = ends.clone();
        let thread = std::thread::spawn(move || {
            machine::bind_to_core(core)?;
            while !seen.load(Ordering::Relaxed) {
                all.iter_mut().for_each(Served::serve);
            }
            Ok(())
        });
        let bare = Self {
            ends,
            thread: Some(thread),
        };
        (bare, ports)
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it could not run on its core.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.ends.store(true, Ordering::Relaxed);
        let broken = |_| Failure::new("the thread that copies panicked");
        match self.thread.take() {
            Some(thread) => thread.join().map_err(broken)?,
            None => Ok(()),
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // The error was reported where it was stopped.
        let _ = self.end();
    }
}

/// A guest's way to it.
struct BarePort {
    requests: Sender<Job>,
    answers: Receiver<Job>,
    /// The data of slots whose requests are not in progress.
    data: Vec<Option<Vec<u8>>>,
}

fn gone() -> io::Error {
    io::Error::other("the thread that copies has ended")
}

impl Port for BarePort {
    fn queue(&mut self, slot: u16, request: Request) -> io::Result<()> {
        let data = self.data[usize::from(slot)].take().ok_or_else(gone)?;
        let job = Job {
            slot,
            request,
            data,
        };
        self.requests.send(job).map_err(|_| gone())
    }

    fn send(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn take(&mut self, answered: &mut Vec<u16>) -> io::Result<()> {
        for Job { slot, data, .. } in self.answers.try_iter() {
            self.data[usize::from(slot)] = Some(data);
            answered.push(slot);
        }
        Ok(())
    }

    fn fill(&mut self, slot: u16, at: usize, bytes: &[u8]) {
        if let Some(data) = &mut self.data[usize::from(slot)] {
            data[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn fetch(&self, slot: u16, at: usize, bytes: &mut [u8]) {
        if let Some(data) = &self.data[usize::from(slot)] {
            bytes.copy_from_slice(&data[at..at + bytes.len()]);
        }
    }

    fn arm(&mut self) -> bool {
        // There is no event: the caller keeps polling.
        true
    }

    fn event(&self) -> (RawFd, bool) {
        (-1, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let (bare, mut ports) = Bare::start(0, &[1 << 20], 2, &[8192]);
        let port = &mut ports[0];
        let mut ask = |write: bool| {
            let request = Request {
                offset: 4096,
                length: 8192,
                write,
            };
            let slot = u16::from(!write);
            port.queue(slot, request).unwrap();
            let mut answered = Vec::new();
            while answered.is_empty() {
                port.take(&mut answered).unwrap();
            }
            assert_eq!(answered, [slot]);
            let mut found = vec![0; 8192];
            port.fetch(slot, 0, &mut found);
            port.fill(0, 4096, &[7; 4096]);
            found
        };
        assert_eq!(ask(false), [1; 8192]);
        ask(true);
        assert_eq!(ask(false), [[1; 4096], [7; 4096]].concat());
        bare.stop().unwrap();
    }
}
