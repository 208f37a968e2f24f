use super::*;
use crate::shard::{InFlight, ShardPort};
use block::ErrorKind;
use reactor::{Clock, Handle};
use std::collections::VecDeque;
use std::task::Waker;

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        1
    }
}

#[derive(Default)]
struct Told(Mutex<Vec<Completion>>);

impl CompletionSink for Told {
    fn complete(&self, completion: Completion) {
        self.0.lock().unwrap().push(completion);
    }
}

/// Two shards, and an operation on 64 TiB without a few blocks that begins.
fn begun(kind: OpKind) -> (Ports, Arc<Told>) {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let port = || (ShardPort::new(handle.remote()), InFlight::default());
    let ports: Ports = Arc::new([port(), port()]);
    let told = Arc::new(Told::default());
    let op = Op {
        tag: 7,
        kind,
        flags: OpFlags::default(),
        offset: 4096,
        len: (64 << 40) - 8192,
        buf: IoBuf::empty(),
        done: told.clone(),
    };
    Sequence::begin(ports.clone(), (3, 3), op, Asker::default());
    (ports, told)
}

/// What both shards have to do now.
fn taken(ports: &Ports) -> Vec<ShardOp> {
    let mut all = Vec::new();
    for (shard, (port, _)) in ports.iter().enumerate() {
        let mut queue = VecDeque::new();
        let _ = port.poll_take(Waker::noop(), &mut queue);
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
            assert!(ops.len() <= WINDOW);
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
    assert_eq!(ops.len(), WINDOW);
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
