//! Pools made by the engine: two volumes with a known content, spread over all kinds of places.

use super::image::{Image, Random};
use block::{BlockDevice, Completion, CompletionSink, IoBuf, Op, OpFlags, OpKind};
use engine::{
    Engine, EngineConfig, LayoutSpec, PoolSpec, SpacePolicy, Tier, VdriveSpec, VolumeSpec,
};
use format::{JournalHeader, Label, Record, open_page};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use units::ShardId;

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// How a pool is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Both tiers are mirrors of two drives; else one fast drive and a stripe of two slow ones.
    pub mirrored: bool,
    /// It was exported in order; else its drives were taken away while it was in use.
    pub clean: bool,
}

/// Every way of making one.
pub const SHAPES: [Shape; 4] = [
    Shape {
        mirrored: true,
        clean: true,
    },
    Shape {
        mirrored: true,
        clean: false,
    },
    Shape {
        mirrored: false,
        clean: true,
    },
    Shape {
        mirrored: false,
        clean: false,
    },
];

/// Blocks of a volume and what was written to them.
pub type Content = BTreeMap<u64, Vec<u8>>;

/// A pool and what is in it.
pub struct Made {
    pub drives: Vec<Image>,
    /// Volumes by name: size in bytes, and the content of blocks that were written.
    pub volumes: BTreeMap<String, (u64, Content)>,
}

impl Made {
    /// The same pool, from here on apart.
    pub fn copy(&self) -> Vec<Image> {
        self.drives.iter().map(Image::copy).collect()
    }
}

pub struct Answer(pub Mutex<Sender<Completion>>);

impl CompletionSink for Answer {
    fn complete(&self, completion: Completion) {
        let _ = self.0.lock().unwrap().send(completion);
    }
}

struct Client {
    device: Arc<dyn BlockDevice>,
    content: Content,
}

impl Client {
    fn run(&self, kind: OpKind, offset: u64, len: u64, buf: IoBuf) {
        let (give, take) = channel();
        let op = Op {
            tag: 1,
            kind,
            flags: OpFlags::default(),
            offset,
            len,
            buf,
            done: Arc::new(Answer(Mutex::new(give))),
        };
        self.device
            .submit(op)
            .expect("few operations are in flight");
        let wait = std::time::Duration::from_secs(60);
        take.recv_timeout(wait).expect("an answer").result.unwrap();
    }

    fn write(&mut self, random: &mut Random, first: u64, count: u64) {
        let mut bytes = Vec::new();
        for block in first..first + count {
            let content: Vec<u8> = (0..BLOCK / 8)
                .flat_map(|_| random.next().to_le_bytes())
                .collect();
            bytes.extend_from_slice(&content);
            self.content.insert(block, content);
        }
        self.run(
            OpKind::Write,
            first * BLOCK,
            count * BLOCK,
            IoBuf::from_bytes(bytes.into()),
        );
    }

    fn discard(&mut self, first: u64, count: u64) {
        self.run(
            OpKind::Discard,
            first * BLOCK,
            count * BLOCK,
            IoBuf::empty(),
        );
        (first..first + count).for_each(|block| drop(self.content.remove(&block)));
    }

    fn read(&self, first: u64, count: u64) {
        let len = count * BLOCK;
        self.run(
            OpKind::Read,
            first * BLOCK,
            len,
            IoBuf::zeroed(len as usize),
        );
    }

    fn flush(&self) {
        self.run(OpKind::Flush, 0, 0, IoBuf::empty());
    }
}

fn spec(folder: &Path, mirrored: bool) -> PoolSpec {
    let mib = if mirrored { [48, 96] } else { [64, 64] };
    spec_of(folder, mirrored, mib, 2)
}

/// A pool on files of so many MiB, fast and slow.
pub fn spec_of(folder: &Path, mirrored: bool, [fast, slow]: [u64; 2], shards: u16) -> PoolSpec {
    let drive = |name: &str, mib: u64| format!("file:{}?size={mib}M", folder.join(name).display());
    let vdrive = |tier, layout, drives| VdriveSpec {
        tier,
        layout,
        drives,
    };
    let vdrives = if mirrored {
        vec![
            vdrive(
                Tier::Fast,
                LayoutSpec::Mirror,
                vec![drive("fast0", fast), drive("fast1", fast)],
            ),
            vdrive(
                Tier::Slow,
                LayoutSpec::Mirror,
                vec![drive("slow0", slow), drive("slow1", slow)],
            ),
        ]
    } else {
        let stripe = LayoutSpec::Stripe { chunk: 64 << 10 };
        vec![
            vdrive(Tier::Fast, LayoutSpec::Concat, vec![drive("fast0", fast)]),
            vdrive(
                Tier::Slow,
                stripe,
                vec![drive("slow0", slow), drive("slow1", slow)],
            ),
        ]
    };
    PoolSpec {
        name: "tank".into(),
        vdrives,
        policy: SpacePolicy::SlowFirst,
        shards,
        force: false,
        accept_unmirrored: true,
    }
}

/// Creates a pool with the engine and takes images of its drives.
pub fn made(shape: Shape, seed: u64) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&EngineConfig {
        threads: 2,
        ram_tier: 4 << 20,
        map_cache: 4 << 20,
        journal_blocks: Some(256),
        ..EngineConfig::default()
    })
    .unwrap();
    engine
        .pool_create(&spec(folder.path(), shape.mirrored))
        .unwrap();
    let mut random = Random(seed);
    let mut clients = BTreeMap::new();
    // The second spans two regions, and so both shards.
    for (name, size) in [("small", 24 * MIB), ("wide", 600 * MIB)] {
        let volume = VolumeSpec {
            name: name.into(),
            size,
            lba_size: 512,
            thick: false,
            quota: 0,
            reservation: 0,
        };
        engine.volume_create("tank", &volume).unwrap();
        let device = engine.volume_open("tank", name, None).unwrap();
        let content = BTreeMap::new();
        clients.insert(name, (size, Client { device, content }));
    }
    for (size, client) in clients.values_mut() {
        let all = *size / BLOCK;
        for _ in 0..60 {
            let first = random.below(all - 64);
            let count = 1 + random.below(48);
            client.write(&mut random, first, count);
        }
        client.write(&mut random, 0, 200);
        client.flush();
    }
    // Everything sinks to the slow tier, so that there are homes, packed slots, and, once some
    // was read again, copies on the fast one.
    engine.pool_cool("tank").unwrap();
    reopen(&engine, folder.path(), &mut clients);
    for (_, client) in clients.values_mut() {
        for _ in 0..3 {
            client.read(0, 128);
        }
        let first = random.below(4000);
        client.write(&mut random, first, 40);
        client.discard(20, 13);
        client.flush();
    }
    if shape.clean {
        let devices: Vec<_> = clients
            .values()
            .map(|(size, client)| (*size, client.content.clone()))
            .collect();
        let names: Vec<_> = clients.keys().map(|name| (*name).to_owned()).collect();
        drop(clients);
        engine.pool_export("tank").unwrap();
        let drives = images(folder.path());
        engine.shutdown();
        return Made {
            drives,
            volumes: names.into_iter().zip(devices).collect(),
        };
    }
    // The drives at one moment, as a power cut would leave them: two looks are the same.
    let mut drives = images(folder.path());
    loop {
        let again = images(folder.path());
        let same = drives
            .iter()
            .zip(&again)
            .all(|(one, other)| one.is_same(other));
        drives = again;
        if same {
            break;
        }
    }
    let volumes = clients
        .iter()
        .map(|(name, (size, client))| ((*name).to_owned(), (*size, client.content.clone())))
        .collect();
    drop(clients);
    engine.shutdown();
    Made { drives, volumes }
}

/// Bytes of the volume `v` of [`pool_of_one_drive`].
const ONE_SIZE: u64 = 8 * MIB;

/// A pool of one drive in a folder, with an empty volume `v`.
fn pool_of_one_drive(folder: &Path) -> (Engine, Client) {
    let engine = Engine::start(&EngineConfig {
        threads: 1,
        ram_tier: 1 << 20,
        map_cache: 1 << 20,
        ..EngineConfig::default()
    })
    .unwrap();
    let drive = format!("file:{}?size=64M", folder.join("fast0").display());
    let one = VdriveSpec {
        tier: Tier::Fast,
        layout: LayoutSpec::Concat,
        drives: vec![drive],
    };
    let mut spec = spec(folder, false);
    (spec.vdrives, spec.shards) = (vec![one], 1);
    engine.pool_create(&spec).unwrap();
    let volume = VolumeSpec {
        name: "v".into(),
        size: ONE_SIZE,
        lba_size: 512,
        thick: false,
        quota: 0,
        reservation: 0,
    };
    engine.volume_create("tank", &volume).unwrap();
    let client = Client {
        device: engine.volume_open("tank", "v", None).unwrap(),
        content: BTreeMap::new(),
    };
    (engine, client)
}

/// A pool of one drive whose volume `v` has blocks that were written, flushed, written again and
/// flushed, with no record after that: the journal does not say that these are durable.
pub fn written_twice() -> Made {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut client) = pool_of_one_drive(folder.path());
    let mut random = Random(7);
    for _ in 0..2 {
        client.write(&mut random, 0, 16);
        client.flush();
    }
    let drives = images(folder.path());
    // As it was before the mark that says so, if that has come already. A slow machine has one after the first flush, too:
    // that one stays, a journal has no gaps.
    let place = |header: &JournalHeader| (header.epoch, header.sequence);
    let pages = journal_pages(&drives[0], |records| !records.is_empty());
    let last = pages.iter().map(|(_, header)| place(header)).max().unwrap();
    for (block, header) in journal_pages(&drives[0], |records| records.is_empty()) {
        if place(&header) > last {
            drives[0].set_block(block, vec![0; BLOCK as usize]);
        }
    }
    let volumes = BTreeMap::from([("v".to_owned(), (ONE_SIZE, client.content.clone()))]);
    drop(client);
    engine.shutdown();
    Made { drives, volumes }
}

/// Pages of the first shard's journal with such records: where they lie, and what they say.
pub fn journal_pages(
    drive: &Image,
    wanted: impl Fn(&[Record]) -> bool,
) -> Vec<(u64, JournalHeader)> {
    let label: Vec<u8> = (0..256).flat_map(|block| drive.block(block)).collect();
    let pool = Label::decode(&label).unwrap().pool;
    let page = |block: u64| {
        let bytes = drive.block(block);
        let (header, records) = open_page(&bytes, pool, ShardId(0)).ok().flatten()?;
        wanted(&records).then_some((block, header))
    };
    (0..drive.blocks()).filter_map(page).collect()
}

/// A pool of one drive whose volume `v` has so many blocks that were written, and again one after the other, each flushed: each
/// is in a page of the journal of its own.
pub fn written_in_pages(blocks: u64) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut client) = pool_of_one_drive(folder.path());
    let mut random = Random(9);
    client.write(&mut random, 0, blocks);
    client.flush();
    for block in 0..blocks {
        client.write(&mut random, block, 1);
        client.flush();
    }
    let drives = images(folder.path());
    let volumes = BTreeMap::from([("v".to_owned(), (ONE_SIZE, client.content.clone()))]);
    drop(client);
    engine.shutdown();
    Made { drives, volumes }
}

/// A pool of one drive with a snapshot of its volume `v`, which was written to and discarded in part since. As
/// `v@s` the snapshot's content.
pub fn changed_since_a_snapshot() -> Made {
    let folder = tempfile::tempdir().unwrap();
    let (engine, mut client) = pool_of_one_drive(folder.path());
    let mut random = Random(8);
    client.write(&mut random, 0, 64);
    client.write(&mut random, 600, 8);
    engine
        .snapshot_create("tank", &["v".to_owned()], "s", 1)
        .unwrap();
    let before = client.content.clone();
    client.write(&mut random, 4, 8);
    client.discard(20, 13);
    client.discard(600, 4);
    client.flush();
    let after = client.content.clone();
    drop(client);
    engine.pool_export("tank").unwrap();
    let drives = images(folder.path());
    engine.shutdown();
    let volumes = [("v@s", before), ("v", after)];
    let volumes = volumes.map(|(name, content)| (name.to_owned(), (ONE_SIZE, content)));
    Made {
        drives,
        volumes: volumes.into(),
    }
}

/// Closes the pool and opens it again, which makes checkpoints.
fn reopen(engine: &Engine, folder: &Path, clients: &mut BTreeMap<&str, (u64, Client)>) {
    engine.pool_export("tank").unwrap();
    let drives: Vec<String> = images(folder)
        .iter()
        .map(|image| image.spec().to_owned())
        .collect();
    engine.pool_import(&drives, "tank", false).unwrap();
    for (name, (_, client)) in clients {
        client.device = engine.volume_open("tank", name, None).unwrap();
    }
}

fn images(folder: &Path) -> Vec<Image> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    let image = |path: &std::path::PathBuf| {
        Image::new(
            &format!("file:{}", path.display()),
            std::fs::read(path).unwrap(),
        )
    };
    names.iter().map(image).collect()
}
