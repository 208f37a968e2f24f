//! A simulated drive: requests take virtual time, end in any order, and fail on request.

use crate::content::owner_of;
use crate::image::{Crashed, Image};
use crate::instant::{fits, info};
use crate::medium::{Loss, Medium};
use crate::plan::DrivePlan;
use crate::random::Random;
use crate::request::{Begun, End, Faults, HANG_NS, State};
use block::{
    DmaBuf, Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Lent, Rotation, Shown,
    oneshot,
};
use drives::OpenDrive;
use reactor::Handle;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::BLOCK;

/// Events of a drive at which the simulation can examine the state after a crash.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// A write was handed to the drive: first block, number of blocks, a digest of the content.
    Write(u64, u64, u64),
    /// The same of pages of a journal.
    Journal(u64, u64, u64),
    /// The same of a checkpoint's record.
    Record(u64, u64, u64),
    /// A flush has ended.
    Flushed,
    /// Data of this block (volume, block) is lost or damaged on this drive.
    Hit(u32, u64),
    /// The drive did not take data of this block.
    Refused(u32, u64),
    /// A write of this block begins while another one to it is in progress: which of them lasts is the drive's to say.
    Twice(u64),
    /// A flush has failed, or a request hangs: no operation is sure to work any longer.
    Stopped,
}

type Hook = Rc<dyn Fn(usize, Moment)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// The listener for moments on this thread, with the drive's number.
pub fn set_hook(hook: Option<Hook>) {
    HOOK.with_borrow_mut(|known| *known = hook);
}

fn tell(drive: usize, moment: Moment) {
    let hook = HOOK.with_borrow(Option::clone);
    if let Some(hook) = hook {
        hook(drive, moment);
    }
}

/// The drive.
pub struct SimDrive {
    number: usize,
    info: DriveInfo,
    in_memory: bool,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimDrive {
    /// Drive `number`, with this content.
    pub fn new(number: usize, plan: &DrivePlan, image: Image) -> Arc<Self> {
        Self::with(number, plan, Medium::new(image))
    }

    /// Drive `number`, that holds this, some of it in its cache.
    pub fn with(number: usize, plan: &DrivePlan, medium: Medium) -> Arc<Self> {
        let state = State::new(medium, plan.latency_us, plan.tempo);
        let mut info = info(&plan.spec, plan.size);
        if plan.slow {
            info.rotation = Rotation::Spinning;
        }
        Arc::new(Self {
            number,
            info,
            in_memory: plan.in_memory,
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// A handle of its own on the same drive.
    pub fn open(&self) -> Arc<dyn OpenDrive> {
        Arc::new(Self {
            number: self.number,
            info: self.info.clone(),
            in_memory: self.in_memory,
            state: self.state.clone(),
        })
    }

    /// Changes how requests go wrong.
    pub fn set_faults(&self, faults: Faults) {
        lock(&self.state).faults = faults;
    }

    /// When the last of its requests that hang ends, in nanoseconds of the loops' clock.
    pub fn hangs_until_ns(&self) -> u64 {
        lock(&self.state).hangs_until_ns
    }

    /// Blocks (volume, block) that a flush said were safe and that a power cut may take.
    pub fn lied(&self) -> Vec<(u32, u64)> {
        let state = lock(&self.state);
        state
            .medium
            .lied()
            .filter_map(|block| owner_of(&block[..]))
            .collect()
    }

    /// Pages of journals that no flush has covered.
    pub fn unflushed_pages(&self) -> usize {
        lock(&self.state).medium.unflushed(b"CVJL")
    }

    /// The same after the end of who used it.
    pub fn killed(&self, random: &mut Random) -> Medium {
        lock(&self.state).medium.killed(random)
    }

    /// Its content after a power cut now.
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
            in_memory: self.in_memory,
            state: self.state.clone(),
            handle: handle.clone(),
            in_flight: Rc::new(()),
        }))
    }
}

struct Queue {
    number: usize,
    size: u64,
    in_memory: bool,
    state: Arc<Mutex<State>>,
    handle: Handle,
    /// Every request in flight holds a clone.
    in_flight: Rc<()>,
}

impl Queue {
    /// Begins a request, and reports it: its effect, its latency in nanoseconds, and its result.
    fn begin(&self, io: &DriveIo) -> (End, u64, Result<(), DriveError>) {
        let Begun {
            end,
            delay,
            result,
            moments,
        } = lock(&self.state).begin(io, self.size, &self.handle);
        let number = self.number;
        moments.into_iter().for_each(|moment| tell(number, moment));
        if let (DriveIoKind::Write, Some(buf)) = (io.kind, &io.buf) {
            let digest = buf
                .chunks_exact(BLOCK)
                .map(|block| u64::from(format::crc32c(block)));
            let digest = digest.fold(0, |sum, crc| reactor::mix(sum ^ crc));
            let (first, count) = (io.offset / BLOCK as u64, io.len / BLOCK as u64);
            let moment = match buf.get(..4) {
                Some(b"CVCP") => Moment::Record,
                Some(b"CVJL") => Moment::Journal,
                _ => Moment::Write,
            };
            let moment = moment(first, count, digest);
            tell(self.number, moment);
        }
        (end, delay, result)
    }

    /// Executes a request immediately. `None` if it fails, or completes later.
    fn in_place(&self, kind: DriveIoKind, offset: u64, buf: DmaBuf) -> Option<DmaBuf> {
        let mut io = DriveIo {
            kind,
            offset,
            len: buf.len() as u64,
            buf: Some(buf),
            done: oneshot().0,
        };
        if !fits(&io, self.size) {
            return None;
        }
        let (end, delay, result) = self.begin(&io);
        lock(&self.state).finish(&mut io, end);
        io.buf.filter(|_| result.is_ok() && delay < HANG_NS)
    }
}

impl DriveQueue for Queue {
    fn submit(&self, mut io: DriveIo) {
        if !fits(&io, self.size) {
            return io.done.send((io.buf, Err(DriveError::Bounds)));
        }
        let number = self.number;
        let (end, delay, result) = self.begin(&io);
        let (state, handle) = (self.state.clone(), self.handle.clone());
        let held = self.in_flight.clone();
        self.handle.spawn(async move {
            handle.sleep(delay).await;
            let flushed = lock(&state).finish(&mut io, end);
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

    fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    fn read_in_place(&self, offset: u64, len: usize, see: &mut dyn FnMut(Shown<'_>)) -> bool {
        if !self.in_memory {
            return false;
        }
        let buf = self.handle.dma().zeroed(len);
        let read = self.in_place(DriveIoKind::Read, offset, buf);
        read.map(|buf| see((&buf[..]).into())).is_some()
    }

    fn write_in_place(&self, offset: u64, len: usize, fill: &mut dyn FnMut(Lent<'_>)) -> bool {
        if !self.in_memory {
            return false;
        }
        let mut buf = self.handle.dma().zeroed(len);
        fill((&mut buf[..]).into());
        self.in_place(DriveIoKind::Write, offset, buf).is_some()
    }
}
