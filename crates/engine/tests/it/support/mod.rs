//! What the tests of whole pools share: an engine, a folder, and a client that waits.

pub mod limits;
pub mod memory;
pub mod rot;

use block::{BlockDevice, Completion, CompletionSink, IoBuf, IoError, Op, OpFlags, OpKind};
use engine::{
    Engine, EngineConfig, LayoutSpec, PoolSpec, PoolStatus, SpacePolicy, Tier, VdriveSpec,
    VolumeSpec,
};
use format::Label;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};

pub const MIB: u64 = 1 << 20;
pub const BLOCK: u64 = 4096;

/// Rounds of a test that tries at random: a fraction of them where a quick answer is wanted (`./dev check` sets
/// `CONVECT_BRIEF`), but at least one.
pub fn rounds(all: usize) -> usize {
    match std::env::var_os("CONVECT_BRIEF") {
        Some(_) => all.div_ceil(4),
        None => all,
    }
}

/// A folder that is removed with everything in it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("convect-engine-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file drive in it.
    pub fn drive(&self, name: &str, mib: u64) -> String {
        format!("file:{}?size={mib}M", self.0.join(name).display())
    }

    /// Bytes of a file drive in it.
    pub fn read(&self, name: &str, offset: u64, len: u64) -> Vec<u8> {
        let file = std::fs::File::open(self.0.join(name)).unwrap();
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    /// The newest label of a file drive in it, `None` when none is right.
    pub fn newest_label(&self, name: &str) -> Option<Label> {
        let len = std::fs::metadata(self.0.join(name)).unwrap().len();
        let labels = format::label_offsets(len)
            .into_iter()
            .filter_map(|at| Label::decode(&self.read(name, at, format::LABEL_SIZE)).ok());
        labels.max_by_key(|label| label.generation)
    }

    /// The blocks of a file drive in it that were ever written, each with its offset: most drives are mostly holes.
    pub fn written_blocks(&self, name: &str) -> Vec<(u64, Vec<u8>)> {
        let file = std::fs::File::open(self.0.join(name)).unwrap();
        let (mut blocks, mut at) = (Vec::new(), 0);
        // SAFETY: plain system calls on a descriptor that is open.
        let seek = |at: u64, whence| unsafe { libc::lseek(file.as_raw_fd(), at as i64, whence) };
        // Past the last data there is an error, which is negative.
        while let Ok(begin) = u64::try_from(seek(at, libc::SEEK_DATA)) {
            at = u64::try_from(seek(begin, libc::SEEK_HOLE)).unwrap();
            for block in begin / BLOCK..at.div_ceil(BLOCK) {
                blocks.push((block * BLOCK, self.read(name, block * BLOCK, BLOCK)));
            }
        }
        blocks
    }

    /// The same drive once it exists.
    pub fn existing(&self, name: &str) -> String {
        format!("file:{}", self.0.join(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn engine(threads: usize) -> Engine {
    engine_with(threads, 8 << 20)
}

/// One with that many bytes for maps.
pub fn engine_with(threads: usize, map_cache: u64) -> Engine {
    Engine::start(&EngineConfig {
        threads,
        ram_tier: 8 << 20,
        map_cache,
        ..EngineConfig::default()
    })
    .unwrap()
}

/// A pool's drives as they are named when it is opened again.
pub fn drives_of(spec: &PoolSpec) -> Vec<String> {
    let drives = spec.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
    drives
        .map(|drive| drive.split('?').next().unwrap().to_owned())
        .collect()
}

/// Ends an engine, when `hard` without shutting it down, and opens its pool in a new one.
pub fn start_again(running: &mut Engine, spec: &PoolSpec, hard: bool) {
    let other = engine(usize::from(spec.shards));
    go_on_in(running, other, spec, hard);
}

/// The same in this new one.
pub fn go_on_in(running: &mut Engine, other: Engine, spec: &PoolSpec, hard: bool) {
    let before = std::mem::replace(running, other);
    if !hard {
        before.shutdown();
    }
    drop(before);
    running
        .pool_import(&drives_of(spec), &spec.name, false)
        .unwrap();
}

pub fn vdrive(tier: Tier, layout: LayoutSpec, drives: &[String]) -> VdriveSpec {
    VdriveSpec {
        tier,
        layout,
        drives: drives.to_vec(),
    }
}

pub fn pool(name: &str, shards: u16, vdrives: Vec<VdriveSpec>) -> PoolSpec {
    PoolSpec {
        name: name.into(),
        vdrives,
        policy: SpacePolicy::SlowFirst,
        shards,
        force: false,
        accept_unmirrored: true,
    }
}

/// One fast file over one slow file.
pub fn tiered(folder: &Folder, name: &str, shards: u16, fast_mib: u64, slow_mib: u64) -> PoolSpec {
    let drives = [
        folder.drive("fast", fast_mib),
        folder.drive("slow", slow_mib),
    ];
    tiered_of(name, shards, &drives)
}

/// The first of two drives over the second.
pub fn tiered_of(name: &str, shards: u16, drives: &[String; 2]) -> PoolSpec {
    let fast = vdrive(Tier::Fast, LayoutSpec::Concat, &drives[..1]);
    let slow = vdrive(Tier::Slow, LayoutSpec::Concat, &drives[1..]);
    pool(name, shards, vec![fast, slow])
}

pub fn volume(name: &str, mib: u64) -> VolumeSpec {
    VolumeSpec {
        name: name.into(),
        size: mib * MIB,
        lba_size: 512,
        thick: false,
        quota: 0,
        reservation: 0,
    }
}

/// Sends on what has ended.
pub struct Answer(pub Mutex<Sender<Completion>>);

impl CompletionSink for Answer {
    fn complete(&self, completion: Completion) {
        let _ = self.0.lock().unwrap().send(completion);
    }
}

/// A volume whose operations are waited for.
#[derive(Clone)]
pub struct Client(pub Arc<dyn BlockDevice>);

impl Client {
    pub fn open(engine: &Engine, pool: &str, volume: &str) -> Self {
        Self(engine.volume_open(pool, volume, None).unwrap())
    }

    pub fn run(&self, kind: OpKind, offset: u64, len: u64, buf: IoBuf, fua: bool) -> Completion {
        let flags = OpFlags {
            fua,
            ..OpFlags::default()
        };
        self.run_with(kind, flags, offset, len, buf)
    }

    pub fn run_with(
        &self,
        kind: OpKind,
        flags: OpFlags,
        offset: u64,
        len: u64,
        buf: IoBuf,
    ) -> Completion {
        self.submit_all([(kind, flags, offset, len, buf)])
            .pop()
            .unwrap()
    }

    /// Runs a few concurrent operations and waits for all; returns their ends in the order of the operations.
    fn submit_all(
        &self,
        operations: impl IntoIterator<Item = (OpKind, OpFlags, u64, u64, IoBuf)>,
    ) -> Vec<Completion> {
        let (give, take) = channel();
        let done = Arc::new(Answer(Mutex::new(give)));
        let mut count = 0;
        for (kind, flags, offset, len, buf) in operations {
            let op = Op {
                tag: count,
                kind,
                flags,
                offset,
                len,
                buf,
                done: done.clone(),
            };
            self.0.submit(op).expect("few operations are in flight");
            count += 1;
        }
        let next = || take.recv_timeout(std::time::Duration::from_secs(300));
        let mut ended: Vec<_> = (0..count).map(|_| next().expect("an answer")).collect();
        ended.sort_by_key(|completion| completion.tag);
        assert!((0..count).eq(ended.iter().map(|completion| completion.tag)));
        ended
    }

    /// Writes a few pieces side by side; the results are in their order.
    pub fn write_all(&self, pieces: &[(u64, Vec<u8>)]) -> Vec<Result<(), IoError>> {
        let operations = pieces.iter().map(|(offset, bytes)| {
            let buf = IoBuf::from_bytes(bytes.as_slice().into());
            let len = bytes.len() as u64;
            (OpKind::Write, OpFlags::default(), *offset, len, buf)
        });
        let ended = self.submit_all(operations);
        ended.into_iter().map(|ended| ended.result).collect()
    }

    /// Discards a few ranges of `len` bytes side by side.
    pub fn discard_all(&self, offsets: impl IntoIterator<Item = u64>, len: u64) {
        let operations = offsets.into_iter().map(|offset| {
            let flags = OpFlags::default();
            (OpKind::Discard, flags, offset, len, IoBuf::empty())
        });
        for ended in self.submit_all(operations) {
            ended.result.unwrap();
        }
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), IoError> {
        self.run(
            OpKind::Write,
            offset,
            bytes.len() as u64,
            IoBuf::from_bytes(bytes.into()),
            false,
        )
        .result
    }

    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, IoError> {
        let answer = self.run(OpKind::Read, offset, len as u64, IoBuf::zeroed(len), false);
        answer.result?;
        Ok(answer.buf.into_bytes().unwrap().into_vec())
    }

    pub fn flush(&self) -> Result<(), IoError> {
        self.run(OpKind::Flush, 0, 0, IoBuf::empty(), false).result
    }

    pub fn discard(&self, offset: u64, len: u64) -> Result<(), IoError> {
        self.run(OpKind::Discard, offset, len, IoBuf::empty(), false)
            .result
    }

    pub fn status(&self, offset: u64, len: u64) -> Vec<(u64, bool)> {
        let answer = self.run(OpKind::Status, offset, len, IoBuf::empty(), false);
        answer.result.unwrap();
        let data = |state| state == block::AllocationState::Data;
        answer
            .extents
            .iter()
            .map(|extent| (extent.len, data(extent.state)))
            .collect()
    }
}

/// Bytes of a sector, the smallest unit that a host writes.
const SECTOR: usize = 512;

/// Bytes that tell their seed and, by sector, their place.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    static FILLER: LazyLock<[u8; SECTOR]> = LazyLock::new(|| {
        let mut random = Random(1);
        std::array::from_fn(|_| random.next() as u8)
    });
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
    let mut bytes = vec![0; len];
    // A word of each sector is its own: tests are hardly optimised, and most of their time went into every word.
    for sector in bytes.chunks_mut(SECTOR) {
        sector.copy_from_slice(&FILLER[..sector.len()]);
        let word = random.next().to_le_bytes();
        let own = sector.len().min(word.len());
        sector[..own].copy_from_slice(&word[..own]);
    }
    bytes
}

/// A repeatable sequence.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Looks, 10 ms apart at least, before what does not come true is given up: far beyond what any of it takes.
pub const LOOKS: usize = 30_000;

/// Waits until a pool's status is as wanted.
pub fn wait_status(
    engine: &Engine,
    pool: &str,
    wanted: impl Fn(&PoolStatus) -> bool,
) -> PoolStatus {
    for _ in 0..LOOKS {
        let status = engine.pool_status(pool).unwrap();
        if wanted(&status) {
            return status;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("it did not come so: {:?}", engine.pool_status(pool));
}

/// Holds a pool's books against its maps. What is demoted meanwhile makes pages differ from what was seen of
/// them a moment before, so a pool that is not at rest is examined again, for a minute at least; what is wrong stays so.
pub fn audit_at_rest(engine: &Engine, pool: &str) {
    for _ in 0..600 {
        if engine.pool_audit(pool).unwrap().count == 0 {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    let audit = engine.pool_audit(pool).unwrap();
    assert_eq!(audit.wrong, Vec::<String>::new(), "{} wrong", audit.count);
}

/// Waits for a job's end and returns its state and message.
pub fn wait_job(engine: &Engine, job: u64) -> (String, String) {
    for _ in 0..LOOKS {
        let jobs = engine.jobs().unwrap();
        let found = jobs.iter().find(|known| known.id == job).unwrap();
        if found.state != "running" {
            return (found.state.clone(), found.message.clone());
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("the job did not end");
}

/// Turns a byte over wherever a drive holds exactly this block; returns how often it does.
pub fn spoil(folder: &Folder, drive: &str, content: &[u8]) -> usize {
    spoil_all(folder, drive, &[content.to_vec()])
}

/// The same of any of these blocks.
pub fn spoil_all(folder: &Folder, drive: &str, contents: &[Vec<u8>]) -> usize {
    let path = folder.path().join(drive);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let mut found = 0;
    for (at, bytes) in folder.written_blocks(drive) {
        if contents.contains(&bytes) {
            file.write_all_at(&[bytes[0] ^ 1], at).unwrap();
            found += 1;
        }
    }
    found
}

/// Waits until no job runs.
pub fn wait_jobs(engine: &Engine) {
    for _ in 0..LOOKS {
        let jobs = engine.jobs().unwrap();
        let failed = jobs.iter().find(|job| job.state == "failed");
        assert!(failed.is_none(), "{failed:?}");
        if jobs.iter().all(|job| job.state != "running") {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("jobs do not end: {:?}", engine.jobs());
}
