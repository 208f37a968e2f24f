//! Data that a port's slots write, and data that they must read.

use super::port::{Port, Request};
use super::versions::Versions;
use crate::content;
use std::ops::Range;
use std::sync::Arc;

/// The checks of a port's requests.
pub struct Verify {
    versions: Arc<Versions>,
    /// By slot and unit: the oldest version that the read may give.
    oldest: Vec<u32>,
    /// Units of a slot.
    units: usize,
    bytes: Vec<u8>,
}

impl Verify {
    /// For a number of slots with a number of bytes each.
    pub fn new(versions: Arc<Versions>, slots: u16, slot_bytes: u32) -> Self {
        let units = (slot_bytes / versions.unit) as usize;
        Self {
            oldest: vec![0; usize::from(slots) * units],
            units,
            bytes: vec![0; versions.unit as usize],
            versions,
        }
    }

    /// The numbers of a request's units.
    fn numbers(&self, request: Request) -> Range<u64> {
        let unit = u64::from(self.versions.unit);
        request.offset / unit..(request.offset + u64::from(request.length)) / unit
    }

    /// A request is about to be sent: notes what it may read, or makes what it writes.
    pub fn sent(&mut self, port: &mut dyn Port, slot: u16, request: Request) {
        let first = usize::from(slot) * self.units;
        for (index, number) in self.numbers(request).enumerate() {
            if request.write {
                let version = self.versions.sent(number);
                content::write(number, version, &mut self.bytes);
                port.fill(slot, index * self.bytes.len(), &self.bytes);
            } else {
                self.oldest[first + index] = self.versions.oldest(number);
            }
        }
    }

    /// A request was answered: examines every byte that was read.
    ///
    /// # Errors
    /// A sentence that says what is wrong, and where.
    pub fn answered(&mut self, port: &dyn Port, slot: u16, request: Request) -> Result<(), String> {
        let first = usize::from(slot) * self.units;
        for (index, number) in self.numbers(request).enumerate() {
            if request.write {
                self.versions.answered(number);
                continue;
            }
            port.fetch(slot, index * self.bytes.len(), &mut self.bytes);
            let oldest = self.oldest[first + index];
            let checked = content::read(number, &self.bytes)
                .and_then(|found| self.versions.check(number, oldest, found));
            checked.map_err(|what| {
                let unit = u64::from(self.versions.unit);
                format!("what is read at byte {} {what}", number * unit)
            })?;
        }
        Ok(())
    }
}
