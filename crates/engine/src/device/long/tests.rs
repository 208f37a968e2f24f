use super::*;
use crate::shard::{InFlight, ShardPort};
use block::ErrorKind;
use reactor::{Clock, Handle};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        1
    }
}

#[derive(Default)]
struct Told(Mutex<Vec<Completion>>, AtomicBool);

impl CompletionSink for Told {
    fn complete(&self, completion: Completion) {
        self.0.lock().unwrap().push(completion);
    }

    fn is_wanted(&self) -> bool {
        !self.1.load(Ordering::Relaxed)
    }
}

const MIB: u64 = 1 << 20;

struct Scene {
    ports: Ports,
    long: Arc<LongOps>,
    told: Arc<Told>,
}

/// Two shards, and nothing in progress.
fn scene() -> Scene {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let port = || (ShardPort::new(handle.remote()), InFlight::default());
    let ports: Ports = Arc::new([port(), port()]);
    Scene {
        long: LongOps::new(ports.clone(), (3, 3)),
        ports,
        told: Arc::default(),
    }
}

impl Scene {
    fn begin(&self, kind: OpKind, tag: u64, offset: u64, len: u64) {
        let buf = match kind {
            OpKind::Read | OpKind::Write => IoBuf::zeroed(len as usize),
            _ => IoBuf::empty(),
        };
        let op = Op {
            tag,
            kind,
            flags: OpFlags::default(),
            offset,
            len,
            buf,
            done: self.told.clone(),
        };
        assert!(self.long.begin(op, Asker::default()).is_ok());
    }

    fn tags(&self) -> Vec<u64> {
        self.told
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|of| of.tag)
            .collect()
    }
}

/// An operation on 64 TiB without a few blocks that begins.
fn begun(kind: OpKind) -> (Ports, Arc<Told>) {
    let scene = scene();
    scene.begin(kind, 7, 4096, (64 << 40) - 8192);
    (scene.ports, scene.told)
}

/// The queues of both shards.
fn taken(ports: &Ports) -> Vec<ShardOp> {
    let mut all = Vec::new();
    for (shard, (port, _)) in ports.iter().enumerate() {
        let mut queue = VecDeque::new();
        // A turn takes a few.
        loop {
            let mut turn = VecDeque::new();
            if port.poll_take(Waker::noop(), &mut turn).is_pending() || turn.is_empty() {
                break;
            }
            queue.append(&mut turn);
        }
        for op in &queue {
            let region = op.op.offset / REGION;
            assert_eq!(shard_of(3, region, 2), shard);
            assert!(op.op.len <= REGION && (op.op.offset + op.op.len - 1) / REGION == region);
        }
        all.extend(queue);
    }
    all
}

fn end(op: ShardOp, result: Result<(), IoError>) {
    let ShardOp { op, under_way, .. } = op;
    drop(under_way);
    op.done.complete(Completion {
        tag: op.tag,
        result,
        buf: op.buf,
        extents: Vec::new(),
    });
}

#[test]
fn a_discard_of_everything_is_in_few_regions_at_a_time() {
    for kind in [OpKind::Discard, OpKind::WriteZeroes] {
        let (ports, told) = begun(kind);
        let (mut bytes, mut regions, mut next) = (0, 0, 4096);
        loop {
            let ops = taken(&ports);
            assert!(ops.len() as u64 <= BYTES / NO_DATA_BYTES);
            if ops.is_empty() {
                break;
            }
            for op in ops {
                bytes += op.op.len;
                next = next.max(op.op.offset + op.op.len);
                regions += 1;
                assert!(told.0.lock().unwrap().is_empty());
                end(op, Ok(()));
            }
        }
        assert_eq!((bytes, regions), ((64 << 40) - 8192, 1 << 18));
        assert_eq!(next, (64 << 40) - 4096);
        let told = told.0.lock().unwrap();
        assert!(told.len() == 1 && told[0].tag == 7 && told[0].result.is_ok());
    }
}

#[test]
fn an_error_ends_it_once_what_is_under_way_has_ended() {
    let (ports, told) = begun(OpKind::Discard);
    let mut ops = taken(&ports);
    assert_eq!(ops.len() as u64, BYTES / NO_DATA_BYTES);
    end(ops.remove(3), Err(IoError::new(ErrorKind::NoSpace, "full")));
    assert!(taken(&ports).is_empty());
    for op in ops {
        assert!(told.0.lock().unwrap().is_empty());
        end(op, Ok(()));
    }
    let told = told.0.lock().unwrap();
    assert_eq!(told.len(), 1);
    let failed = told[0].result.as_ref().unwrap_err();
    assert_eq!(failed.kind, ErrorKind::NoSpace);
}

#[test]
fn a_pool_that_is_closed_ends_it_at_once() {
    let (ports, told) = begun(OpKind::Discard);
    ports.iter().for_each(|(port, _)| port.close());
    let told = told.0.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].result.as_ref().unwrap_err().kind, ErrorKind::Gone);
}

#[test]
fn long_reads_and_writes_are_cut_into_parts_and_have_so_many_bytes_with_shards_together() {
    for kind in [OpKind::Read, OpKind::Write] {
        let scene = scene();
        let part = match kind {
            OpKind::Read => READ_PART,
            _ => CHUNK as u64,
        };
        let (first, second) = (255 * MIB + 4096, 1024 * MIB);
        scene.begin(kind, 1, first, 64 * MIB);
        scene.begin(kind, 2, second, 24 * MIB);
        let (mut seen, mut round): (Vec<(u64, u64)>, _) = (Vec::new(), 0);
        loop {
            let ops = taken(&scene.ports);
            if ops.is_empty() {
                break;
            }
            let bytes: u64 = ops.iter().map(|op| op.op.len).sum();
            assert!(bytes < BYTES + part, "{bytes}");
            round += 1;
            // The first one had no competition when it arrived.
            if round == 2 {
                let of_second = ops.iter().filter(|op| op.op.offset >= second);
                assert_eq!(
                    of_second.count() as u64,
                    BYTES / part / 2,
                    "they take turns"
                );
            }
            for op in ops {
                assert!(op.op.offset / part == (op.op.offset + op.op.len - 1) / part);
                assert_eq!(op.op.buf.len() as u64, op.op.len);
                seen.push((op.op.offset, op.op.len));
                end(op, Ok(()));
            }
        }
        assert_eq!(scene.tags(), [2, 1]);
        assert_eq!(scene.long.count(), 0);
        let told = scene.told.0.lock().unwrap();
        assert!(told.iter().all(|of| of.result.is_ok()));
        assert_eq!(
            told[1].buf.len() as u64,
            64 * MIB,
            "its memory is whole again"
        );
        seen.sort_unstable();
        let mut next = first;
        for (offset, len) in seen {
            if offset == second {
                assert_eq!(next, first + 64 * MIB);
                next = second;
            }
            assert_eq!(offset, next);
            next += len;
        }
        assert_eq!(next, second + 24 * MIB);
    }
}

#[test]
fn what_is_no_longer_than_a_chunk_is_one_operation_of_a_shard() {
    let scene = scene();
    scene.begin(OpKind::Write, 1, 512 * 1024, MIB);
    let ops = taken(&scene.ports);
    assert_eq!(ops.len(), 1);
    assert_eq!((ops[0].op.offset, ops[0].op.len), (512 * 1024, MIB));
    for op in ops {
        end(op, Ok(()));
    }
    assert_eq!(scene.tags(), [1]);
    assert_eq!(scene.told.0.lock().unwrap()[0].buf.len() as u64, MIB);
    scene.begin(OpKind::Read, 2, 256 * MIB - 65536, 2 * 65536);
    assert_eq!(taken(&scene.ports).len(), 2, "each of one region");
}

#[test]
fn a_shard_takes_short_operations_first_and_few_parts_of_long_ones_in_a_turn() {
    let scene = scene();
    scene.begin(OpKind::Read, 1, 0, 2 * MIB);
    for tag in 2..6 {
        scene.begin(OpKind::Read, tag, 4 * MIB, 128 << 10);
    }
    let port = &scene.ports[shard_of(3, 0, 2)].0;
    let mut turns = Vec::new();
    loop {
        let mut turn = VecDeque::new();
        if port.poll_take(Waker::noop(), &mut turn).is_pending() {
            break;
        }
        turns.push(turn.iter().map(|op| op.op.len >> 10).collect::<Vec<_>>());
        if turns.len() == 1 {
            port.push(ShardOp {
                volume: 3,
                op: Op {
                    tag: 9,
                    kind: OpKind::Read,
                    flags: OpFlags::default(),
                    offset: 0,
                    len: 4096,
                    buf: IoBuf::zeroed(4096),
                    done: scene.told.clone(),
                },
                by: Asker::default(),
                under_way: scene.ports[0].1.one_more(),
            });
        }
    }
    assert_eq!(turns[1][0], 4, "before what came first: {turns:?}");
    assert!(turns.iter().flatten().filter(|kib| **kib == 256).count() == 8);
    assert!(
        turns
            .iter()
            .all(|turn| turn.iter().filter(|kib| **kib > 4).count() <= 2),
        "{turns:?}"
    );
    assert!(
        turns
            .iter()
            .all(|turn| !(turn.contains(&256) && turn.contains(&128))),
        "{turns:?}"
    );
}

#[test]
fn so_many_are_taken_and_a_pool_that_closes_ends_all_of_them() {
    let scene = scene();
    for tag in 0..MOST as u64 {
        scene.begin(OpKind::Read, tag, 0, 128 << 10);
    }
    let one_more = Op {
        tag: 9999,
        kind: OpKind::Read,
        flags: OpFlags::default(),
        offset: 0,
        len: 128 << 10,
        buf: IoBuf::zeroed(128 << 10),
        done: scene.told.clone(),
    };
    assert!(scene.long.begin(one_more, Asker::default()).is_err());
    scene.ports.iter().for_each(|(port, _)| port.close());
    let told = scene.told.0.lock().unwrap();
    assert_eq!(told.len(), MOST);
    assert!(
        told.iter()
            .all(|of| of.result.as_ref().unwrap_err().kind == ErrorKind::Gone)
    );
}

#[test]
fn what_nobody_waits_for_any_more_ends_with_the_parts_that_are_under_way() {
    for kind in [OpKind::Read, OpKind::Write, OpKind::Discard] {
        let scene = scene();
        let len = match kind {
            OpKind::Discard => 64 * REGION,
            _ => 32 * MIB,
        };
        // Of the first some parts begin, of the second none.
        scene.begin(kind, 0, 0, len);
        scene.begin(kind, 1, 0, len);
        scene.told.1.store(true, Ordering::Relaxed);
        let under_way = taken(&scene.ports);
        assert!(!under_way.is_empty(), "{kind:?}");
        for part in under_way {
            end(part, Ok(()));
        }
        assert_eq!(
            taken(&scene.ports).len(),
            0,
            "{kind:?}: nothing more begins"
        );
        let told = scene.told.0.lock().unwrap();
        assert_eq!(told.len(), 2, "{kind:?}");
        for completion in &*told {
            let kind = completion.result.as_ref().map_err(|error| error.kind);
            assert_eq!(kind, Err(ErrorKind::Gone));
        }
        drop(told);
        assert_eq!(scene.long.count(), 0);
    }
}
