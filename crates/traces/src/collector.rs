//! Requests as they are read: checked, in whole sectors, and with a time that never goes back.

use crate::fields::shown;
use crate::input::Fault;
use crate::request::{Request, SECTOR};
use std::collections::HashMap;

/// Bytes of the longest request.
const LENGTH_MAX: u64 = 1 << 30;

/// A request as a format tells it.
pub(crate) struct Access {
    /// Microseconds since whenever the format counts from.
    pub time_us: u64,
    pub device: u16,
    pub write: bool,
    /// Bytes from the device's beginning.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// Takes the requests of one trace.
pub(crate) struct Collector {
    pub requests: Vec<Request>,
    pub devices: Vec<String>,
    pub ignored: u64,
    numbers: HashMap<String, u16>,
    limit: u64,
    /// The time of the first request.
    first_us: Option<u64>,
}

impl Collector {
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            requests: Vec::new(),
            devices: Vec::new(),
            ignored: 0,
            numbers: HashMap::new(),
            limit: limit.unwrap_or(u64::MAX),
            first_us: None,
        }
    }

    /// It has as many requests as are wanted.
    pub fn is_full(&self) -> bool {
        self.requests.len() as u64 >= self.limit
    }

    /// Counts a record that is no read or write.
    pub fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// The number of a device, a new one at its first appearance.
    pub fn device(&mut self, name: &str) -> Result<u16, Fault> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let Ok(number) = u16::try_from(self.devices.len()) else {
            let why = format!("device {} is one more than 65,536", shown(name));
            return Err(Fault::Wrong(why));
        };
        self.numbers.insert(name.to_owned(), number);
        self.devices.push(name.to_owned());
        Ok(number)
    }

    /// Takes a read or a write; one of no bytes counts as ignored.
    pub fn add(&mut self, access: &Access) -> Result<(), Fault> {
        let Access { offset, length, .. } = *access;
        if length == 0 {
            self.ignore();
            return Ok(());
        }
        if length > LENGTH_MAX {
            let why = format!("the request has {length} bytes, above the limit of 1 GiB");
            return Err(Fault::Wrong(why));
        }
        // Bytes count to 2^64, which is sector 2^55.
        let Some(end) = offset.checked_add(length) else {
            let why = "the request ends above the limit of 2^55 sectors";
            return Err(Fault::wrong(why));
        };
        let sector = offset / SECTOR;
        let first_us = *self.first_us.get_or_insert(access.time_us);
        let last_us = self.requests.last().map_or(0, |last| last.at_us);
        self.requests.push(Request {
            // Traces in order of completion go back a little.
            at_us: access.time_us.saturating_sub(first_us).max(last_us),
            sector,
            // At most 2^21 + 1, by the limit of the length.
            sectors: (end.div_ceil(SECTOR) - sector) as u32,
            device: access.device,
            write: access.write,
        });
        Ok(())
    }
}
