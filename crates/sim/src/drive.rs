//! A simulated drive: requests take virtual time, end in any order, and go wrong when told to.

use crate::image::{Crashed, Image, blocks_of};
use crate::instant::{fits, info};
use crate::medium::{Loss, Medium};
use crate::plan::DrivePlan;
use crate::random::Random;
use block::{Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Rotation};
use drives::OpenDrive;
use reactor::Handle;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::BLOCK;

/// EIO.
const FAILED: i32 = 5;

/// What a drive tells of, so that the simulation can look at what a crash would leave right then.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// A write was handed to the drive: first block, number of blocks, a digest of the content.
    Write(u64, u64, u64),
    /// The same of a checkpoint's record.
    Record(u64, u64, u64),
    /// A flush has ended.
    Flushed,
}

type Hook = Rc<dyn Fn(usize, Moment)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Who is told of moments on this thread, with the drive's number.
pub fn set_hook(hook: Option<Hook>) {
    HOOK.with_borrow_mut(|known| *known = hook);
}

fn tell(drive: usize, moment: Moment) {
    let hook = HOOK.with_borrow(Option::clone);
    if let Some(hook) = hook {
        hook(drive, moment);
    }
}

/// How requests go wrong: each once in so many; 0 is never.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// A read fails.
    pub read_error: u64,
    /// A write fails, and may have happened.
    pub write_error: u64,
    /// A flush fails, and what it covered may be lost.
    pub flush_error: u64,
    /// A read gives a block with a wrong bit, this once.
    pub wrong_read: u64,
    /// A write is acknowledged and never happens.
    pub lost_write: u64,
    /// A write goes to another place.
    pub misdirected: u64,
    /// A request takes a hundred times as long.
    pub slow: u64,
}

struct State {
    medium: Medium,
    faults: Faults,
    /// How long a request takes at least and at most, in microseconds.
    latency_us: (u64, u64),
}

/// The drive.
pub struct SimDrive {
    number: usize,
    info: DriveInfo,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimDrive {
    /// Drive `number`, with this content.
    pub fn new(number: usize, plan: &DrivePlan, image: Image) -> Arc<Self> {
        let state = State {
            medium: Medium::new(image),
            faults: Faults::default(),
            latency_us: plan.latency_us,
        };
        let mut info = info(&plan.spec, plan.size);
        if plan.slow {
            info.rotation = Rotation::Spinning;
        }
        Arc::new(Self {
            number,
            info,
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// A handle of its own on the same drive.
    pub fn open(&self) -> Arc<dyn OpenDrive> {
        Arc::new(Self {
            number: self.number,
            info: self.info.clone(),
            state: self.state.clone(),
        })
    }

    /// Changes how requests go wrong.
    pub fn set_faults(&self, faults: Faults) {
        lock(&self.state).faults = faults;
    }

    /// What it holds after a power cut now.
    pub fn crash(&self, loss: Loss, random: &mut Random) -> Crashed {
        lock(&self.state).medium.crash(loss, random)
    }
}

impl Drive for SimDrive {
    fn info(&self) -> DriveInfo {
        self.info.clone()
    }
}

impl OpenDrive for SimDrive {
    fn queue(&self, handle: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(Queue {
            number: self.number,
            size: self.info.size,
            state: self.state.clone(),
            handle: handle.clone(),
            in_flight: Rc::new(()),
        }))
    }
}

struct Queue {
    number: usize,
    size: u64,
    state: Arc<Mutex<State>>,
    handle: Handle,
    /// Every request in flight holds a clone.
    in_flight: Rc<()>,
}

/// What a request does when its time has come.
enum End {
    Read,
    /// With this bit, counted around, the other way.
    WrongRead(u64),
    Write(u64),
    Flush(u64),
    Nothing,
}

impl DriveQueue for Queue {
    fn submit(&self, mut io: DriveIo) {
        if !fits(&io, self.size) {
            return io.done.send((io.buf, Err(DriveError::Bounds)));
        }
        let (end, delay, result) = self.begin(&mut io);
        if let (DriveIoKind::Write, Some(buf)) = (io.kind, &io.buf) {
            let digest = buf
                .chunks_exact(BLOCK)
                .map(|block| u64::from(format::crc32c(block)));
            let digest = digest.fold(0, |sum, crc| reactor::mix(sum ^ crc));
            let (first, count) = (io.offset / BLOCK as u64, io.len / BLOCK as u64);
            let record = buf.starts_with(b"CVCP");
            let moment = match record {
                true => Moment::Record(first, count, digest),
                false => Moment::Write(first, count, digest),
            };
            tell(self.number, moment);
        }
        let (state, handle, number) = (self.state.clone(), self.handle.clone(), self.number);
        let held = self.in_flight.clone();
        self.handle.spawn(async move {
            handle.sleep(delay).await;
            let flushed = finish(&state, &mut io, end, result);
            if flushed {
                tell(number, Moment::Flushed);
            }
            drop(held);
            io.done.send((io.buf, result));
        });
    }

    fn in_flight(&self) -> usize {
        Rc::strong_count(&self.in_flight) - 1
    }
}

impl Queue {
    fn chance(&self, once_in: u64) -> bool {
        once_in != 0 && self.handle.random().is_multiple_of(once_in)
    }

    /// What will happen, after how many nanoseconds, and what is said of it.
    fn begin(&self, io: &mut DriveIo) -> (End, u64, Result<(), DriveError>) {
        let mut state = lock(&self.state);
        let faults = state.faults;
        let (least, most) = state.latency_us;
        let mut delay = (least + self.handle.random() % (most - least)) * 1000;
        if self.chance(faults.slow) {
            delay *= 100;
        }
        let failed = Err(DriveError::Os(FAILED));
        let first = io.offset / BLOCK as u64;
        match io.kind {
            DriveIoKind::Read if self.chance(faults.read_error) => (End::Nothing, delay, failed),
            DriveIoKind::Read if self.chance(faults.wrong_read) => {
                (End::WrongRead(self.handle.random()), delay, Ok(()))
            }
            DriveIoKind::Read => (End::Read, delay, Ok(())),
            DriveIoKind::Write => {
                let Some(buf) = &io.buf else {
                    return (End::Nothing, delay, Err(DriveError::Bounds));
                };
                if self.chance(faults.lost_write) {
                    return (End::Nothing, delay, Ok(()));
                }
                let mut at = first;
                if self.chance(faults.misdirected) {
                    let span = self.size / BLOCK as u64 - io.len / BLOCK as u64;
                    at = self.handle.random() % span;
                }
                let id = state.medium.begin(at, blocks_of(buf).collect());
                if self.chance(faults.write_error) {
                    let kept = self.chance(2);
                    state.medium.fail(id, kept);
                    return (End::Nothing, delay, failed);
                }
                (End::Write(id), delay, Ok(()))
            }
            DriveIoKind::Flush if self.chance(faults.flush_error) => (End::Nothing, delay, failed),
            DriveIoKind::Flush => (End::Flush(state.medium.flush_begins()), delay, Ok(())),
            DriveIoKind::Discard => {
                state.medium.discard(first, io.len / BLOCK as u64);
                (End::Nothing, delay, Ok(()))
            }
        }
    }
}

/// Carries a request out; true when it was a flush that worked.
fn finish(
    state: &Mutex<State>,
    io: &mut DriveIo,
    end: End,
    result: Result<(), DriveError>,
) -> bool {
    let mut state = lock(state);
    match end {
        End::Read => {
            if let Some(buf) = &mut io.buf {
                state.medium.current.read(io.offset / BLOCK as u64, buf);
            }
        }
        End::WrongRead(bit) => {
            if let Some(buf) = &mut io.buf {
                state.medium.current.read(io.offset / BLOCK as u64, buf);
                let at = bit as usize / 8 % buf.len();
                buf[at] ^= 1 << (bit % 8);
            }
        }
        End::Write(id) => state.medium.end(id),
        End::Flush(turn) => state.medium.flush_ends(turn),
        End::Nothing => {}
    }
    matches!(end, End::Flush(_)) && result.is_ok()
}
