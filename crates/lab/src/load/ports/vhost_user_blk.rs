//! A queue of a vhost-user-blk disk, driven as a guest does.

use crate::load::port::{Port, Request};
use std::io::{Error, Result};
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use vhost_client::{Client, ClientQueue, Command, Options};

/// Entries of a ring at least, as guests have them.
const ENTRIES_MIN: u16 = 128;
/// Maximum bytes of a data segment; disks accept at least this many.
const SEGMENT: usize = 128 << 10;
const SECTOR: u64 = 512;

/// A ring.
pub struct VhostPort {
    queue: ClientQueue,
    polling: bool,
    /// The connection, which ends with its last ring.
    _client: Arc<Mutex<Client>>,
}

impl VhostPort {
    /// Connects with a number of rings and slots of a number of bytes; returns them and the disk's size.
    ///
    /// # Errors
    /// When there is no such export, or it refuses something.
    pub fn connect(
        path: &Path,
        queues: u16,
        slots: u16,
        slot_bytes: usize,
        polling: bool,
    ) -> Result<(Vec<Self>, u64)> {
        let segments = slot_bytes.div_ceil(SEGMENT);
        let options = Options {
            queues,
            queue_size: slots.next_power_of_two().max(ENTRIES_MIN),
            slot_bytes,
            segments,
            ..Options::default()
        };
        let mut client = Client::connect(path, options)?;
        let size = client.capacity()? * SECTOR;
        let rings = client.take_queues();
        let client = Arc::new(Mutex::new(client));
        let ports = rings.into_iter().map(|mut queue| {
            queue.set_segment_bytes(SEGMENT);
            // The slots are numbered by the user of the port.
            while queue.take_slot().is_some() {}
            Self {
                queue,
                polling,
                _client: Arc::clone(&client),
            }
        });
        Ok((ports.collect(), size))
    }
}

impl Port for VhostPort {
    fn begin(&mut self) -> Result<()> {
        self.queue.set_polling(self.polling);
        Ok(())
    }

    fn queue(&mut self, slot: u16, request: Request) -> Result<()> {
        let (sector, len) = (request.offset / SECTOR, request.length as usize);
        let command = match request.write {
            true => Command::Write { sector, len },
            false => Command::Read { sector, len },
        };
        self.queue.push(slot, command);
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        self.queue.kick();
        Ok(())
    }

    fn take(&mut self, answered: &mut Vec<u16>) -> Result<()> {
        while let Some(done) = self.queue.poll() {
            // The ring's own list of free slots is not used, and must not grow.
            self.queue.take_slot();
            if done.status != 0 {
                let text = format!("a request was answered with status {}", done.status);
                return Err(Error::other(text));
            }
            answered.push(done.slot);
        }
        Ok(())
    }

    fn fill(&mut self, slot: u16, at: usize, bytes: &[u8]) {
        self.queue.fill_at(slot, at, bytes);
    }

    fn fetch(&self, slot: u16, at: usize, bytes: &mut [u8]) {
        self.queue.fetch_at(slot, at, bytes);
    }

    fn arm(&mut self) -> bool {
        self.queue.arm()
    }

    fn event(&self) -> (RawFd, bool) {
        (self.queue.notifications(), false)
    }

    fn disarm(&mut self) {
        self.queue.disarm();
    }
}
