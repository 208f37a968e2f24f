//! Mirrors over drives that fail on request, on one thread.

use super::*;
use crate::vdrive::Presence;
use crate::vdrive::{Purpose, StaleMap, VdriveIo};
use block::DriveIo;
use format::LayoutConfig;
use reactor::Clock;
use std::collections::BTreeMap;
use units::DriveId;

/// Blocks of a region.
const REGION: u64 = 8;

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        0
    }
}

/// A drive in memory.
#[derive(Default)]
struct Memory {
    blocks: RefCell<BTreeMap<u64, u8>>,
    fails_writes: Cell<bool>,
    /// So many of the next reads fail.
    fails_reads: Cell<u32>,
    fails_flushes: Cell<bool>,
    flushes: Cell<u32>,
    reads: Cell<u32>,
    holds_writes: Cell<bool>,
    held: RefCell<Vec<DriveIo>>,
}

impl Memory {
    fn answer(&self, io: DriveIo) {
        let first = io.offset / BLOCK as u64;
        let (mut buf, mut result) = (io.buf, Ok(()));
        let failure = Err(DriveError::Os(5));
        match (io.kind, &mut buf) {
            (DriveIoKind::Write, _) if self.fails_writes.get() => result = failure,
            (DriveIoKind::Write, Some(buf)) => {
                for (block, bytes) in (first..).zip(buf.chunks_exact(BLOCK)) {
                    self.blocks.borrow_mut().insert(block, bytes[0]);
                }
            }
            (DriveIoKind::Read, _) if self.fails_reads.get() > 0 => {
                self.fails_reads.set(self.fails_reads.get() - 1);
                result = failure;
            }
            (DriveIoKind::Read, Some(buf)) => {
                self.reads.set(self.reads.get() + 1);
                for (block, bytes) in (first..).zip(buf.chunks_exact_mut(BLOCK)) {
                    bytes.fill(self.blocks.borrow().get(&block).copied().unwrap_or(0));
                }
            }
            (DriveIoKind::Flush, _) => {
                self.flushes.set(self.flushes.get() + 1);
                if self.fails_flushes.get() {
                    result = failure;
                }
            }
            _ => {}
        }
        io.done.send((buf, result));
    }

    fn release(&self) {
        self.holds_writes.set(false);
        for io in self.held.take() {
            self.answer(io);
        }
    }
}

impl DriveQueue for Memory {
    fn submit(&self, io: DriveIo) {
        if self.holds_writes.get() && io.kind == DriveIoKind::Write {
            self.held.borrow_mut().push(io);
        } else {
            self.answer(io);
        }
    }

    fn in_flight(&self) -> usize {
        self.held.borrow().len()
    }
}

struct Scene {
    handle: Handle,
    drives: [Rc<Memory>; 2],
    members: Arc<Members>,
    vdrive: Rc<VdriveIo>,
}

fn scene() -> Scene {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let drives: [Rc<Memory>; 2] = Default::default();
    let members = Arc::<Members>::default();
    let parts = (0..2).map(|index| {
        let member = Member::new(
            (1, index),
            DriveId(index as u128),
            true,
            StaleMap::new(REGION),
        );
        let member = Arc::new(member);
        members.add(member.clone());
        PartIo::new(
            &handle,
            drives[index].clone(),
            "test",
            0,
            member,
            Arc::default(),
        )
    });
    let parts = parts.collect();
    let layout = Layout::new(LayoutConfig::Mirror, &[1024; 2]);
    let vdrive = VdriveIo::new(
        VdriveId(1),
        layout,
        parts,
        members.clone(),
        handle.dma().clone(),
    );
    Scene {
        handle,
        drives,
        members,
        vdrive: Rc::new(vdrive),
    }
}

impl Scene {
    fn member(&self, index: usize) -> Arc<Member> {
        self.members.get((1, index)).unwrap()
    }

    /// Starts something; its result is there once it has ended.
    fn start<T: 'static>(
        &self,
        make: impl AsyncFnOnce(Rc<VdriveIo>) -> T + 'static,
    ) -> Rc<RefCell<Option<T>>> {
        let result = Rc::new(RefCell::new(None));
        let (give, vdrive) = (result.clone(), self.vdrive.clone());
        self.handle.spawn(async move {
            let value = make(vdrive).await;
            *give.borrow_mut() = Some(value);
        });
        self.turn();
        result
    }

    fn turn(&self) {
        while self.handle.run_ready(64) > 0 {}
    }

    fn run<T: 'static>(&self, make: impl AsyncFnOnce(Rc<VdriveIo>) -> T + 'static) -> T {
        self.start(make).take().expect("it ends at once")
    }

    fn write(&self, block: u64, fill: u8) -> Rc<RefCell<Option<Result<(), DriveError>>>> {
        let mut buf = self.handle.dma().get(BLOCK);
        buf.fill(fill);
        self.start(async move |vdrive| vdrive.write(block, buf, Purpose::Hosts).await)
    }

    fn wrote(&self, block: u64, fill: u8) -> Result<(), DriveError> {
        self.write(block, fill).take().expect("it ends at once")
    }

    fn flush(&self) -> Result<(), DriveError> {
        self.run(async |vdrive| vdrive.flush().await)
    }

    fn stale(&self, member: usize) -> Vec<u64> {
        self.member(member).stale.regions(128)
    }
}

#[test]
fn a_member_that_fails_a_write_lacks_that_and_what_was_not_flushed() {
    let scene = scene();
    scene.wrote(0, 1).unwrap();
    scene.flush().unwrap();
    scene.wrote(2 * REGION, 1).unwrap();
    scene.drives[0].fails_writes.set(true);
    scene.wrote(5 * REGION, 1).unwrap();
    assert_eq!(scene.member(0).state(), MemberState::Out);
    assert_eq!(scene.stale(0), [5]);
    // It is unknown whether earlier writes are on it: the next flush could not reach it.
    scene.flush().unwrap();
    assert_eq!(scene.stale(0), [2, 5]);
    scene.drives[0].fails_writes.set(false);
    scene.wrote(9 * REGION, 1).unwrap();
    assert_eq!(scene.stale(0), [2, 5, 9]);
    assert!(scene.stale(1).is_empty());
}

#[test]
fn a_flush_that_failed_is_never_believed() {
    let scene = scene();
    scene.wrote(0, 1).unwrap();
    scene.drives[0].fails_flushes.set(true);
    scene.flush().unwrap();
    assert_eq!(scene.member(0).state(), MemberState::Out);
    assert!(scene.member(0).stale.is_all(), "nobody knows what it lost");
    scene.drives[0].fails_flushes.set(false);
    let before = scene.drives[0].flushes.get();
    assert!(scene.members.begin_sync((1, 0)));
    scene.flush().unwrap();
    assert_eq!(
        scene.drives[0].flushes.get(),
        before,
        "it is not asked again"
    );
    assert_eq!(scene.member(0).state(), MemberState::Out);
}

#[test]
fn the_last_member_stays_in() {
    let scene = scene();
    scene.drives[0].fails_writes.set(true);
    scene.wrote(0, 1).unwrap();
    scene.drives[1].fails_writes.set(true);
    scene.wrote(0, 2).unwrap_err();
    assert!(scene.member(1).is_in());
    assert!(!scene.members.take_out((1, 1), "test", true));
    assert_eq!(scene.members.needed_on(DriveId(1)), Some(1));
    scene.drives[1].fails_flushes.set(true);
    scene.flush().unwrap_err();
    scene.drives[1].fails_flushes.set(false);
    scene.flush().unwrap_err();
}

#[test]
fn a_barrier_waits_until_the_labels_tell_of_an_absence() {
    let scene = scene();
    scene.members.enforce();
    scene.members.recorded_upto(scene.members.wanted());
    let wait = || {
        let members = scene.members.clone();
        scene.start(async move |_| members.recorded().await)
    };
    assert_eq!(wait().take(), Some(true));
    scene.drives[0].fails_writes.set(true);
    scene.wrote(0, 1).unwrap();
    let (first, second) = (wait(), wait());
    assert_eq!(first.take(), None);
    scene.members.recorded_upto(scene.members.wanted());
    scene.turn();
    assert_eq!((first.take(), second.take()), (Some(true), Some(true)));
    // A region that is written first while a member is out is news too; the same again is none.
    scene.wrote(50 * REGION, 1).unwrap();
    let third = wait();
    assert_eq!(third.take(), None);
    scene.members.record_failed();
    scene.turn();
    assert_eq!(third.take(), Some(false));
    scene.members.recorded_upto(scene.members.wanted());
    scene.wrote(50 * REGION, 2).unwrap();
    assert_eq!(wait().take(), Some(true));
}

#[test]
fn a_range_is_copied_between_writes_to_it() {
    let scene = scene();
    scene.wrote(3, 1).unwrap();
    scene.members.take_out((1, 0), "test", true);
    scene.wrote(3, 2).unwrap();
    assert!(scene.members.begin_sync((1, 0)));
    // A write is in flight: the copy waits for it, and later ones to that range for the copy.
    scene.drives[1].holds_writes.set(true);
    let before = scene.write(3, 3);
    let copy = scene.start(async |vdrive| vdrive.copy(0, 0, 8).await);
    scene.drives[1].holds_writes.set(false);
    let after = scene.write(4, 4);
    assert_eq!(scene.wrote(100, 5), Ok(()), "others go on");
    assert!(copy.borrow().is_none() && after.borrow().is_none());
    scene.drives[1].release();
    scene.turn();
    assert_eq!(
        (before.take(), copy.take(), after.take()),
        (Some(Ok(())), Some(Ok(())), Some(Ok(())))
    );
    let member = |drive: usize| scene.drives[drive].blocks.borrow().clone();
    assert_eq!(member(0).get(&3), Some(&3));
    assert_eq!(member(0).get(&4), Some(&4));
    // Nothing is read from it before it is up to date.
    assert!(!scene.member(0).is_in());
    assert!(scene.members.end_sync((1, 0), scene.member(0).absences()));
    assert!(scene.member(0).is_in() && scene.stale(0).is_empty());
}

#[test]
fn what_a_member_reads_only_when_asked_again_is_copied() {
    let scene = scene();
    scene.members.take_out((1, 0), "test", true);
    scene.wrote(3, 2).unwrap();
    assert!(scene.members.begin_sync((1, 0)));
    // All together once, and the first block twice.
    scene.drives[1].fails_reads.set(3);
    let copy = scene.start(async |vdrive| vdrive.copy(0, 3, 2).await);
    assert_eq!(copy.take(), Some(Ok(())));
    assert_eq!(scene.drives[0].blocks.borrow().get(&3), Some(&2));
}

#[test]
fn a_member_that_went_out_again_meanwhile_is_not_up_to_date() {
    let scene = scene();
    scene.members.take_out((1, 0), "test", false);
    let absences = scene.member(0).absences();
    assert!(scene.members.begin_sync((1, 0)));
    scene.drives[0].fails_writes.set(true);
    scene.wrote(7 * REGION, 1).unwrap();
    scene.members.synced_upto((1, 0), absences, 100, 128);
    assert_eq!(scene.stale(0), [7], "what it missed stays known");
    assert!(!scene.members.end_sync((1, 0), absences));
    assert!(scene.members.begin_sync((1, 0)));
    assert!(!scene.members.end_sync((1, 0), absences));
}

#[test]
fn what_a_damaged_map_names_beyond_the_end_is_an_error_and_no_member_s_fault() {
    let scene = scene();
    for block in [1024, 1023 + (1 << 40), u64::MAX] {
        assert_eq!(scene.wrote(block, 1), Err(DriveError::Bounds));
        let read = scene.run(async move |vdrive| vdrive.read(block, 2, &|_, _| true).await);
        assert_eq!(read.err(), Some(DriveError::Bounds));
        let read =
            scene.run(async move |vdrive| vdrive.read_every_member(block, &|_, _| true).await);
        assert_eq!(read.err(), Some(DriveError::Bounds));
        assert_eq!(scene.vdrive.places_of(block).len(), 1);
    }
    // Half of it is there.
    let read = scene.run(async |vdrive| vdrive.read(1023, 2, &|_, _| true).await);
    assert_eq!(read.err(), Some(DriveError::Bounds));
    assert!(scene.member(0).is_in() && scene.member(1).is_in());
}

#[test]
fn what_is_right_is_read_once_on_each_member_and_what_is_not_once_more_alone() {
    let scene = scene();
    for drive in &scene.drives {
        drive
            .blocks
            .borrow_mut()
            .extend([(0, 7), (1, 7), (2, 4), (3, 7)]);
    }
    scene.drives[1].blocks.borrow_mut().insert(1, 3);
    let right = scene.run(async |vdrive| {
        let right = |_: usize, bytes: &[u8]| bytes[0] == 7;
        vdrive.right_blocks(0, 4, &right).await
    });
    let wanted = [
        Presence::Right,
        Presence::Right,
        Presence::Wrong,
        Presence::Right,
    ];
    assert_eq!(right, wanted);
    let mended = scene.drives[1].blocks.borrow()[&1];
    assert_eq!(mended, 7, "the other member had it");
    let reads = scene.drives.each_ref().map(|drive| drive.reads.get());
    assert_eq!(reads, [3, 3]);
}
