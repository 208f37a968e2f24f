//! Drives in this process's memory, which the engine reads and writes without a request: what is wrong
//! there is noticed, and repaired where there is another copy.

use crate::support::memory::{MemoryDrive, attach, detach};
use crate::support::{Answer, BLOCK, Client, engine, pattern, pool, vdrive, volume};
use block::{Completion, ErrorKind, IoBuf, Op, OpFlags, OpKind};
use engine::{Engine, LayoutSpec, Tier};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BLOCKS: u64 = 512;

fn content(block: u64) -> Vec<u8> {
    pattern(block + 1, BLOCK as usize)
}

/// Two drives with a volume that was written.
fn written(names: [&str; 2], layout: LayoutSpec) -> (Engine, [MemoryDrive; 2]) {
    let engine = engine(1);
    let drives = names.map(|name| MemoryDrive::new(name, 96).in_place());
    attach(&drives);
    let fast = vdrive(Tier::Fast, layout, &names.map(str::to_owned));
    engine.pool_create(&pool("tank", 1, vec![fast])).unwrap();
    detach(&drives);
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    for block in 0..BLOCKS {
        client.write(block * BLOCK, &content(block)).unwrap();
    }
    (engine, drives)
}

/// Empties every second block of the volume on a drive; returns how many it had.
fn empty_some(drive: &MemoryDrive) -> usize {
    let wanted: Vec<_> = (0..BLOCKS).step_by(2).map(content).collect();
    drive.empty(|bytes| wanted.iter().any(|wanted| wanted == bytes))
}

#[test]
fn what_is_wrong_on_one_member_is_read_from_the_other_and_mended() {
    let (engine, drives) = written(["rot:in-a", "rot:in-b"], LayoutSpec::Mirror);
    assert_eq!(empty_some(&drives[0]) as u64, BLOCKS / 2);
    let client = Client::open(&engine, "tank", "v");
    // Reads go to the members in turn: with an odd number of them, rounds differ.
    for _ in 0..8 {
        for block in (0..BLOCKS).chain([1]) {
            assert!(client.read(block * BLOCK, BLOCK as usize).unwrap() == content(block));
        }
    }
    assert_eq!(
        empty_some(&drives[0]) as u64,
        BLOCKS / 2,
        "they were there again"
    );
    drop(client);
    engine.shutdown();
}

#[test]
fn what_is_wrong_and_has_no_copy_is_an_error_and_never_data() {
    let (engine, drives) = written(["rot:in-c", "rot:in-d"], LayoutSpec::Concat);
    let lost: usize = drives.iter().map(empty_some).sum();
    assert_eq!(lost as u64, BLOCKS / 2);
    let client = Client::open(&engine, "tank", "v");
    for block in 0..BLOCKS {
        match client.read(block * BLOCK, BLOCK as usize) {
            Ok(bytes) => assert!(block % 2 == 1 && bytes == content(block), "block {block}"),
            Err(error) => assert_eq!((block % 2, error.kind), (0, ErrorKind::Medium)),
        }
    }
    // What is written again is right again; parts of what is lost cannot be.
    client.write(0, &content(7)).unwrap();
    assert!(client.read(0, BLOCK as usize).unwrap() == content(7));
    assert!(client.write(2 * BLOCK, &[1; 512]).is_err());
    drop(client);
    engine.shutdown();
}

#[test]
fn every_member_has_what_was_written() {
    let (engine, drives) = written(["rot:in-e", "rot:in-f"], LayoutSpec::Mirror);
    for drive in &drives {
        assert_eq!(empty_some(drive) as u64, BLOCKS / 2);
    }
    engine.shutdown();
}

/// Tags of so much that has ended, all of it well.
fn tags(ended: &Receiver<Completion>, count: usize) -> BTreeSet<u64> {
    let next = || ended.recv_timeout(Duration::from_secs(60)).unwrap();
    let tags = (0..count).map(|_| next()).map(|completion| {
        assert!(completion.result.is_ok());
        completion.tag
    });
    tags.collect()
}

#[test]
fn writes_that_come_together_are_told_and_counted_each_by_whom_and_as_large_as_it_was() {
    let (engine, _drives) = written(["rot:in-g", "rot:in-h"], LayoutSpec::Concat);
    let opened = |export| {
        Client(
            engine
                .volume_open_export("tank", "v", export, None)
                .unwrap(),
        )
    };
    let (one, two) = (opened("one"), opened("two"));
    let [(ones, ones_ended), (twos, twos_ended)] = [(); 2].map(|()| {
        let (give, take) = channel();
        (Arc::new(Answer(Mutex::new(give))), take)
    });
    // By two exports, of two sizes: some of the same kind in a row, and some of each alone.
    let long = 4 * BLOCK;
    let asks = [
        (&one, &ones, BLOCK),
        (&one, &ones, BLOCK),
        (&two, &twos, BLOCK),
        (&two, &twos, long),
        (&one, &ones, long),
    ];
    let (mut at, mut sent) = (0, [BTreeSet::new(), BTreeSet::new()]);
    for round in 0..40 {
        for (client, done, len) in asks.into_iter().skip(round % 2) {
            let op = Op {
                tag: at,
                kind: OpKind::Write,
                flags: OpFlags::default(),
                offset: at,
                len,
                buf: IoBuf::from_bytes(pattern(at, len as usize).into()),
                done: done.clone() as _,
            };
            assert!(client.0.submit(op).is_ok());
            sent[usize::from(Arc::ptr_eq(done, &twos))].insert((at, len));
            at += len;
        }
    }
    for (ended, sent) in [ones_ended, twos_ended].iter().zip(&sent) {
        let wanted: BTreeSet<u64> = sent.iter().map(|(at, _)| *at).collect();
        assert_eq!(tags(ended, wanted.len()), wanted);
    }
    for (at, len) in sent.iter().flatten() {
        let len = *len as usize;
        assert!(one.read(*at, len).unwrap() == pattern(*at, len));
    }
    let look = engine.look().into_iter().next().unwrap();
    let counted = |export: &str| {
        let found = look.exports.iter().find(|look| look.name == export);
        let (counters, writes) = found
            .map(|look| (look.counters, look.spread.writes))
            .unwrap();
        let times: u64 = writes.times.iter().sum();
        let bytes = writes.sizes[3] * BLOCK + writes.sizes[5] * long;
        assert_eq!((counters.writes, counters.write_bytes), (times, bytes));
        [writes.sizes[3], writes.sizes[5]]
    };
    assert_eq!((counted("one"), counted("two")), ([60, 40], [40, 40]));
    assert_eq!(look.volumes[0].counters.writes, BLOCKS + 180);
    engine.shutdown();
}
