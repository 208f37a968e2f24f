//! Fills of misses when many wait for a disk.

use crate::support::{BLOCK, Client, Folder, MIB, Random, engine, pattern, pool, vdrive, volume};
use block::{Completion, CompletionSink, IoBuf, Op, OpFlags, OpKind};
use engine::{Cause, Engine, LayoutSpec, Tier};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Regions of 16 MiB, the misses in each, and how far apart they are: none is near another.
const REGIONS: u64 = 8;
const MISSES: u64 = 8;
/// Tries at most until most of the misses wait.
const TRIES: usize = 50;
const REGION: u64 = 16 * MIB;
const APART: u64 = REGION / MISSES;

struct Answers(Mutex<Sender<Completion>>);

impl CompletionSink for Answers {
    fn complete(&self, completion: Completion) {
        self.0.lock().unwrap().send(completion).unwrap();
    }
}

/// A cold volume on a modelled disk; each block holds the pattern of its offset.
fn cold(folder: &Folder) -> Engine {
    let slow = format!("model:hdd-7200:{}", folder.drive("slow", 512));
    let vdrives = vec![
        vdrive(Tier::Fast, LayoutSpec::Concat, &[folder.drive("fast", 256)]),
        vdrive(Tier::Slow, LayoutSpec::Concat, &[slow]),
    ];
    let engine = engine(1);
    engine.pool_create(&pool("tank", 1, vdrives)).unwrap();
    let size = REGIONS * REGION;
    (engine.volume_create("tank", &volume("v", size / MIB))).unwrap();
    let client = Client::open(&engine, "tank", "v");
    for offset in (0..size).step_by(MIB as usize) {
        let blocks = (offset..offset + MIB).step_by(BLOCK as usize);
        let bytes: Vec<u8> = blocks.flat_map(|at| pattern(at, BLOCK as usize)).collect();
        client.write(offset, &bytes).unwrap();
    }
    engine.pool_cool("tank").unwrap();
    engine
}

/// Reads all of them concurrently, and verifies the data.
fn read(client: &Client, offsets: &[u64]) {
    let (give, take): (_, Receiver<Completion>) = channel();
    let done = Arc::new(Answers(Mutex::new(give)));
    for (tag, offset) in offsets.iter().enumerate() {
        let op = Op {
            tag: tag as u64,
            kind: OpKind::Read,
            flags: OpFlags::default(),
            offset: *offset,
            len: BLOCK,
            buf: IoBuf::zeroed(BLOCK as usize),
            done: done.clone(),
        };
        client.0.submit(op).expect("few are in flight");
    }
    for _ in offsets {
        let answer = take.recv_timeout(std::time::Duration::from_secs(60));
        let answer = answer.expect("an answer");
        let bytes = answer.buf.into_bytes().unwrap();
        answer.result.unwrap();
        let offset = offsets[answer.tag as usize];
        assert!(
            *bytes == pattern(offset, BLOCK as usize)[..],
            "read at {offset}"
        );
    }
}

fn moves(engine: &Engine, cause: Cause) -> u64 {
    let counts = engine.pool_moves("tank").unwrap();
    let of_cause = counts.iter().filter(|count| count.cause == cause);
    of_cause.map(|count| count.moves).sum()
}

#[test]
fn misses_that_wait_are_fetched_as_the_region_that_they_make_together() {
    // One after the other in all regions, so that none is dense until most of them are known.
    let mut random = Random(5);
    let offsets = (0..MISSES).flat_map(|miss| (0..REGIONS).map(move |region| (miss, region)));
    let offsets: Vec<u64> = offsets
        .map(|(miss, region)| region * REGION + miss * APART + random.below(16) * BLOCK)
        .collect();
    let alone = || {
        let folder = Folder::new();
        let engine = cold(&folder);
        read(&Client::open(&engine, "tank", "v"), &offsets);
        moves(&engine, Cause::Missed)
    };
    // As they come, five of the eight in each region are fetched alone. Some have their turn at once: on a busy machine
    // mostly, before the others are requested.
    let tries: Vec<u64> = (0..TRIES)
        .map(|_| alone())
        .take_while(|alone| *alone >= REGIONS * 4)
        .collect();
    assert!(tries.len() < TRIES, "{tries:?} of {} alone", offsets.len());
}

#[test]
fn many_that_wait_for_one_extent_read_it_once() {
    let folder = Folder::new();
    let engine = cold(&folder);
    let client = Client::open(&engine, "tank", "v");
    let far = REGIONS * REGION / 64;
    // Others are at the disk, while these wait.
    let others = (1..33).map(|at| at * far);
    let same = (0..48).map(|at| at % 16 * BLOCK);
    read(&client, &others.chain(same).collect::<Vec<u64>>());
    let missed = moves(&engine, Cause::Missed) + moves(&engine, Cause::CameAlong);
    assert!(missed >= 33);
    let reads = engine.pool_moves("tank").unwrap();
    assert!(moves(&engine, Cause::Missed) <= 33, "{reads:?}");
}
