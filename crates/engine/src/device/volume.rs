//! A volume that accepts operations.

use super::join::Join;
use super::long::{LONG, LongOps};
use crate::shard::{Asker, InFlight, ShardOp, ShardPort};
use block::{BlockDevice, Completion, ErrorKind, Geometry, IoError, Op, OpKind};
use format::{PoolConfig, REGION, shard_of};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use units::div_rem;

/// Operations of one volume that one shard has in flight.
const IN_FLIGHT: usize = 1024;
/// Longest read or write, in bytes.
const LONGEST: u64 = 64 << 20;

/// Most regions that one query of status or changes covers.
const STATUS_REGIONS: u64 = 16;

/// The port of each shard, with the volume's operations in flight there.
pub(super) type Ports = Arc<[(Arc<ShardPort>, InFlight)]>;

/// A volume of an open pool.
pub struct VolumeDevice {
    id: u32,
    /// Number by which its chunks are divided among shards.
    root: u32,
    ports: Ports,
    long: Arc<LongOps>,
    /// Everything but the size, which every operation checks.
    geometry: Geometry,
    size: AtomicU64,
    seen: Seen,
    listeners: Mutex<BTreeMap<u64, Waker>>,
    gone: AtomicBool,
}

/// The content visible through a device, for comparing it with snapshots.
pub struct Seen {
    /// The pool's description.
    pub config: Arc<Mutex<PoolConfig>>,
    /// The volume; of a snapshot, the one that it was of when it was opened.
    pub volume: u32,
    /// The epoch of its layer when it is a snapshot.
    pub epoch: Option<u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VolumeDevice {
    /// The volume `id`, whose chunks are divided by `root`, of a pool whose shards listen at `ports`.
    pub fn new(
        (id, root): (u32, u32),
        ports: Vec<Arc<ShardPort>>,
        geometry: Geometry,
        seen: Seen,
    ) -> Arc<Self> {
        let ports = ports.into_iter().map(|port| (port, InFlight::default()));
        let ports: Ports = ports.collect();
        Arc::new(Self {
            id,
            root,
            long: LongOps::new(ports.clone(), (id, root)),
            ports,
            size: AtomicU64::new(geometry.size),
            geometry,
            seen,
            listeners: Mutex::default(),
            gone: AtomicBool::new(false),
        })
    }

    /// The number by which shards know it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Changes the size (in bytes) and notifies the front ends.
    pub fn resize(&self, size: u64) {
        self.size.store(size, Ordering::Release);
        self.wake_listeners();
    }

    /// Ends the volume for its front ends: no further operation is accepted.
    pub fn end(&self) {
        self.gone.store(true, Ordering::Release);
        self.wake_listeners();
    }

    /// Operations in flight.
    pub fn in_flight(&self) -> usize {
        let of_shards = self.ports.iter().map(|(_, in_flight)| in_flight.get());
        self.long.count() + of_shards.sum::<usize>()
    }

    fn wake_listeners(&self) {
        let listeners = std::mem::take(&mut *lock(&self.listeners));
        listeners.into_values().for_each(Waker::wake);
    }

    fn check(&self, op: &Op) -> Result<(), IoError> {
        if self.is_gone() {
            return Err(IoError::new(
                ErrorKind::Gone,
                "it was deleted, or its pool was closed",
            ));
        }
        if op.kind == OpKind::Flush {
            return Ok(());
        }
        let geometry = &self.geometry;
        let invalid = |what: &str| {
            let (offset, len) = (op.offset, op.len);
            Err(IoError::new(
                ErrorKind::Invalid,
                format!("{len} bytes at {offset}: {what}"),
            ))
        };
        let lba = u64::from(geometry.lba_size);
        if op
            .offset
            .checked_add(op.len)
            .is_none_or(|end| end > self.size.load(Ordering::Acquire))
        {
            return invalid("beyond the end of the volume");
        }
        let reads = matches!(op.kind, OpKind::Read | OpKind::Status | OpKind::Changed(_));
        if geometry.read_only && !reads {
            return Err(IoError::new(
                ErrorKind::ReadOnly,
                "it is a read-only snapshot: clone it to write",
            ));
        }
        let is_whole = |bytes| div_rem(bytes, lba).1 == 0;
        if op.len == 0 || !is_whole(op.offset) || !is_whole(op.len) {
            return invalid("not a multiple of the logical block size");
        }
        if matches!(op.kind, OpKind::Read | OpKind::Write)
            && (op.buf.len() as u64 != op.len || op.len > LONGEST)
        {
            return invalid("the buffer has another length, or the request is too long");
        }
        Ok(())
    }

    fn has_room(&self, shard: usize) -> bool {
        self.ports[shard].1.get() < IN_FLIGHT
    }

    fn push(&self, shard: usize, op: Op, by: Asker) {
        let (port, in_flight) = &self.ports[shard];
        port.push(ShardOp {
            volume: self.id,
            op,
            by,
            under_way: in_flight.one_more(),
        });
    }

    /// Begins an operation of a known export or initiator, as [`BlockDevice::submit`] does.
    ///
    /// # Errors
    /// The operation, when too many are in flight.
    // In each of its two callers: an operation would be copied once more.
    #[inline(always)]
    pub(super) fn submit_as(&self, op: Op, by: Asker) -> Result<(), Op> {
        if let Err(error) = self.check(&op) {
            let completion = Completion {
                tag: op.tag,
                result: Err(error),
                buf: op.buf,
                extents: Vec::new(),
            };
            op.done.complete(completion);
            return Ok(());
        }
        if op.kind == OpKind::Flush {
            return self.submit_flush(op, by);
        }
        let (first, last) = (op.offset / REGION, (op.offset + op.len - 1) / REGION);
        let has_data = matches!(op.kind, OpKind::Read | OpKind::Write);
        if first != last || (has_data && op.len > LONG) {
            return self.submit_large(op, by, (first, last));
        }
        let shard = self.shard_of(first);
        if !self.has_room(shard) {
            return Err(op);
        }
        self.push(shard, op, by);
        Ok(())
    }

    fn shard_of(&self, region: u64) -> usize {
        shard_of(self.root, region, self.ports.len())
    }

    fn submit_flush(&self, op: Op, by: Asker) -> Result<(), Op> {
        let shards = self.ports.len();
        if !(0..shards).all(|shard| self.has_room(shard)) {
            return Err(op);
        }
        if shards == 1 {
            let whole = Op {
                offset: 0,
                len: 0,
                ..op
            };
            self.push(0, whole, by);
            return Ok(());
        }
        let parts = vec![(0, 0); shards];
        for (shard, part) in Join::split(op, &parts).into_iter().enumerate() {
            self.push(shard, part, by);
        }
        Ok(())
    }

    /// Begins an operation of several regions, or with much data.
    fn submit_large(&self, op: Op, by: Asker, (first, mut last): (u64, u64)) -> Result<(), Op> {
        let mut end = op.offset + op.len;
        match op.kind {
            OpKind::Read | OpKind::Write if op.len > LONG => return self.long.begin(op, by),
            OpKind::Discard | OpKind::WriteZeroes => return self.long.begin(op, by),
            OpKind::Status | OpKind::Changed(_) => {
                // The answer may end before the range does.
                last = last.min(first + STATUS_REGIONS - 1);
                end = end.min((last + 1) * REGION);
            }
            _ => {}
        }
        if !(first..=last).all(|region| self.has_room(self.shard_of(region))) {
            return Err(op);
        }
        let parts: Vec<(u64, u64)> = (first..=last)
            .map(|region| {
                let from = op.offset.max(region * REGION);
                (from - op.offset, end.min((region + 1) * REGION) - from)
            })
            .collect();
        for (part, region) in Join::split(op, &parts).into_iter().zip(first..) {
            self.push(self.shard_of(region), part, by);
        }
        Ok(())
    }
}

impl BlockDevice for VolumeDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size.load(Ordering::Acquire),
            ..self.geometry.clone()
        }
    }

    fn submit(&self, op: Op) -> Result<(), Op> {
        self.submit_as(op, Asker::default())
    }

    fn on_change(&self, listener: u64, waker: Waker) {
        lock(&self.listeners).insert(listener, waker);
        if self.is_gone() {
            self.wake_listeners();
        }
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    fn bases(&self) -> Vec<(String, u32)> {
        let config = lock(&self.seen.config);
        let volume = self.seen.volume;
        let (layer, volume) = match self.seen.epoch {
            Some(epoch) => {
                let layer = config.layers.iter().find(|layer| layer.epoch == epoch);
                // A snapshot may have become another volume's since it was opened.
                let mut names = config.snapshots.iter();
                let name = names.find(|name| Some(name.layer) == layer.map(|layer| layer.id));
                (layer, name.map_or(volume, |name| name.volume))
            }
            None => {
                let of = config.volumes.iter().find(|of| of.id == volume);
                (of.and_then(|of| config.layer(of.live())), volume)
            }
        };
        layer.map_or_else(Vec::new, |layer| config.beneath(volume, layer.id))
    }
}
