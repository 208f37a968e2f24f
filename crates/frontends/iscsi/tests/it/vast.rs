//! Commands over large ranges: executed in bounded pieces that interleave with others, and
//! abandoned when no response is needed.

use crate::support::client::{Client, Pdu};
use crate::support::server::{export, portal_of};
use block::{AllocationState, BlockDevice, Completion, Geometry, IoBuf, Op, OpKind, StatusExtent};
use reactor::{Export, NoKeeper, ReactorThread};
use std::collections::VecDeque;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

const TIB: u64 = 1 << 40;
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
const HOST: &str = "iqn.2026-11.test:host";

/// An operation submitted to the volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    kind: OpKind,
    offset: u64,
    len: u64,
    no_unmap: bool,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    /// Operations that wait while `held`.
    waiting: VecDeque<Op>,
    held: bool,
}

/// A volume of zeroes without storage: 1 GiB at each multiple of 1 TiB has data.
struct Vast {
    size: u64,
    serial: String,
    state: Mutex<State>,
}

impl Vast {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.lock().seen)
    }

    fn hold(&self) {
        self.lock().held = true;
    }

    /// Completes one waiting operation; returns whether there was one.
    fn let_one_go(&self) -> bool {
        let next = self.lock().waiting.pop_front();
        next.map(Self::end).is_some()
    }

    fn is_data(at: u64) -> bool {
        at % TIB < GIB
    }

    fn end(mut op: Op) {
        let mut extents = Vec::new();
        if op.kind == OpKind::Status {
            // A single run, possibly shorter than requested.
            let data = Self::is_data(op.offset);
            let border = match data {
                true => op.offset / TIB * TIB + GIB,
                false => (op.offset / TIB + 1) * TIB,
            };
            extents.push(StatusExtent {
                len: op.len.min(border - op.offset).min(100 * MIB),
                state: match data {
                    true => AllocationState::Data,
                    false => AllocationState::Hole,
                },
            });
        }
        if op.kind == OpKind::Read {
            op.buf.write(0, &vec![0; op.len as usize]);
        }
        op.done.complete(Completion {
            tag: op.tag,
            result: Ok(()),
            buf: std::mem::replace(&mut op.buf, IoBuf::empty()),
            extents,
        });
    }
}

impl BlockDevice for Vast {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size,
            lba_size: 512,
            block_size: 4096,
            read_only: false,
            serial: self.serial.clone(),
        }
    }

    fn submit(&self, op: Op) -> Result<(), Op> {
        let mut state = self.lock();
        state.seen.push(Seen {
            kind: op.kind,
            offset: op.offset,
            len: op.len,
            no_unmap: op.flags.no_unmap,
        });
        if state.held {
            state.waiting.push_back(op);
            return Ok(());
        }
        drop(state);
        Self::end(op);
        Ok(())
    }

    fn on_change(&self, _listener: u64, _waker: Waker) {}

    fn is_gone(&self) -> bool {
        false
    }

    fn bases(&self) -> Vec<(String, u32)> {
        Vec::new()
    }
}

struct Served {
    device: Arc<Vast>,
    target: String,
    export: Box<dyn Export>,
    _loops: Vec<ReactorThread>,
}

fn serve(size: u64) -> Served {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let serial = format!("vast{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let target = format!("iqn.2026-11.test:{serial}");
    let device = Arc::new(Vast {
        size,
        serial,
        state: Mutex::default(),
    });
    let loops = vec![ReactorThread::start("iscsi-vast", 1).unwrap()];
    let parameters = [("portal", "127.0.0.1:0"), ("target", &*target)];
    let memory: (Arc<dyn reactor::Keeper>, _) =
        (Arc::new(NoKeeper), reactor::Budget::new(64 << 20));
    let export = export(device.clone(), memory, &loops, &parameters).unwrap();
    Served {
        device,
        target,
        export,
        _loops: loops,
    }
}

impl Served {
    fn log_in(&self) -> Client {
        let portal = portal_of(&*self.export);
        let keys = "ImmediateData=Yes\0InitialR2T=Yes\0";
        Client::log_in_to(portal, &self.target, HOST, keys).settle()
    }
}

/// Status and data of a command.
fn run(client: &mut Client, cdb: &[u8], data: &[u8]) -> (u8, Vec<u8>) {
    let pdu = command(client, cdb, data);
    client.send(&pdu);
    let answer = client.receive().unwrap();
    (answer.head[3], answer.data)
}

fn command(client: &mut Client, cdb: &[u8], data: &[u8]) -> Pdu {
    match data.len() {
        0 => client.command(0xc1, 65536, cdb),
        len => client.command(0xa1, len as u32, cdb).data(data),
    }
}

/// A 16-byte CDB with a block and a count.
fn sixteen(opcode: u8, flags: u8, lba: u64, count: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (opcode, flags);
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&count.to_be_bytes());
    cdb
}

/// GET LBA STATUS from a block on: first block, count, and whether it is a hole.
fn lba_status(client: &mut Client, lba: u64, allocation: u32) -> Vec<(u64, u64, bool)> {
    let (status, data) = run(client, &sixteen(0x9e, 0x12, lba, allocation), &[]);
    assert_eq!(status, 0);
    let len = u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
    assert_eq!(len, data.len() - 4);
    let list = data[8..].chunks_exact(16);
    let read = |entry: &[u8]| {
        let first = u64::from_be_bytes(entry[..8].try_into().unwrap());
        let count = u32::from_be_bytes(entry[8..12].try_into().unwrap());
        (first, u64::from(count), entry[12] == 1)
    };
    list.map(read).collect()
}

#[test]
fn lba_status_is_returned_in_bounded_parts_without_gaps() {
    let served = serve(5 * TIB);
    let mut client = served.log_in();
    for allocation in [24, 4096] {
        let (mut at, mut data, mut commands) = (0, 0, 0);
        while at < 5 * TIB / 512 {
            served.device.seen();
            for (first, count, hole) in lba_status(&mut client, at, allocation) {
                assert_eq!(first, at, "no gap");
                assert!(count > 0);
                let probe = (at * 512, (at + count) * 512 - 512);
                assert_eq!(Vast::is_data(probe.0), !hole, "{probe:?}");
                assert_eq!(Vast::is_data(probe.1), !hole, "{probe:?}");
                data += if hole { 0 } else { count };
                at += count;
            }
            let seen = served.device.seen();
            let looked_at: u64 = seen.iter().map(|op| op.len).sum();
            assert!(seen.iter().all(|op| op.len <= 256 * MIB), "pieces");
            assert!(
                seen.len() <= 4096 && looked_at <= 128 * GIB,
                "{}",
                seen.len()
            );
            commands += 1;
            assert!(commands < 4096, "each reports a large part");
        }
        assert_eq!(data * 512, 5 * GIB);
    }
    // The last blocks, and beyond.
    assert_eq!(lba_status(&mut client, 5 * TIB / 512 - 1, 4096).len(), 1);
    assert_eq!(
        run(&mut client, &sixteen(0x9e, 0x12, 5 * TIB / 512, 64), &[]).0,
        2
    );
}

/// A command with its data; the kind of its operations, the maximum and total size, and whether
/// space is kept.
type Case<'a> = (&'a [u8], &'a [u8], OpKind, u64, u64, bool);

#[test]
fn long_changes_and_verifications_are_split_into_pieces() {
    let served = serve(5 * TIB);
    let mut client = served.log_in();
    let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
    list.extend((255 * MIB / 512).to_be_bytes());
    list.extend((1u32 << 20).to_be_bytes());
    list.extend([0; 4]);
    let unmap = [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    let zeroes = [0; 512];
    let same = |flags| sixteen(0x93, flags, 100, 65_535);
    let cases: [Case<'_>; 5] = [
        (&unmap, &list, OpKind::Discard, 256 * MIB, 512 * MIB, false),
        // With UNMAP space is freed, without it is allocated.
        (
            &same(0x08),
            &zeroes,
            OpKind::WriteZeroes,
            256 * MIB,
            65_535 * 512,
            false,
        ),
        (
            &same(0x00),
            &zeroes,
            OpKind::WriteZeroes,
            32 * MIB,
            65_535 * 512,
            true,
        ),
        (
            &same(0x00),
            &[7; 512],
            OpKind::Write,
            MIB,
            65_535 * 512,
            false,
        ),
        (
            &sixteen(0x8f, 0, 3, 256 * 2048),
            &[],
            OpKind::Read,
            MIB,
            256 * MIB,
            false,
        ),
    ];
    for (cdb, data, kind, most, all, no_unmap) in cases {
        served.device.seen();
        assert_eq!(run(&mut client, cdb, data).0, 0, "{cdb:02x?}");
        let seen = served.device.seen();
        assert!(seen.len() > 1 || all <= most, "{cdb:02x?}");
        for op in &seen {
            assert_eq!((op.kind, op.no_unmap), (kind, no_unmap), "{cdb:02x?}");
            assert!(op.len <= most, "{cdb:02x?}: {op:?}");
        }
        let sum: u64 = seen.iter().map(|op| op.len).sum();
        assert_eq!(sum, all, "{cdb:02x?}");
    }
    // The range of a command is limited.
    let verify = sixteen(0x8f, 0, 0, 256 * 2048 + 1);
    assert_eq!(run(&mut client, &verify, &[]).0, 2);
    // ANCHOR is not supported.
    assert_eq!(run(&mut client, &same(0x18), &zeroes).0, 2);
    assert_eq!(run(&mut client, &same(0x10), &zeroes).0, 2);
}

/// Commands of many pieces, with their data.
fn long_commands(served: &Served) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut list = vec![0; 8];
    (list[1], list[3]) = (6, 0);
    for descriptor in 0u64..200 {
        list.extend((descriptor * 8).to_be_bytes());
        list.extend(8u32.to_be_bytes());
        list.extend([0; 4]);
    }
    let len = list.len() as u16;
    list[..2].copy_from_slice(&(len - 2).to_be_bytes());
    list[2..4].copy_from_slice(&(len - 8).to_be_bytes());
    let mut unmap = vec![0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    unmap[7..9].copy_from_slice(&len.to_be_bytes());
    // 64 MiB by EXTENDED COPY.
    let name = scsi::Identity::new(&served.device.serial).name();
    let hex = name.trim_start_matches("naa.");
    let mut copy = vec![0; 16];
    (copy[3], copy[11]) = (32, 4 * 28);
    let mut target = [0; 32];
    (target[0], target[4], target[5], target[7]) = (0xe4, 1, 3, 16);
    for (index, byte) in target[8..24].iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap();
    }
    copy.extend(target);
    for _ in 0..4 {
        let mut segment = [0; 28];
        (segment[0], segment[3], segment[10], segment[16]) = (0x02, 0x18, 0xff, 1);
        copy.extend(segment);
    }
    let mut extended = vec![0x83; 16];
    extended[1..].fill(0);
    extended[13] = copy.len() as u8;
    vec![
        (sixteen(0x8f, 0, 0, 256 * 2048).to_vec(), Vec::new()),
        (sixteen(0x9e, 0x12, 0, 4096).to_vec(), Vec::new()),
        (sixteen(0x93, 0, 0, 65_535).to_vec(), vec![7; 512]),
        (unmap, list),
        (extended, copy),
    ]
}

/// Why no response is needed any more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Close,
    HalfClose,
    Abort,
}

#[test]
fn long_command_stops_on_disconnect_or_abort() {
    for end in [End::Close, End::HalfClose, End::Abort] {
        let served = serve(5 * TIB);
        for (cdb, data) in long_commands(&served) {
            let mut client = served.log_in();
            served.device.seen();
            served.device.hold();
            let pdu = command(&mut client, &cdb, &data);
            client.send(&pdu);
            while served.device.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            assert!(served.device.let_one_go());
            match end {
                End::Close => client.stream.shutdown(Shutdown::Both).unwrap(),
                // No further requests; responses could still be read.
                End::HalfClose => client.stream.shutdown(Shutdown::Write).unwrap(),
                End::Abort => {
                    let abort = Pdu::new(0x42, 0x81).word(16, 77).word(20, client.tag);
                    client.send(&abort.word(24, client.command_number));
                    client.stream.set_nonblocking(true).unwrap();
                }
            }
            // One piece after the other, with time to notice the end; there would be more.
            let has_ended = || match end {
                End::Abort => client.stream.peek(&mut [0]).is_ok(),
                _ => served.export.sessions() == 0,
            };
            let mut pieces = 0;
            while !has_ended() {
                std::thread::sleep(Duration::from_millis(20));
                pieces += u32::from(served.device.let_one_go());
                assert!(pieces < 25, "{:02x} was not abandoned", cdb[0]);
            }
            if end == End::Abort {
                client.stream.set_nonblocking(false).unwrap();
                let answer = client.receive().unwrap();
                assert_eq!((answer.opcode(), answer.head[2]), (0x22, 0));
            }
            drop(client);
            served.device.lock().held = false;
            while served.device.let_one_go() {}
            while served.export.sessions() > 0 {
                std::thread::yield_now();
            }
        }
    }
}
