//! The environment of an attacker: its own objects, its end time, and its counters.

use crate::chance::Chance;
use crate::iscsi::Lun;
use remote::Pin;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a wait looks whether the attack is over.
const TICK: Duration = Duration::from_millis(10);
/// How long one waits after a refusal before it tries again.
const AFTER_REFUSAL: Duration = Duration::from_millis(2);

/// What belongs to attackers alone, and the doors that they share with others.
pub struct Places {
    /// The daemon's own socket.
    pub control: PathBuf,
    /// Where it speaks TLS.
    pub tls: SocketAddr,
    /// Its certificate.
    pub pin: Pin,
    /// A token of the role viewer.
    pub token: String,
    /// Where it serves metrics.
    pub metrics: SocketAddr,
    /// An NBD export, its address and its size in bytes.
    pub nbd: SocketAddr,
    /// Name of that export.
    pub nbd_export: String,
    /// Size of that export in bytes.
    pub nbd_bytes: u64,
    /// A big unit that is nearly empty.
    pub lun: Lun,
    /// The socket of a vhost-user-blk export.
    pub vhost: PathBuf,
}

/// One attack.
pub struct Stage<'a> {
    /// Where to.
    pub places: &'a Places,
    over: &'a AtomicBool,
    seed: u64,
    /// Its threads leave the processor to everybody else.
    gives_way: bool,
    deeds: AtomicU64,
    refusals: AtomicU64,
    last_refusal: Mutex<Option<String>>,
    addresses: AtomicU32,
}

impl<'a> Stage<'a> {
    /// One that ends when `over` says so. With `gives_way`, the attacker's own processor time does not count;
    /// but on a busy machine it then gets hardly any processor time.
    pub fn new(places: &'a Places, over: &'a AtomicBool, seed: u64, gives_way: bool) -> Self {
        Self {
            places,
            over,
            seed,
            gives_way,
            deeds: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            last_refusal: Mutex::default(),
            addresses: AtomicU32::new(0),
        }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Where the attacker comes from: an address of its own, which no victim has.
    pub fn address(&self) -> IpAddr {
        Ipv4Addr::new(127, 0, 0, 2).into()
    }

    /// One address after the other, of 65,536.
    pub fn next_address(&self) -> IpAddr {
        let [_, _, third, fourth] = self.addresses.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        Ipv4Addr::new(127, 1, third, fourth).into()
    }

    /// Chance of one of the attacker's threads.
    pub fn chance(&self, number: u64) -> Chance {
        Chance::new(self.seed.wrapping_add(number))
    }

    /// Counts what the attack is made of: requests, connections.
    pub fn did(&self, count: u64) {
        self.deeds.fetch_add(count, Ordering::Relaxed);
    }

    /// How often that was.
    pub fn deeds(&self) -> u64 {
        self.deeds.load(Ordering::Relaxed)
    }

    /// Counts a refusal: the daemon closed a connection or did not take it.
    pub fn refused(&self, error: &io::Error) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        let mut last = self
            .last_refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(error.to_string());
    }

    /// How often it was refused.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Why it was refused last.
    pub fn last_refusal(&self) -> Option<String> {
        let last = self
            .last_refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }

    /// To be called by each of the attacker's threads when it begins.
    pub fn give_way(&self) {
        const NICEST: i32 = 19;
        if self.gives_way {
            // SAFETY: takes numbers; 0 is the calling thread. Lowering one's priority is always permitted.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) };
        }
    }

    /// Waits, unless it is over before.
    pub fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_over() && Instant::now() < end {
            thread::sleep(TICK.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Waits until it is over.
    pub fn wait(&self) {
        while !self.is_over() {
            thread::sleep(TICK);
        }
    }

    /// Does something until it is over; an error is a refusal.
    pub fn again(&self, mut what: impl FnMut() -> io::Result<()>) {
        while !self.is_over() {
            if let Err(error) = what() {
                self.refused(&error);
                self.pause(AFTER_REFUSAL);
            }
        }
    }

    /// The same on a number of threads, each with a number and its random generator.
    pub fn together(&self, threads: u64, what: impl Fn(u64, &mut Chance) -> io::Result<()> + Sync) {
        thread::scope(|scope| {
            for number in 0..threads {
                let what = &what;
                scope.spawn(move || {
                    self.give_way();
                    let mut chance = self.chance(number);
                    self.again(|| what(number, &mut chance));
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_are_no_victims() {
        let over = AtomicBool::new(false);
        let places = Places {
            control: PathBuf::new(),
            tls: ([127, 0, 0, 1], 1).into(),
            pin: Pin::parse(&"0".repeat(64)).expect("a fingerprint"),
            token: String::new(),
            metrics: ([127, 0, 0, 1], 2).into(),
            nbd: ([127, 0, 0, 1], 3).into(),
            nbd_export: String::new(),
            nbd_bytes: 0,
            lun: "iscsi://127.0.0.1:4/t/0".parse().expect("a unit"),
            vhost: PathBuf::new(),
        };
        let stage = Stage::new(&places, &over, 1, false);
        let first = stage.next_address();
        assert_ne!(first, stage.next_address());
        for address in [first, stage.address()] {
            assert!(address.is_loopback());
            assert_ne!(address, IpAddr::from([127, 0, 0, 1]));
        }
    }
}
