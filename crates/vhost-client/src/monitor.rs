//! A misbehaving VMM: raw messages, over memory that is not mapped here.
//!
//! Memory is written by file offsets, so that it can be truncated while the other side uses it without any danger to
//! this process. Ring 0 alone is driven.

use crate::raw::{RawConnection, memory_file};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

/// Requests of a front end (the vhost-user specification, "Front-end message types").
pub mod request {
    /// `VHOST_USER_GET_FEATURES`.
    pub const GET_FEATURES: u32 = 1;
    /// `VHOST_USER_SET_FEATURES`.
    pub const SET_FEATURES: u32 = 2;
    /// `VHOST_USER_SET_OWNER`.
    pub const SET_OWNER: u32 = 3;
    /// `VHOST_USER_SET_MEM_TABLE`.
    pub const SET_MEM_TABLE: u32 = 5;
    /// `VHOST_USER_SET_VRING_NUM`.
    pub const SET_VRING_NUM: u32 = 8;
    /// `VHOST_USER_SET_VRING_ADDR`.
    pub const SET_VRING_ADDR: u32 = 9;
    /// `VHOST_USER_SET_VRING_BASE`.
    pub const SET_VRING_BASE: u32 = 10;
    /// `VHOST_USER_GET_VRING_BASE`.
    pub const GET_VRING_BASE: u32 = 11;
    /// `VHOST_USER_SET_VRING_KICK`.
    pub const SET_VRING_KICK: u32 = 12;
    /// `VHOST_USER_SET_VRING_CALL`.
    pub const SET_VRING_CALL: u32 = 13;
    /// `VHOST_USER_SET_VRING_ERR`.
    pub const SET_VRING_ERR: u32 = 14;
    /// `VHOST_USER_GET_PROTOCOL_FEATURES`.
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    /// `VHOST_USER_SET_PROTOCOL_FEATURES`.
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    /// `VHOST_USER_SET_VRING_ENABLE`.
    pub const SET_VRING_ENABLE: u32 = 18;
    /// `VHOST_USER_SET_INFLIGHT_FD`.
    pub const SET_INFLIGHT_FD: u32 = 32;
    /// `VHOST_USER_ADD_MEM_REG`.
    pub const ADD_MEM_REG: u32 = 37;
}

/// `VHOST_USER_PROTOCOL_F_MQ`, `_REPLY_ACK`, `_CONFIG` and `_INFLIGHT_SHMFD`.
const PROTOCOL: u64 = 1 | 1 << 3 | 1 << 9 | 1 << 12;
/// `VIRTIO_RING_F_EVENT_IDX`, which is left out, so that each answer is notified.
const EVENT_IDX: u64 = 1 << 29;
/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// What this side says its address of the first byte is.
const USER_BASE: u64 = 0x7f00_0000_0000;
/// Offsets of the ring's parts in the memory; entries of 16 bytes, at most 1,024.
const AVAIL_AT: u64 = 0x8000;
const USED_AT: u64 = 0x1_0000;
/// Where the memory is free for requests.
const FREE_AT: u64 = 0x4_0000;

/// A connection of a monitor.
pub struct Monitor(RawConnection);

fn pairs(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

impl Monitor {
    /// Connects, and says nothing.
    ///
    /// # Errors
    /// When no task listens there.
    pub fn connect(path: &Path) -> io::Result<Self> {
        RawConnection::connect(path, PATIENCE).map(Self)
    }

    /// As [`RawConnection::send`].
    ///
    /// # Errors
    /// When the connection broke.
    pub fn send(&self, request: u32, flags: u32, body: &[u8], fds: &[RawFd]) -> io::Result<()> {
        self.0.send(request, flags, body, fds)
    }

    /// Waits for a reply: its body.
    ///
    /// # Errors
    /// When none comes in time, or the connection broke.
    pub fn reply(&mut self) -> io::Result<Vec<u8>> {
        self.0.receive().map(|(_, body)| body)
    }

    fn get(&mut self, request: u32) -> io::Result<u64> {
        self.send(request, 0, &[], &[])?;
        let body = self.reply()?;
        let bytes = body.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Sends a message and waits until it is acknowledged; the code is 0 when it was carried out.
    ///
    /// # Errors
    /// As [`Monitor::reply`].
    pub fn acknowledged(&mut self, request: u32, body: &[u8], fds: &[RawFd]) -> io::Result<u64> {
        self.0.ask(request, body, fds)
    }

    fn negotiate(&mut self) -> io::Result<()> {
        let features = self.get(request::GET_FEATURES)?;
        self.send(request::SET_OWNER, 0, &[], &[])?;
        let protocol = self.get(request::GET_PROTOCOL_FEATURES)? & PROTOCOL;
        self.send(request::SET_PROTOCOL_FEATURES, 0, &pairs(&[protocol]), &[])?;
        let wanted = pairs(&[features & !EVENT_IDX]);
        self.acknowledged(request::SET_FEATURES, &wanted, &[])
            .map(|_| ())
    }
}

/// A descriptor of a ring: address of the guest, bytes, flags, next.
pub type Descriptor = (u64, u32, u16, u16);

/// A monitor and its guest with one ring.
pub struct RawGuest {
    /// For messages of any kind.
    pub monitor: Monitor,
    /// The guest's memory: at its address 0 the ring, from [`RawGuest::FREE`] on whatever one likes.
    pub memory: File,
    kick: EventFd,
    call: EventFd,
    size: u16,
    avail: u16,
}

impl RawGuest {
    /// Address of the guest from which on its memory is free.
    pub const FREE: u64 = FREE_AT;

    /// Connects with so many bytes of memory, in as many regions as `regions` says, and starts a ring of `size` entries.
    ///
    /// # Errors
    /// When the other side refuses something.
    pub fn new(path: &Path, bytes: u64, regions: u64, size: u16) -> io::Result<Self> {
        let mut monitor = Monitor::connect(path)?;
        monitor.negotiate()?;
        let memory = memory_file(bytes)?;
        let part = bytes / regions;
        let mut table = halves(&[regions as u32, 0]);
        for number in 0..regions {
            let at = number * part;
            table.extend(pairs(&[at, part, USER_BASE + at, at]));
        }
        let fds = vec![memory.as_raw_fd(); regions as usize];
        if monitor.acknowledged(request::SET_MEM_TABLE, &table, &fds)? != 0 {
            return Err(io::Error::other("the memory is refused"));
        }
        let mut guest = Self {
            monitor,
            memory,
            kick: EventFd::new(EFD_NONBLOCK)?,
            call: EventFd::new(EFD_NONBLOCK)?,
            size,
            avail: 0,
        };
        guest.start()?;
        Ok(guest)
    }

    fn start(&mut self) -> io::Result<()> {
        let (kick, call) = (self.kick.as_raw_fd(), self.call.as_raw_fd());
        let ring = pairs(&[0, USER_BASE, USER_BASE + USED_AT, USER_BASE + AVAIL_AT, 0]);
        let zero = pairs(&[0]);
        for (request, body, fds) in [
            (
                request::SET_VRING_NUM,
                halves(&[0, u32::from(self.size)]),
                None,
            ),
            (request::SET_VRING_BASE, halves(&[0, 0]), None),
            (request::SET_VRING_ADDR, ring, None),
            (request::SET_VRING_CALL, zero.clone(), Some(call)),
            (request::SET_VRING_KICK, zero, Some(kick)),
            (request::SET_VRING_ENABLE, halves(&[0, 1]), None),
        ] {
            let fds: Vec<RawFd> = fds.into_iter().collect();
            if self.monitor.acknowledged(request, &body, &fds)? != 0 {
                return Err(io::Error::other(format!("request {request} is refused")));
            }
        }
        Ok(())
    }

    /// Returns the ring another descriptor for notifications.
    ///
    /// # Errors
    /// As [`Monitor::reply`].
    pub fn notify_by(&mut self, fd: RawFd) -> io::Result<u64> {
        let zero = pairs(&[0]);
        self.monitor
            .acknowledged(request::SET_VRING_CALL, &zero, &[fd])
    }

    /// Gives a file as the memory of requests in flight.
    ///
    /// # Errors
    /// As [`Monitor::reply`].
    pub fn keep_inflight_in(&mut self, file: &File, bytes: u64) -> io::Result<u64> {
        let mut body = pairs(&[bytes, 0]);
        body.extend(1u16.to_le_bytes());
        body.extend(self.size.to_le_bytes());
        self.monitor
            .acknowledged(request::SET_INFLIGHT_FD, &body, &[file.as_raw_fd()])
    }

    /// Writes a descriptor of the ring's table, however wrong.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn descriptor(&self, index: u16, descriptor: Descriptor) -> io::Result<()> {
        self.descriptor_at(16 * u64::from(index), descriptor)
    }

    /// Writes a descriptor anywhere.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn descriptor_at(&self, at: u64, descriptor: Descriptor) -> io::Result<()> {
        let (address, len, flags, next) = descriptor;
        let mut bytes = address.to_le_bytes().to_vec();
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.memory.write_all_at(&bytes, at)
    }

    /// Writes the header of a request at an address.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn header(&self, at: u64, kind: u32, sector: u64) -> io::Result<()> {
        let mut bytes = halves(&[kind, 0]);
        bytes.extend(sector.to_le_bytes());
        self.memory.write_all_at(&bytes, at)
    }

    /// Makes a chain available, however wrong.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn publish(&mut self, head: u16) -> io::Result<()> {
        let at = AVAIL_AT + 4 + 2 * u64::from(self.avail % self.size);
        self.memory.write_all_at(&head.to_le_bytes(), at)?;
        self.avail = self.avail.wrapping_add(1);
        self.set_avail_index(self.avail)
    }

    /// Sets the ring's available index, however wrong.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn set_avail_index(&self, index: u16) -> io::Result<()> {
        self.memory.write_all_at(&index.to_le_bytes(), AVAIL_AT + 2)
    }

    /// Wakes the other side.
    pub fn kick(&self) {
        // A counter that is full wakes it as well.
        let _ = self.kick.write(1);
    }

    /// How many requests were answered.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn answered(&self) -> io::Result<u16> {
        let mut bytes = [0; 2];
        self.memory.read_exact_at(&mut bytes, USED_AT + 2)?;
        Ok(u16::from_le_bytes(bytes))
    }
}
