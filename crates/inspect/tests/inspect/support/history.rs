//! A pool at several moments of its life, each with all of its drives, so that drives of one can be put among those of
//! another. All that was written was flushed: what a moment has is certain.

use super::client::{Answer, spec_of};
use super::image::{Image, Random};
use block::{BlockDevice, IoBuf, Op, OpFlags, OpKind};
use engine::{Engine, EngineConfig, VolumeSpec};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

pub const BLOCK: usize = 4096;
/// Blocks of the volume `v`.
pub const BLOCKS: usize = 1024;
/// Blocks of one write.
const RUN: usize = 32;

/// For each block when it was written last: a number that grows; 0: never.
pub type Stamps = Vec<u64>;

/// The pool at one moment.
pub struct Moment {
    pub drives: Vec<Image>,
    pub stamps: Stamps,
}

/// What is in a block that was written then.
fn content(block: usize, stamp: u64) -> Vec<u8> {
    let word = (block as u64) << 32 | stamp;
    word.to_le_bytes().repeat(BLOCK / 8)
}

/// When this content of a block was written; none when it is of no time.
pub fn stamp_of(block: usize, bytes: &[u8]) -> Option<u64> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Some(0);
    }
    let word = u64::from_le_bytes(bytes[..8].try_into().ok()?);
    let stamp = word & u64::from(u32::MAX);
    (content(block, stamp) == bytes).then_some(stamp)
}

/// The volume, with operations that are waited for.
pub struct Volume(pub Arc<dyn BlockDevice>);

impl Volume {
    fn run(&self, kind: OpKind, offset: usize, buf: IoBuf, len: usize) -> block::Completion {
        let (give, take) = channel();
        let op = Op {
            tag: 1,
            kind,
            flags: OpFlags::default(),
            offset: offset as u64,
            len: len as u64,
            buf,
            done: Arc::new(Answer(Mutex::new(give))),
        };
        self.0.submit(op).expect("few operations are in flight");
        let wait = std::time::Duration::from_secs(300);
        take.recv_timeout(wait).expect("an answer")
    }

    fn write(&self, first: usize, stamp: u64) {
        let bytes: Vec<u8> = (first..first + RUN)
            .flat_map(|block| content(block, stamp))
            .collect();
        let len = bytes.len();
        let buf = IoBuf::from_bytes(bytes.into());
        let ended = self.run(OpKind::Write, first * BLOCK, buf, len);
        ended.result.unwrap();
    }

    fn flush(&self) {
        let ended = self.run(OpKind::Flush, 0, IoBuf::empty(), 0);
        ended.result.unwrap();
    }

    /// Each block, or nothing where the read fails.
    pub fn read(&self) -> Vec<Option<Vec<u8>>> {
        let read = |first: usize, count: usize| {
            let len = count * BLOCK;
            let ended = self.run(OpKind::Read, first * BLOCK, IoBuf::zeroed(len), len);
            let bytes = ended.result.ok().and_then(|()| ended.buf.into_bytes());
            bytes.map(|bytes| bytes.into_vec())
        };
        let mut all = Vec::new();
        for first in (0..BLOCKS).step_by(RUN) {
            match read(first, RUN) {
                Some(bytes) => all.extend(bytes.chunks(BLOCK).map(|block| Some(block.to_vec()))),
                None => all.extend((first..first + RUN).map(|block| read(block, 1))),
            }
        }
        all
    }
}

pub fn engine() -> Engine {
    Engine::start(&EngineConfig {
        threads: 1,
        ram_tier: 1 << 20,
        map_cache: 1 << 20,
        journal_blocks: Some(64),
        ..EngineConfig::default()
    })
    .unwrap()
}

fn images(folder: &Path, zeroes: &Arc<Vec<u8>>) -> Vec<Image> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    let image = |path: &std::path::PathBuf| {
        let spec = format!("file:{}", path.display());
        Image::sparse(&spec, &std::fs::read(path).unwrap(), zeroes)
    };
    names.iter().map(image).collect()
}

/// A pool at six moments: after an export, and while it is in use, in turn. Nothing is in progress then.
pub fn lived(mirrored: bool, seed: u64) -> Vec<Moment> {
    const MIB: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let zeroes = Arc::new(vec![0; 32 * MIB]);
    let engine = engine();
    let mut random = Random(seed);
    let spec = spec_of(folder.path(), mirrored, [32, 32], 1);
    engine.pool_create(&spec).unwrap();
    let volume = VolumeSpec {
        name: "v".into(),
        size: (BLOCKS * BLOCK) as u64,
        lba_size: 4096,
        thick: false,
        quota: 0,
        reservation: 0,
    };
    engine.volume_create("tank", &volume).unwrap();
    let (mut stamps, mut moments) = (vec![0; BLOCKS], Vec::new());
    for round in 1..=3 {
        let volume = Volume(engine.volume_open("tank", "v", None).unwrap());
        let stamp = |turn: u64| 100 * round + turn;
        for turn in 0..20 {
            let all = round == 1 || random.below(3) == 0;
            let first = match all && turn == 0 {
                true => 0,
                false => random.below((BLOCKS / RUN) as u64) as usize * RUN,
            };
            let end = if all && turn == 0 {
                BLOCKS
            } else {
                first + RUN
            };
            for first in (first..end).step_by(RUN) {
                volume.write(first, stamp(turn));
                stamps[first..first + RUN].fill(stamp(turn));
            }
            if turn == 9 && random.below(2) == 0 {
                engine.pool_cool("tank").unwrap();
            }
        }
        volume.flush();
        // Two looks are the same: nothing moves any longer.
        let mut drives = images(folder.path(), &zeroes);
        loop {
            let again = images(folder.path(), &zeroes);
            let same = drives
                .iter()
                .zip(&again)
                .all(|(one, other)| one.written() == other.written());
            drives = again;
            if same {
                break;
            }
        }
        moments.push(Moment {
            drives,
            stamps: stamps.clone(),
        });
        drop(volume);
        engine.pool_export("tank").unwrap();
        let drives = images(folder.path(), &zeroes);
        let specs: Vec<String> = drives.iter().map(|drive| drive.spec().to_owned()).collect();
        moments.push(Moment {
            drives,
            stamps: stamps.clone(),
        });
        engine.pool_import(&specs, "tank", false).unwrap();
    }
    engine.shutdown();
    moments
}
