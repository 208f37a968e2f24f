//! One life of an engine over such drives: a pool is made or imported, used in every way, and left.

use super::disk::Disk;
use crate::check::MEMORY;
use crate::world::{Order, World};
use block::{BlockDevice, Completion, CompletionSink, IoBuf, Op, OpFlags, OpKind};
use engine::{Engine, EngineConfig, ScrubSpec, VolumeChange};
use reactor::control::{self, Simulation};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// The pool of a life.
pub const POOL: &str = "tank";
pub const MIB: u64 = 1 << 20;
const LOOPS: usize = 2;
/// Bytes of one operation, and operations that read a part of a volume at most.
const PIECE: u64 = 512 << 10;
const PIECES: u64 = 16;
/// Rounds of a question that is answered in pieces.
const ROUNDS: usize = 16;

/// An engine with its world, gone when this is.
pub struct Life {
    pub engine: Engine,
    world: Rc<World>,
    simulation: Simulation,
    disks: Vec<Disk>,
}

#[derive(Default)]
struct Ended(Mutex<Option<Completion>>);

impl CompletionSink for Ended {
    fn complete(&self, completion: Completion) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(completion);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.world.abandon();
        engine::harness::forget_local();
        self.disks
            .iter()
            .for_each(|disk| drives::give(disk.spec(), None));
    }
}

impl Life {
    /// An engine that finds these drives by their texts.
    pub fn new(disks: &[Disk], seed: u64) -> Self {
        let world = World::new(LOOPS, Order::Fifo, seed);
        let stepped = world.clone();
        let simulation = control::simulate(seed, move || stepped.step());
        let config = EngineConfig {
            journal_blocks: Some(64),
            meta_groups: Some(4),
            ..MEMORY
        };
        for disk in disks {
            let disk = disk.clone();
            let spec = disk.spec().to_owned();
            drives::give(&spec, Some(Rc::new(move || Arc::new(disk.clone()) as _)));
        }
        let engine = Engine::on_loops(&config, world.remotes());
        Self {
            engine,
            world,
            simulation,
            disks: disks.to_vec(),
        }
    }

    /// The engine, to be requested something that has to end.
    pub fn ask(&self) -> &Engine {
        self.world.wait();
        &self.engine
    }

    /// Whether something took more steps than anything may.
    pub fn is_endless(&self) -> bool {
        self.world.is_endless()
    }

    /// Carries out one operation; `None` when it does not end.
    pub fn run(
        &self,
        device: &Arc<dyn BlockDevice>,
        kind: OpKind,
        (offset, len): (u64, u64),
        buf: IoBuf,
    ) -> Option<Completion> {
        self.world.wait();
        let ended = Arc::new(Ended::default());
        let op = Op {
            tag: 1,
            kind,
            flags: OpFlags::default(),
            offset,
            len,
            buf,
            done: ended.clone(),
        };
        if device.submit(op).is_err() {
            return None;
        }
        loop {
            let answer = ended
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if answer.is_some() {
                return answer;
            }
            if !control::step() {
                return None;
            }
        }
    }

    /// Writes bytes of one value.
    pub fn write(&self, device: &Arc<dyn BlockDevice>, offset: u64, len: u64, value: u8) {
        let bytes = vec![value; len as usize].into_boxed_slice();
        self.run(
            device,
            OpKind::Write,
            (offset, len),
            IoBuf::from_bytes(bytes),
        );
    }

    /// Long work that was begun is done, for some turns.
    pub fn work(&self) {
        for _ in 0..ROUNDS {
            let Some(work) = self.simulation.take_work() else {
                break;
            };
            self.world.wait();
            work();
        }
    }

    /// Runs a number of steps.
    pub fn rest(&self, steps: usize) {
        self.world.wait();
        for _ in 0..steps {
            if !control::step() {
                break;
            }
        }
    }

    /// Everything that can be requested of every volume and snapshot, and of the pool.
    ///
    /// # Errors
    /// The operation that did not end.
    pub fn use_pool(&self, random: &mut crate::random::Random) -> Result<(), String> {
        let engine = self.ask();
        let _ = engine.pool_status(POOL);
        let _ = engine.pool_audit(POOL);
        let volumes = engine.volume_list(POOL).unwrap_or_default();
        let snapshots = engine.snapshot_list(POOL, None).unwrap_or_default();
        let mut devices = Vec::new();
        for volume in &volumes {
            devices.extend(self.ask().volume_open(POOL, &volume.name, None).ok());
            let _ = self
                .ask()
                .volume_map(POOL, &volume.name, 0..volume.size, 64);
            let _ = self.ask().volume_explain(POOL, &volume.name, 0);
        }
        for known in &snapshots {
            let snapshot = &known.name;
            let opened = self.ask().snapshot_open(POOL, &known.volume, snapshot);
            devices.extend(opened.ok());
            let to = Some(snapshot.as_str());
            let diff = |from| {
                self.ask()
                    .snapshot_diff(POOL, &known.volume, from, to, 0, 64)
            };
            let _ = (diff(None), diff(to));
            let rounds = std::cell::Cell::new(0);
            let go_on = || {
                rounds.set(rounds.get() + 1);
                rounds.get() < ROUNDS
            };
            let _ = self
                .ask()
                .snapshot_unique(POOL, &known.volume, snapshot, &go_on);
            rounds.set(0);
        }
        for device in &devices {
            self.look(device)?;
        }
        for device in &devices {
            self.change(device, random)?;
        }
        let _ = self.ask().pool_cool(POOL);
        let _ = self.scrub();
        drop(devices);
        self.look_at_all()?;
        self.administer(&volumes, &snapshots);
        self.rest(5_000);
        let _ = self.ask().pool_audit(POOL);
        let _ = self.ask().pool_status(POOL);
        match self.is_endless() {
            true => Err("something takes more steps than anything may".into()),
            false => Ok(()),
        }
    }

    /// Scrubs the pool: how many blocks and pages have no intact copy.
    pub fn scrub(&self) -> Option<u64> {
        let spec = ScrubSpec {
            rate: 1 << 30,
            began_s: 1,
        };
        self.ask().pool_scrub(POOL, &spec).ok()?;
        self.work();
        let status = self.ask().pool_scrub_status(POOL).ok()?;
        Some(status.lost)
    }

    /// Reads every volume.
    ///
    /// # Errors
    /// The operation that did not end.
    pub fn look_at_all(&self) -> Result<(), String> {
        for volume in self.ask().volume_list(POOL).unwrap_or_default() {
            if let Ok(device) = self.ask().volume_open(POOL, &volume.name, None) {
                self.look(&device)?;
            }
        }
        Ok(())
    }

    /// Reads a volume and asks what of it is allocated.
    fn look(&self, device: &Arc<dyn BlockDevice>) -> Result<(), String> {
        let size = device.geometry().size;
        let mut at = 0;
        for _ in 0..ROUNDS {
            if at >= size {
                break;
            }
            let range = (at, size - at);
            let answer = self.run(device, OpKind::Status, range, IoBuf::empty());
            let answer = answer.ok_or("a question for the status does not end")?;
            at += answer
                .extents
                .iter()
                .map(|extent| extent.len)
                .sum::<u64>()
                .max(MIB);
        }
        // Of each region the first chunks: what is there was forged.
        let regions = size.div_ceil(format::REGION).min(3);
        for region in 0..regions {
            for piece in 0..PIECES / regions {
                let offset = region * format::REGION + piece * PIECE;
                if offset >= size {
                    break;
                }
                let len = PIECE.min(size - offset);
                let buf = IoBuf::zeroed(len as usize);
                self.run(device, OpKind::Read, (offset, len), buf)
                    .ok_or("a read does not end")?;
            }
        }
        Ok(())
    }

    /// Writes, discards and flushes, some blocks and parts of blocks.
    fn change(
        &self,
        device: &Arc<dyn BlockDevice>,
        random: &mut crate::random::Random,
    ) -> Result<(), String> {
        let geometry = device.geometry();
        let lba = u64::from(geometry.lba_size);
        let within = geometry.size.min(8 * MIB);
        if within < lba {
            return Ok(());
        }
        for _ in 0..12 {
            let kind = *random.pick(&[
                OpKind::Write,
                OpKind::Discard,
                OpKind::WriteZeroes,
                OpKind::Write,
            ]);
            let offset = random.below(within / lba) * lba;
            let len = (random.within(1..=300) * lba).min(geometry.size - offset);
            let buf = match kind {
                OpKind::Write => IoBuf::from_bytes(vec![3; len as usize].into()),
                _ => IoBuf::empty(),
            };
            self.run(device, kind, (offset, len), buf)
                .ok_or("a change does not end")?;
        }
        let flushed = self.run(device, OpKind::Flush, (0, 0), IoBuf::empty());
        flushed.ok_or("a flush does not end")?;
        let all = (0, geometry.size / lba * lba);
        if random.one_in(2) && all.1 > 0 {
            let discarded = self.run(device, OpKind::Discard, all, IoBuf::empty());
            discarded.ok_or("a discard does not end")?;
        }
        Ok(())
    }

    /// Changes of the pool; what is refused is refused.
    fn administer(&self, volumes: &[engine::VolumeStatus], snapshots: &[engine::SnapshotStatus]) {
        for volume in volumes {
            let names = [volume.name.clone()];
            let _ = self.ask().snapshot_create(POOL, &names, "now", 7);
            let quota = VolumeChange {
                quota: Some(0),
                ..VolumeChange::default()
            };
            let _ = self.ask().volume_change(POOL, &volume.name, &quota);
            let smaller = volume.size / 2 / MIB * MIB;
            let _ = self.ask().volume_resize(POOL, &volume.name, smaller, true);
        }
        for known in snapshots {
            let names = [known.name.clone()];
            let _ = self
                .ask()
                .volume_roll_back(POOL, &known.volume, &known.name);
            let _ = self.ask().snapshot_delete(POOL, &known.volume, &names);
            self.work();
        }
        if let Some(volume) = volumes.first() {
            let _ = self.ask().volume_delete(POOL, &volume.name);
            self.work();
        }
        let _ = self.ask().vdrive_remove(POOL, 2);
        self.work();
    }
}
