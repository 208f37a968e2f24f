//! One connection: what comes in is counted, and something else is sent for it.

use super::run::Aim;
use super::second::Series;
use crate::chance::Chance;
use crate::nbd::{protocol as p, read_reply};
use std::io::{BufReader, Error, Read, Result, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use units::BLOCK;

/// Bits of a request's number below the moment at which it was sent, that tell apart those of one moment.
const NUMBER_BITS: u32 = 16;
/// What chance a route is chosen by.
const WHOLE: u64 = 1 << 20;

/// What all connections have in common.
pub(super) struct Shared {
    begun: Instant,
    /// Nothing more is to be sent.
    pub stop: AtomicBool,
    /// Requests that are not answered.
    pub outstanding: AtomicUsize,
    /// When something was last answered on any connection, in nanoseconds after the beginning.
    pub last_ns: AtomicU64,
    /// Why a lane ended before it was to.
    pub failure: Mutex<Option<String>>,
}

impl Shared {
    pub fn new(outstanding: usize) -> Self {
        Self {
            begun: Instant::now(),
            stop: AtomicBool::new(false),
            outstanding: AtomicUsize::new(outstanding),
            last_ns: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }
}

/// What a lane counted before it panicked is as good as what the others did.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sending sides of connections that share their requests, one to each export.
pub(super) struct Group {
    pub streams: Vec<Mutex<UnixStream>>,
    /// The part of the requests that goes to the first one, from 0 to 1.
    pub first: f64,
    pub aim: Aim,
    pub writes: bool,
    /// What is written.
    pub data: Vec<u8>,
}

impl Group {
    /// Sends so many new requests.
    pub fn send(&self, shared: &Shared, chance: &mut Chance, count: usize) -> Result<()> {
        let command = if self.writes { p::WRITE } else { p::READ };
        let mut bytes = vec![Vec::new(); self.streams.len()];
        let now = shared.now_ns() << NUMBER_BITS;
        for _ in 0..count {
            let second =
                self.streams.len() > 1 && chance.below(WHOLE) as f64 >= self.first * WHOLE as f64;
            let number = chance.next() & ((1 << NUMBER_BITS) - 1);
            let head = p::request(command, 0, now | number, (self.aim)(chance), BLOCK as u32);
            let bytes = &mut bytes[usize::from(second)];
            bytes.extend(head);
            if self.writes {
                bytes.extend(&self.data);
            }
        }
        for (stream, bytes) in self.streams.iter().zip(bytes) {
            if !bytes.is_empty() {
                locked(stream).write_all(&bytes)?;
            }
        }
        Ok(())
    }

    /// Says goodbye, and wakes whoever still listens.
    pub fn close(&self) {
        for stream in &self.streams {
            let mut stream = locked(stream);
            // A server that is gone needs no goodbye.
            let _ = stream.write_all(&p::request(p::DISCONNECT, 0, 0, 0, 0));
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The receiving side of a connection.
pub(super) struct Lane {
    pub stream: BufReader<UnixStream>,
    pub group: Arc<Group>,
    pub shared: Arc<Shared>,
    pub series: Arc<Mutex<Series>>,
    pub chance: Chance,
}

impl Lane {
    /// Waits for an answer and counts it.
    fn receive(&mut self, data: &mut [u8]) -> Result<()> {
        let (cookie, error) = read_reply(&mut self.stream)?;
        if error != 0 {
            return Err(Error::other(format!(
                "a request was answered with error {error}"
            )));
        }
        if !self.group.writes {
            self.stream.read_exact(data)?;
        }
        let now = self.shared.now_ns();
        if self.shared.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let before = self.shared.last_ns.fetch_max(now, Ordering::Relaxed);
        let mut series = locked(&self.series);
        series.answered(now, now.saturating_sub(cookie >> NUMBER_BITS));
        if before < now {
            series.silent(before, now);
        }
        Ok(())
    }

    fn is_more_there(&self) -> bool {
        let data = if self.group.writes { 0 } else { BLOCK };
        self.stream.buffer().len() >= p::REPLY_LEN + data
    }

    fn go_on(&mut self) -> Result<()> {
        let mut data = vec![0; BLOCK];
        loop {
            let mut answered = 0;
            loop {
                self.receive(&mut data)?;
                answered += 1;
                if !self.is_more_there() {
                    break;
                }
            }
            if self.shared.stop.load(Ordering::SeqCst) {
                let outstanding = &self.shared.outstanding;
                outstanding.fetch_sub(answered, Ordering::SeqCst);
            } else {
                self.group.send(&self.shared, &mut self.chance, answered)?;
            }
        }
    }

    /// Goes on until its connection is closed.
    pub fn run(mut self) {
        if let Err(error) = self.go_on()
            && !self.shared.stop.load(Ordering::SeqCst)
        {
            let mut failure = locked(&self.shared.failure);
            failure.get_or_insert(error.to_string());
        }
    }
}
