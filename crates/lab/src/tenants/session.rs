//! One connection with its slots and its requests.

use super::source::{Next, Source};
use crate::failure::{Failure, Result};
use crate::load::{Blocks, Disk, Opening, Port};

/// A request that is not answered.
#[derive(Clone, Copy, Default)]
struct Outstanding {
    due_ns: u64,
    bytes: u32,
}

/// A connection.
pub struct Session {
    port: Box<dyn Port>,
    source: Box<dyn Source>,
    free: Vec<u16>,
    outstanding: Vec<Outstanding>,
    /// It is a ring in shared memory, which is examined without asking the system.
    is_ring: bool,
}

impl Session {
    /// Connects to a disk with a number of slots for requests of these sizes. It writes `content`.
    ///
    /// # Errors
    /// When the disk is not there, or refuses something.
    pub fn connect(
        disk: &Disk,
        slots: u16,
        blocks: &Blocks,
        content: &[u8],
        source: Box<dyn Source>,
    ) -> Result<Self> {
        let opening = Opening {
            queues: 1,
            slots,
            slot_bytes: blocks.largest(),
            polling: false,
            writes: true,
            looks: false,
        };
        let port = disk.open(&opening)?.0.pop();
        let mut port = port.ok_or_else(|| Failure::new(format!("{disk} has no queue")))?;
        let content = &content[..content.len().min(blocks.largest() as usize)];
        (0..slots).for_each(|slot| port.fill(slot, 0, content));
        let is_ring = matches!(disk, Disk::VhostUserBlk(_));
        Ok(Self::on_port(port, slots, is_ring, source))
    }

    /// The same on a way to a disk that is there.
    pub(super) fn on_port(
        port: Box<dyn Port>,
        slots: u16,
        is_ring: bool,
        source: Box<dyn Source>,
    ) -> Self {
        Self {
            port,
            source,
            free: (0..slots).rev().collect(),
            outstanding: vec![Outstanding::default(); usize::from(slots)],
            is_ring,
        }
    }

    /// Its way to the disk.
    pub fn port(&mut self) -> &mut dyn Port {
        &mut *self.port
    }

    /// Whether it is a ring in shared memory.
    pub fn is_ring(&self) -> bool {
        self.is_ring
    }

    /// Requests outstanding.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len() - self.free.len()
    }

    /// Whether it is in its first stage.
    pub fn is_starting(&self) -> bool {
        self.source.is_starting()
    }

    /// Sends its next requests, as far as slots are free; returns the moment at which it wants to be asked again, where
    /// there is one.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn send(&mut self, now_ns: u64) -> std::io::Result<Option<u64>> {
        let (mut queued, mut again) = (false, None);
        while let Some(slot) = self.free.pop() {
            let (request, due_ns) = match self.source.next(now_ns) {
                Next::Send { request, due_ns } => (request, due_ns),
                Next::At(moment) => {
                    self.free.push(slot);
                    again = Some(moment);
                    break;
                }
            };
            self.outstanding[usize::from(slot)] = Outstanding {
                due_ns,
                bytes: request.length,
            };
            self.port.queue(slot, request)?;
            queued = true;
        }
        if queued {
            self.port.send()?;
        }
        Ok(again)
    }

    /// Takes answers: `ended` is called with when each was due and its bytes. True when there were any.
    ///
    /// # Errors
    /// When the connection broke, or a request failed.
    pub fn take(
        &mut self,
        answered: &mut Vec<u16>,
        mut ended: impl FnMut(u64, u64),
    ) -> std::io::Result<bool> {
        if self.outstanding() == 0 {
            return Ok(false);
        }
        answered.clear();
        self.port.take(answered)?;
        for slot in answered.iter().copied() {
            let Outstanding { due_ns, bytes } = self.outstanding[usize::from(slot)];
            ended(due_ns, bytes.into());
            self.free.push(slot);
        }
        Ok(!answered.is_empty())
    }
}
