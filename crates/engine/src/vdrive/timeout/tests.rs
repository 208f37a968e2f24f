//! A drive that keeps requests to itself, on a clock that is only a number.

use super::*;
use crate::vdrive::{Layout, Member, Members, PartIo, Purpose, StaleMap, VdriveIo};
use block::DriveIo;
use format::LayoutConfig;
use reactor::Clock;
use units::{BLOCK, DriveId, VdriveId};

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Default)]
struct Virtual(Rc<Cell<u64>>);

impl Clock for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Completes immediately, or keeps requests until it is released.
#[derive(Default)]
struct Holding {
    holds: Cell<bool>,
    held: RefCell<Vec<DriveIo>>,
    taken: Cell<usize>,
}

impl DriveQueue for Holding {
    fn submit(&self, io: DriveIo) {
        self.taken.set(self.taken.get() + 1);
        if self.holds.get() {
            self.held.borrow_mut().push(io);
        } else {
            io.done.send((io.buf, Ok(())));
        }
    }

    fn in_flight(&self) -> usize {
        self.held.borrow().len()
    }
}

impl Holding {
    fn release(&self) {
        self.holds.set(false);
        for io in self.held.take() {
            io.done.send((io.buf, Ok(())));
        }
    }
}

struct Scene {
    handle: Handle,
    clock: Virtual,
    drives: Vec<Rc<Holding>>,
    shared: Vec<Arc<DriveShared>>,
    members: Arc<Members>,
    vdrive: Rc<VdriveIo>,
}

fn scene(layout: LayoutConfig, drives: usize) -> Scene {
    let clock = Virtual::default();
    let handle = Handle::simulated(Box::new(clock.clone()), 1).unwrap();
    let drives: Vec<Rc<Holding>> = (0..drives).map(|_| Rc::default()).collect();
    let members = Arc::<Members>::default();
    let shared: Vec<_> = drives
        .iter()
        .map(|_| DriveShared::new(DriveLimits::default(), Default::default()))
        .collect();
    let part = |(index, drive): (usize, &Rc<Holding>)| {
        let mirrored = layout == LayoutConfig::Mirror;
        let member = Member::new(
            (1, index),
            DriveId(index as u128),
            mirrored,
            StaleMap::new(8),
        );
        let member = Arc::new(member);
        members.add(member.clone());
        let shared = shared[index].clone();
        PartIo::new(&handle, drive.clone(), "test", 0, member, shared)
    };
    let parts: Vec<_> = drives.iter().enumerate().map(part).collect();
    let layout = Layout::new(layout, &vec![1024; drives.len()]);
    let dma = handle.dma().clone();
    let vdrive = VdriveIo::new(VdriveId(1), layout, parts, members.clone(), dma);
    Scene {
        handle,
        clock,
        drives,
        shared,
        members,
        vdrive: Rc::new(vdrive),
    }
}

impl Scene {
    fn is_in(&self, member: usize) -> bool {
        self.members.get((1, member)).unwrap().is_in()
    }

    /// Runs a future to its end, with time passing; returns it and the seconds that it took.
    fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> (T, u64) {
        let began = self.clock.0.get();
        let result = Rc::new(RefCell::new(None));
        let give = result.clone();
        self.handle.spawn(async move {
            let value = future.await;
            *give.borrow_mut() = Some(value);
        });
        loop {
            while self.handle.run_ready(64) > 0 {}
            if let Some(value) = result.borrow_mut().take() {
                return (value, (self.clock.0.get() - began) / SECOND);
            }
            let next = self.handle.next_timer_ns().expect("somebody waits");
            self.clock.0.set(next.max(self.clock.0.get()));
            self.handle.fire_timers();
        }
    }

    fn read(&self) -> (Result<(), DriveError>, u64) {
        let vdrive = self.vdrive.clone();
        self.run(async move { vdrive.read(3, 2, &|_, _| true).await.map(drop) })
    }

    fn write(&self) -> (Result<(), DriveError>, u64) {
        let (vdrive, buf) = (self.vdrive.clone(), self.handle.dma().get(BLOCK));
        self.run(async move { vdrive.write(3, buf, Purpose::Hosts).await })
    }
}

#[test]
fn a_mirror_goes_on_without_a_member_that_does_not_answer() {
    for write in [true, false] {
        let scene = scene(LayoutConfig::Mirror, 2);
        scene.drives[0].holds.set(true);
        let first = if write { scene.write() } else { scene.read() };
        assert_eq!(first, (Ok(()), 30));
        assert!(!scene.is_in(0));
        assert!(scene.is_in(1));
        assert!(scene.shared[0].is_slow() && !scene.shared[1].is_slow());
        for _ in 0..8 {
            assert_eq!(scene.read(), (Ok(()), 0));
            assert_eq!(scene.write(), (Ok(()), 0));
        }
        assert_eq!(scene.shared[0].timeouts.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn the_last_member_is_kept_though_it_does_not_answer() {
    let scene = scene(LayoutConfig::Mirror, 2);
    scene.drives.iter().for_each(|drive| drive.holds.set(true));
    assert_eq!(scene.write().0, Err(DriveError::Timeout));
    assert!(scene.read().0.is_err());
    assert!((0..2).any(|member| scene.is_in(member)));
}

#[test]
fn without_a_mirror_it_is_an_error_and_what_was_given_up_cannot_land_on_what_follows() {
    let scene = scene(LayoutConfig::Concat, 1);
    let drive = &scene.drives[0];
    drive.holds.set(true);
    assert_eq!(scene.write(), (Err(DriveError::Timeout), 30));
    let taken = drive.taken.get();
    assert_eq!(scene.write(), (Err(DriveError::Timeout), 0));
    assert_eq!(drive.taken.get(), taken, "it was not even sent");
    drive.release();
    assert_eq!(scene.write(), (Ok(()), 0));
    assert_eq!(scene.read(), (Ok(()), 0));
}

#[test]
fn reads_that_were_given_up_are_bounded() {
    let scene = scene(LayoutConfig::Concat, 1);
    scene.drives[0].holds.set(true);
    for _ in 0..LATE_MAX {
        assert_eq!(scene.read(), (Err(DriveError::Timeout), 30));
    }
    assert_eq!(scene.read(), (Err(DriveError::Timeout), 0));
    assert_eq!(scene.drives[0].in_flight(), LATE_MAX);
}

#[test]
fn what_is_answered_in_time_is_no_timeout_and_an_idle_drive_has_no_timer() {
    let scene = scene(LayoutConfig::Concat, 1);
    let drive = scene.drives[0].clone();
    for _ in 0..3 {
        drive.holds.set(true);
        let (slow, handle) = (drive.clone(), scene.handle.clone());
        scene.handle.spawn(async move {
            handle.sleep(29 * SECOND).await;
            slow.release();
        });
        assert_eq!(scene.read(), (Ok(()), 29));
    }
    assert_eq!(scene.shared[0].timeouts.load(Ordering::Relaxed), 0);
    scene.clock.0.set(scene.clock.0.get() + 60 * SECOND);
    scene.handle.fire_timers();
    while scene.handle.run_ready(64) > 0 {}
    assert_eq!(scene.handle.next_timer_ns(), None);
}

#[test]
fn time_in_which_the_loop_stood_still_is_not_the_drives() {
    let scene = scene(LayoutConfig::Concat, 1);
    let drive = scene.drives[0].clone();
    drive.holds.set(true);
    let (stopper, clock, slow) = (scene.handle.clone(), scene.clock.clone(), drive.clone());
    scene.handle.spawn(async move {
        stopper.sleep(SECOND).await;
        // The process is stopped, and what the drive answered meanwhile is seen a moment later.
        clock.0.set(clock.0.get() + 300 * SECOND);
        stopper.sleep(SECOND).await;
        slow.release();
    });
    assert_eq!(scene.write(), (Ok(()), 302));
    drive.holds.set(true);
    let (result, took) = scene.write();
    assert_eq!((result, took), (Err(DriveError::Timeout), 30));
}

#[test]
fn patience_counts_only_what_the_loop_ran() {
    let scene = scene(LayoutConfig::Concat, 1);
    let (stopper, clock) = (scene.handle.clone(), scene.clock.clone());
    scene.handle.spawn(async move {
        stopper.sleep(11 * SECOND).await;
        clock.0.set(clock.0.get() + 300 * SECOND);
    });
    let handle = scene.handle.clone();
    let ((), took) = scene.run(async move { patience(&handle, 16 * SECOND).await });
    // The step in which it stood still is over; two are left.
    assert_eq!(took, 311 + 2 * 2);
}
