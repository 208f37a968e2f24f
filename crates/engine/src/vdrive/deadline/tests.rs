//! A drive that keeps requests to itself, on a clock that is only a number.

use super::*;
use crate::vdrive::{Layout, PartIo, VdriveIo};
use block::DriveIo;
use format::LayoutConfig;
use reactor::Clock;
use std::sync::atomic::AtomicBool;
use units::{BLOCK, VdriveId};

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Default)]
struct Virtual(Rc<Cell<u64>>);

impl Clock for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Answers at once, or keeps what it is given until it is let go.
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
    fn let_go(&self) {
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
    parts: Vec<PartIo>,
    vdrive: Rc<VdriveIo>,
}

fn scene(layout: LayoutConfig, drives: usize) -> Scene {
    let clock = Virtual::default();
    let handle = Handle::simulated(Box::new(clock.clone()), 1).unwrap();
    let drives: Vec<Rc<Holding>> = (0..drives).map(|_| Rc::default()).collect();
    let part = |drive: &Rc<Holding>| {
        let shared = DriveShared::new(DriveLimits::default());
        PartIo {
            queue: drive.clone(),
            offset: 0,
            out: Arc::new(AtomicBool::new(false)),
            watch: Watch::new(&handle, "test", shared.clone()),
            shared,
        }
    };
    let parts: Vec<_> = drives.iter().map(part).collect();
    let layout = Layout::new(layout, &vec![1024; drives.len()]);
    let vdrive = VdriveIo::new(VdriveId(1), layout, parts.clone(), handle.dma().clone());
    Scene {
        handle,
        clock,
        drives,
        parts,
        vdrive: Rc::new(vdrive),
    }
}

impl Scene {
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
            self.clock.0.set(next);
            self.handle.fire_timers();
        }
    }

    fn read(&self) -> (Result<(), DriveError>, u64) {
        let vdrive = self.vdrive.clone();
        self.run(async move { vdrive.read(3, 2, &|_, _| true).await.map(drop) })
    }

    fn write(&self) -> (Result<(), DriveError>, u64) {
        let (vdrive, buf) = (self.vdrive.clone(), self.handle.dma().get(BLOCK));
        self.run(async move { vdrive.write(3, buf).await })
    }
}

#[test]
fn a_mirror_goes_on_without_a_leg_that_does_not_answer() {
    for write in [true, false] {
        let scene = scene(LayoutConfig::Mirror, 2);
        scene.drives[0].holds.set(true);
        let first = if write { scene.write() } else { scene.read() };
        assert_eq!(first, (Ok(()), 30));
        assert!(scene.parts[0].out.load(Ordering::Relaxed));
        assert!(!scene.parts[1].out.load(Ordering::Relaxed));
        assert!(scene.parts[0].shared.is_slow() && !scene.parts[1].shared.is_slow());
        for _ in 0..8 {
            assert_eq!(scene.read(), (Ok(()), 0));
            assert_eq!(scene.write(), (Ok(()), 0));
        }
        assert_eq!(scene.parts[0].shared.timeouts.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn the_last_leg_is_kept_though_it_does_not_answer() {
    let scene = scene(LayoutConfig::Mirror, 2);
    scene.drives.iter().for_each(|drive| drive.holds.set(true));
    assert_eq!(scene.write().0, Err(DriveError::Timeout));
    assert!(scene.read().0.is_err());
    let out = |part: &PartIo| part.out.load(Ordering::Relaxed);
    assert!(!scene.parts.iter().all(out));
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
    drive.let_go();
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
            slow.let_go();
        });
        assert_eq!(scene.read(), (Ok(()), 29));
    }
    assert_eq!(scene.parts[0].shared.timeouts.load(Ordering::Relaxed), 0);
    scene.clock.0.set(scene.clock.0.get() + 60 * SECOND);
    scene.handle.fire_timers();
    while scene.handle.run_ready(64) > 0 {}
    assert_eq!(scene.handle.next_timer_ns(), None);
}
