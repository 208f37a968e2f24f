//! Parsing of single chains.

use super::*;
use crate::chain::Chain;
use crate::guest::GuestMap;
use block::{BlockDevice, Geometry, Op};
use std::sync::Arc;
use std::task::Waker;
use virtio_queue::desc::split::Descriptor;
use vm_memory::GuestMemoryMmap;

const TABLE: u64 = 0x1000;
const HEADER: u64 = 0x1_2000;
const STATUS: u64 = 0x1_3000;
const DATA: u64 = 0x10_0000;
const MEMORY: usize = 80 << 20;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

struct Large;

impl BlockDevice for Large {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: 1 << 40,
            lba_size: 512,
            block_size: 4096,
            read_only: false,
            serial: "large".into(),
        }
    }

    fn submit(&self, op: Op) -> Result<(), Op> {
        Err(op)
    }

    fn on_change(&self, _listener: u64, _waker: Waker) {}

    fn is_gone(&self) -> bool {
        false
    }
}

/// Address, length and flags of a descriptor.
type Data = (u64, u32, u16);

fn parse(kind: u32, sector: u64, data: &[Data]) -> Request {
    parse_with(&mut Parser::default(), kind, sector, data)
}

fn parse_with(parser: &mut Parser, kind: u32, sector: u64, data: &[Data]) -> Request {
    let ranges = [(GuestAddress(0), MEMORY)];
    let map = Arc::new(GuestMap::from(
        GuestMemoryMmap::from_ranges(&ranges).unwrap(),
    ));
    let (memory, guest) = (map.clone(), Guest::new(map));
    memory.write_obj(kind, GuestAddress(HEADER)).unwrap();
    memory.write_obj(sector, GuestAddress(HEADER + 8)).unwrap();
    let mut chain = vec![(HEADER, 16, 0)];
    chain.extend(data);
    chain.push((STATUS, 1, WRITE));
    let last = chain.len() - 1;
    for (index, (address, len, flags)) in chain.into_iter().enumerate() {
        let flags = flags | if index < last { NEXT } else { 0 };
        let descriptor = Descriptor::new(address, len, flags, index as u16 + 1);
        let at = GuestAddress(TABLE + 16 * index as u64);
        memory.write_obj(descriptor, at).unwrap();
    }
    let chain = Chain::new(&guest, GuestAddress(TABLE), 2048, 0);
    let volume = Volume::new(Arc::new(Large));
    parser.parse(&guest, chain, &volume, false)
}

fn status_of(request: Request) -> u8 {
    match request {
        Request::Done { status, .. } => status,
        other => panic!("not decided: {other:?}"),
    }
}

#[test]
fn read_keeps_all_of_its_segments() {
    let mut parser = Parser::default();
    let data = [(DATA, 1000, WRITE), (DATA + 5000, 3096, WRITE)];
    let request = parse_with(&mut parser, VIRTIO_BLK_T_IN, 8, &data);
    let Request::Submit(read) = request else {
        panic!("not passed on: {request:?}");
    };
    assert_eq!(
        (read.kind, read.offset, read.len),
        (OpKind::Read, 4096, 4096)
    );
    assert_eq!(parser.take_buf().len(), 4096);
    assert!(parser.take_buf().is_empty(), "the buffer was taken");
    assert_eq!(read.answer.written, 4097);
    assert_eq!(read.answer.status_at, GuestAddress(STATUS));
}

#[test]
fn adjacent_segments_are_merged() {
    let mut parser = Parser::default();
    let data = [
        (DATA + 8000, 512, WRITE),
        (DATA, 1000, WRITE),
        (DATA + 1000, 24, WRITE),
        (DATA + 1024, 2560, WRITE),
    ];
    let request = parse_with(&mut parser, VIRTIO_BLK_T_IN, 8, &data);
    assert!(matches!(request, Request::Submit(_)), "{request:?}");
    let right = [(DATA + 8000, 512), (DATA, 3584)].map(|(at, len)| (GuestAddress(at), len));
    assert_eq!(parser.writable, right);
}

#[test]
fn request_above_the_limit_fails() {
    let len = |bytes: u64| parse(VIRTIO_BLK_T_OUT, 0, &[(DATA, bytes as u32, 0)]);
    assert!(matches!(len(REQUEST_BYTES_MAX), Request::Submit(_)));
    assert_eq!(status_of(len(REQUEST_BYTES_MAX + 512)), status::IO_ERROR);
}

#[test]
fn chain_above_seg_max_is_served_or_fails_with_a_status() {
    for kind in [VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT] {
        let flags = if kind == VIRTIO_BLK_T_IN { WRITE } else { 0 };
        // Not adjacent: adjacent ones are merged.
        let segments = |count: u64| {
            let data: Vec<_> = (0..count)
                .map(|at| (DATA + 1024 * at, 512, flags))
                .collect();
            parse(kind, 0, &data)
        };
        for count in [126, 127, 128, 129, 256, 1024] {
            let request = segments(count);
            assert!(
                matches!(request, Request::Submit(_)),
                "{count}: {request:?}"
            );
        }
        for count in [1027, 1500, 2045] {
            let request = segments(count);
            let Request::Refused { answer, .. } = request else {
                panic!("{count}: {request:?}");
            };
            assert_eq!(answer.status_at, GuestAddress(STATUS), "{count}");
        }
    }
}

#[test]
fn status_of_a_malformed_chain_is_at_its_end() {
    let far = u64::MAX - 10;
    let cases: [(&str, &[Data]); 4] = [
        ("data past the address space", &[(far, 4096, WRITE)]),
        (
            "readable after writable",
            &[(DATA, 512, WRITE), (DATA, 512, 0)],
        ),
        ("nothing", &[(DATA, 0, WRITE), (DATA, 0, 0)]),
        ("a table in the middle", &[(DATA, 16, INDIRECT | WRITE)]),
    ];
    for (name, data) in cases {
        let request = parse_table(VIRTIO_BLK_T_IN, data);
        let Request::Refused { answer, .. } = request else {
            panic!("{name}: {request:?}");
        };
        assert_eq!(answer.status_at, GuestAddress(STATUS), "{name}");
    }
}

/// Parses a request whose chain is in an indirect table.
fn parse_table(kind: u32, data: &[Data]) -> Request {
    let ranges = [(GuestAddress(0), MEMORY)];
    let map = Arc::new(GuestMap::from(
        GuestMemoryMmap::from_ranges(&ranges).unwrap(),
    ));
    let (memory, guest) = (map.clone(), Guest::new(map));
    memory.write_obj(kind, GuestAddress(HEADER)).unwrap();
    let mut chain = vec![(HEADER, 16, 0)];
    chain.extend(data);
    chain.push((STATUS, 1, WRITE));
    let count = chain.len() as u16;
    for (index, (address, len, flags)) in chain.into_iter().enumerate() {
        let index = index as u16;
        let flags = flags | if index + 1 < count { NEXT } else { 0 };
        let descriptor = Descriptor::new(address, len, flags, index + 1);
        let at = GuestAddress(TABLE + 16 * u64::from(index + 1));
        memory.write_obj(descriptor, at).unwrap();
    }
    let table = Descriptor::new(TABLE + 16, 16 * u32::from(count), INDIRECT, 0);
    memory.write_obj(table, GuestAddress(TABLE)).unwrap();
    let chain = Chain::new(&guest, GuestAddress(TABLE), 1, 0);
    let volume = Volume::new(Arc::new(Large));
    Parser::default().parse(&guest, chain, &volume, false)
}

#[test]
fn ranges_and_flags_are_validated() {
    let range = |kind, sector: u64, sectors: u32, flags: u32, len: u32| {
        // The page of the header has space for the range after it.
        let ranges = [(GuestAddress(0), MEMORY)];
        let map = Arc::new(GuestMap::from(
            GuestMemoryMmap::from_ranges(&ranges).unwrap(),
        ));
        let (memory, guest) = (map.clone(), Guest::new(map));
        for (at, word) in [(0, kind), (16 + 8, sectors), (16 + 12, flags)] {
            memory.write_obj(word, GuestAddress(HEADER + at)).unwrap();
        }
        memory.write_obj(sector, GuestAddress(HEADER + 16)).unwrap();
        let put = |index: u64, descriptor: Descriptor| {
            let at = GuestAddress(TABLE + 16 * index);
            memory.write_obj(descriptor, at).unwrap();
        };
        put(0, Descriptor::new(HEADER, 16 + len, NEXT, 1));
        put(1, Descriptor::new(STATUS, 1, WRITE, 0));
        let chain = Chain::new(&guest, GuestAddress(TABLE), 2048, 0);
        let volume = Volume::new(Arc::new(Large));
        Parser::default().parse(&guest, chain, &volume, true)
    };
    let (discard, zeroes) = (VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES);
    let unsupported = status::UNSUPPORTED;
    assert_eq!(status_of(range(discard, 0, 8, 1, 16)), unsupported);
    assert_eq!(status_of(range(zeroes, 0, 8, 2, 16)), unsupported);
    assert_eq!(status_of(range(discard, 0, 8, 0, 15)), status::IO_ERROR);
    assert_eq!(status_of(range(discard, 0, 8, 0, 32)), status::IO_ERROR);
    let most = RANGE_SECTORS_MAX;
    assert!(matches!(range(discard, 0, most, 0, 16), Request::Submit(_)));
    assert_eq!(
        status_of(range(discard, 0, most + 1, 0, 16)),
        status::IO_ERROR
    );
    let most = ZEROES_SECTORS_MAX;
    assert_eq!(
        status_of(range(zeroes, 0, most + 1, 0, 16)),
        status::IO_ERROR
    );
    assert_eq!(status_of(range(zeroes, 0, 0, 0, 16)), status::OK);
    let Request::Submit(op) = range(zeroes, 8, most, 0, 16) else {
        panic!("not passed on");
    };
    assert_eq!((op.offset, op.len), (4096, u64::from(most) * SECTOR));
    assert!(op.flags.fua && op.flags.no_unmap);
}
