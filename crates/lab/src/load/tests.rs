//! Lanes before a disk in memory that reorders, forgets, damages and stands still.

use super::aim::Pattern;
use super::blocks::Blocks;
use super::disk::Disk;
use super::lane::{Counted, Lane, Place};
use super::pace::{Arrivals, Rate};
use super::plan::{Content, Load};
use super::port::{Port, Request};
use super::run::{Watched, measure_on};
use super::shared::Shared;
use super::verify::Verify;
use super::versions::Versions;
use crate::chance::Chance;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Result;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Counts what each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it does what the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any longer.
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SLOTS: u16 = 16;
const SLOT_BYTES: u32 = 16 << 10;
const BYTES: u64 = 1 << 20;

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// The bit of a byte, from a request on.
    Damages,
    /// A write, once.
    ForgetsWrite,
    /// A read gives another place's data, once.
    ReadsElsewhere,
    /// Nothing is answered for a part of a second.
    StandsStill,
}

struct Fake {
    disk: Arc<Mutex<Vec<u8>>>,
    data: Vec<u8>,
    pending: Vec<(u16, Request)>,
    fault: Fault,
    requests: u64,
    begun: Instant,
}

impl Fake {
    fn carry_out(&mut self, slot: u16, request: Request) {
        let mut disk = self.disk.lock().expect("not poisoned");
        self.requests += 1;
        let now = self.requests == 5_000;
        let mut at = request.offset as usize;
        if now && self.fault == Fault::Damages {
            disk.iter_mut()
                .skip(100)
                .step_by(4096)
                .for_each(|byte| *byte ^= 4);
        }
        if self.fault == Fault::ReadsElsewhere && self.requests.is_multiple_of(5_000) && at > 0 {
            at -= 4096;
        }
        let from = usize::from(slot) * SLOT_BYTES as usize;
        let slot = &mut self.data[from..from + request.length as usize];
        let disk = &mut disk[at..at + request.length as usize];
        match request.write {
            true if now && self.fault == Fault::ForgetsWrite => self.requests -= 1,
            true => disk.copy_from_slice(slot),
            false => slot.copy_from_slice(disk),
        }
    }
}

impl Port for Fake {
    fn queue(&mut self, slot: u16, request: Request) -> Result<()> {
        self.pending.push((slot, request));
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns the newest first.
    fn take(&mut self, answered: &mut Vec<u16>) -> Result<()> {
        let still = Duration::from_millis(200)..Duration::from_millis(700);
        if self.fault == Fault::StandsStill && still.contains(&self.begun.elapsed()) {
            return Ok(());
        }
        for _ in 0..self.pending.len().div_ceil(2) {
            let (slot, request) = self.pending.pop().expect("counted");
            self.carry_out(slot, request);
            answered.push(slot);
        }
        Ok(())
    }

    fn fill(&mut self, slot: u16, at: usize, bytes: &[u8]) {
        let at = usize::from(slot) * SLOT_BYTES as usize + at;
        self.data[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn fetch(&self, slot: u16, at: usize, bytes: &mut [u8]) {
        let at = usize::from(slot) * SLOT_BYTES as usize + at;
        bytes.copy_from_slice(&self.data[at..at + bytes.len()]);
    }

    fn arm(&mut self) -> bool {
        true
    }

    fn event(&self) -> (RawFd, bool) {
        (-1, false)
    }
}

fn load(read_percent: u8, requests: Option<u64>) -> Load {
    Load {
        disks: vec![Disk::File("unused".into())],
        first: 1.0,
        blocks: "4k:3,16k:1".parse().expect("right"),
        read_percent,
        aim: Pattern::Random.aim(0..BYTES, 4096, 1),
        queues: 2,
        depth: SLOTS,
        threads: 1,
        cores: Vec::new(),
        polling: true,
        rate: None,
        content: Content::Checked(Arc::new(Versions::new(0..BYTES, 4096))),
        warm_up: 0,
        // As long as it takes: all of the requests are to be sent.
        seconds: 600,
        requests,
        seed: 9,
    }
}

fn ports(load: &Load, disk: &Arc<Mutex<Vec<u8>>>, fault: Fault) -> Vec<Place> {
    let place = |_| {
        let fake = Fake {
            disk: Arc::clone(disk),
            data: vec![0; usize::from(SLOTS) * SLOT_BYTES as usize],
            pending: Vec::with_capacity(usize::from(SLOTS)),
            fault,
            requests: 0,
            begun: Instant::now(),
        };
        let verify = load.content.versions();
        let verify = verify.map(|versions| Verify::new(versions, SLOTS, SLOT_BYTES));
        Place::new(Box::new(fake), SLOTS, verify)
    };
    (0..load.queues).map(place).collect()
}

/// Fills a disk and lets reads and writes come to it; the error, if there is one.
fn verified(fault: Fault) -> std::result::Result<u64, String> {
    let disk = Arc::new(Mutex::new(vec![0; BYTES as usize]));
    let mixed = load(50, Some(100_000));
    let fill = Load {
        blocks: Blocks::of(SLOT_BYTES),
        aim: Pattern::Sequential.aim(0..BYTES, SLOT_BYTES, 0),
        requests: Some(BYTES / u64::from(SLOT_BYTES)),
        read_percent: 0,
        ..mixed.clone()
    };
    let run = |load: &Load, fault| {
        let places = ports(load, &disk, fault);
        measure_on(load, places, Watched::default(), |_, _| Ok(true))
    };
    run(&fill, Fault::None).expect("a fill");
    let outcome = run(&mixed, fault).map_err(|failure| failure.to_string())?;
    Ok(outcome.reads.whole().count() + outcome.writes.whole().count())
}

#[test]
fn overlapping_writes_in_any_order_are_no_fault() {
    assert_eq!(verified(Fault::None), Ok(100_000));
}

#[test]
fn whatever_is_wrong_is_seen_with_its_place() {
    for (fault, word) in [
        (Fault::Damages, "only up to byte 96"),
        (Fault::ForgetsWrite, "which is none of"),
        (Fault::ReadsElsewhere, "holds the data of block"),
    ] {
        let failure = verified(fault).expect_err("a fault");
        assert!(
            failure.contains("what is read at byte") && failure.contains(word),
            "{fault:?}: {failure}"
        );
    }
}

#[test]
fn a_rate_goes_on_while_the_disk_stands_still() {
    let disk = Arc::new(Mutex::new(vec![0; BYTES as usize]));
    let outcome = |rate: Option<Rate>| {
        let load = Load {
            rate,
            seconds: 1,
            content: Content::Random,
            ..load(100, None)
        };
        let places = ports(&load, &disk, Fault::StandsStill);
        let outcome = measure_on(&load, places, Watched::default(), |_, _| Ok(true));
        outcome.expect("measured").reads.whole()
    };
    let per_second = 10_000.0;
    let arrivals = Arrivals::Even;
    let open = outcome(Some(Rate {
        per_second,
        arrivals,
    }));
    // 5,000 were due while nothing was answered, though only 32 of them could be sent.
    let slow = open.percentile_ns(90.0);
    assert!(slow > 350_000_000, "{slow}");
    assert_eq!(open.latencies().count(), 10_000, "everything that was due");
    let closed = outcome(None);
    assert!(closed.percentile_ns(90.0) < 100_000_000, "few were sent");
}

#[test]
fn what_would_have_been_due_after_an_early_end_does_not_count() {
    let disk = Arc::new(Mutex::new(vec![0; BYTES as usize]));
    let load = Load {
        rate: Some(Rate {
            per_second: 1_000.0,
            arrivals: Arrivals::Even,
        }),
        seconds: 3_600,
        ..load(50, None)
    };
    let places = ports(&load, &disk, Fault::None);
    let outcome = measure_on(&load, places, Watched::default(), |_, _| Ok(false));
    let whole = outcome.expect("measured").reads.whole();
    // Some may be late when it ends; those of an hour would be 3,600,000.
    assert!(whole.unsent < 100_000, "{}", whole.unsent);
    assert!(whole.count() > 0);
}

#[test]
fn nothing_is_allocated_for_a_request() {
    let allocated = |requests: u64| {
        let disk = Arc::new(Mutex::new(vec![0; BYTES as usize]));
        let load = load(50, Some(requests));
        let end_ns = 2_000_000_000;
        let shared = Arc::new(Shared::new(load.requests, end_ns));
        let counted = Arc::new(Mutex::new(Counted::with_room(30)));
        let places = ports(&load, &disk, Fault::None);
        let lane = Lane::new(
            load,
            places,
            Arc::clone(&shared),
            counted,
            Chance::new(1),
            None,
        );
        let before = ALLOCATED.get();
        lane.run();
        assert_eq!(shared.failure.lock().expect("not poisoned").take(), None);
        ALLOCATED.get() - before
    };
    assert_eq!(allocated(1_000), allocated(50_000));
}
