//! A logical unit: a volume with everything that all of its nexuses share.

use crate::attention::Attention;
use crate::copy::UnitTokens;
use crate::identity::Identity;
use crate::nexus::Member;
use crate::ranges::{Held, Ranges};
use crate::reservations::Reservations;
use block::BlockDevice;
use reactor::{Keeper, Space};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

/// Switches that mode pages and commands set; all begin as false.
#[derive(Default)]
pub(crate) struct Switches {
    /// Sense data in the descriptor form (control mode page, D_SENSE).
    pub descriptor_sense: AtomicBool,
    /// Software write protect (control mode page, SWP).
    pub write_protect: AtomicBool,
    /// Stopped by START STOP UNIT.
    pub stopped: AtomicBool,
    /// SANITIZE is in progress.
    pub sanitizing: AtomicBool,
}

impl Switches {
    pub(crate) fn get(switch: &AtomicBool) -> bool {
        switch.load(Ordering::Acquire)
    }
}

/// A logical unit. Shared by the sessions of every target that offers the volume.
pub struct Unit {
    /// Its names.
    pub identity: Identity,
    pub(crate) switches: Switches,
    pub(crate) ranges: Arc<Ranges>,
    pub(crate) tokens: UnitTokens,
    pub(crate) reservations: Reservations,
    lba_size: u32,
    block_size: u32,
    size: AtomicU64,
    read_only: AtomicBool,
    /// Usage of the pool; `None` while unknown.
    space: Mutex<Option<Space>>,
    members: Mutex<Vec<Weak<Member>>>,
    /// Tasks that wait until commands have ended.
    quiet: Mutex<Vec<Waker>>,
}

impl Unit {
    /// The unit of a volume, with the reservations that `keeper` has kept. Not to be called on a loop.
    ///
    /// # Errors
    /// When those cannot be read.
    pub fn new(device: &Arc<dyn BlockDevice>, keeper: Arc<dyn Keeper>) -> io::Result<Arc<Self>> {
        let geometry = device.geometry();
        Ok(Arc::new(Self {
            identity: Identity::new(&geometry.serial),
            switches: Switches::default(),
            ranges: Arc::default(),
            tokens: UnitTokens::default(),
            reservations: Reservations::new(keeper)?,
            lba_size: geometry.lba_size,
            block_size: geometry.block_size,
            size: AtomicU64::new(geometry.size),
            read_only: AtomicBool::new(geometry.read_only),
            space: Mutex::default(),
            members: Mutex::default(),
            quiet: Mutex::default(),
        }))
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Size of a logical block in bytes.
    pub fn lba_size(&self) -> u64 {
        u64::from(self.lba_size)
    }

    /// The power of two of logical blocks in what serves best (LBPPBE).
    pub(crate) fn blocks_exponent(&self) -> u8 {
        (self.block_size / self.lba_size).max(1).ilog2() as u8
    }

    /// Whether the volume may only be read.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed)
    }

    /// Whether a host has write-protected it.
    pub(crate) fn is_write_protected(&self) -> bool {
        Switches::get(&self.switches.write_protect)
    }

    /// Mode pages and states become what they were at first.
    pub(crate) fn reset_modes(&self) {
        for switch in [
            &self.switches.descriptor_sense,
            &self.switches.write_protect,
            &self.switches.stopped,
        ] {
            switch.store(false, Ordering::Release);
        }
    }

    /// Takes over what the volume looks like now; tells every nexus of another size.
    pub fn refresh(&self, device: &Arc<dyn BlockDevice>) {
        let now = device.geometry();
        self.read_only.store(now.read_only, Ordering::Relaxed);
        if self.size.swap(now.size, Ordering::Relaxed) != now.size {
            self.tell(Attention::CapacityChanged, |_| true);
        }
    }

    /// Holds a range that is about to be changed, in bytes: tokens that stand for it end.
    pub(crate) async fn hold_to_change(&self, range: Range<u64>, alone: bool) -> Held {
        let held = self.ranges.hold(range.clone(), alone).await;
        self.tokens.written(&range);
        held
    }

    /// The same, shared with other writers, if no wait is needed.
    pub(crate) fn try_hold_to_change(&self, range: Range<u64>) -> Option<Held> {
        let held = self.ranges.try_share(range.clone())?;
        self.tokens.written(&range);
        Some(held)
    }

    /// Takes over how full the pool of the volume is; where that is to be `warned` of, tells every nexus
    /// (SBC-3 4.7.3.8).
    pub fn note_space(&self, space: Space, warns: bool) {
        *lock(&self.space) = Some(space);
        if warns {
            self.tell(Attention::ThinThreshold, |_| true);
        }
    }

    /// How full the pool is, as told last.
    pub(crate) fn space(&self) -> Option<Space> {
        *lock(&self.space)
    }

    /// Logical blocks of a threshold set, as a power of two (SBC-3 6.6.4): 1 MiB. Counts of space are of
    /// these.
    pub(crate) fn set_exponent(&self) -> u8 {
        (SET_BYTES / self.lba_size()).ilog2() as u8
    }

    pub(crate) fn join(&self, member: &Arc<Member>) {
        let mut members = lock(&self.members);
        members.retain(|known| known.strong_count() > 0);
        members.push(Arc::downgrade(member));
    }

    /// The nexuses of now.
    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        lock(&self.members)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Leaves an attention for each nexus that `which` picks.
    pub(crate) fn tell(&self, attention: Attention, which: impl Fn(&Member) -> bool) {
        for member in self.members() {
            if which(&member) {
                member.tell(attention);
            }
        }
    }

    /// Wakes waiters for the end of commands.
    pub(crate) fn command_ended(&self) {
        let waiting = std::mem::take(&mut *lock(&self.quiet));
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn wait_for_commands(&self, waker: &Waker) {
        lock(&self.quiet).push(waker.clone());
    }
}

/// Bytes of a threshold set.
const SET_BYTES: u64 = 1 << 20;

/// Bytes in threshold sets, as many as are whole.
pub(crate) fn sets(bytes: u64) -> u32 {
    u32::try_from(bytes / SET_BYTES).unwrap_or(u32::MAX)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
