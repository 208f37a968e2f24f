//! Protocol violations by a guest or monitor only affect itself.

use crate::support::*;
use std::io::Write;
use std::os::unix::net::UnixStream;
use vhost_client::{Client, ClientQueue, Command, Options};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

fn options() -> Options {
    Options {
        queue_size: 16,
        queues: 2,
        ..Options::default()
    }
}

/// Asserts that another queue and a new connection are served.
fn still_serves(served: &Served, mut client: Client) {
    assert_eq!(write(client.queue(1), 0, &[4; 512]), OK);
    drop(client);
    let mut client = served.connect(options());
    assert_eq!(read(client.queue(0), 0, 512), [4; 512]);
}

type Chain = fn(&mut ClientQueue, u64);

#[test]
fn endless_chains_are_returned_with_nothing_written() {
    let chains: [(&str, Chain); 8] = [
        ("no status byte", |queue, data| {
            queue.raw_descriptor(0, data, 16, 0, 0);
        }),
        ("an endless chain", |queue, data| {
            queue.raw_descriptor(0, data, 16, NEXT, 1);
            queue.raw_descriptor(1, data, 16, NEXT, 0);
        }),
        ("a next index beyond the table", |queue, data| {
            queue.raw_descriptor(0, data, 16, NEXT, 16);
        }),
        ("a status outside of the memory", |queue, data| {
            queue.raw_descriptor(0, data, 16, NEXT, 1);
            queue.raw_descriptor(1, 1 << 40, 1, WRITE, 0);
        }),
        ("a status past the address space", |queue, data| {
            queue.raw_descriptor(0, data, 16, NEXT, 1);
            queue.raw_descriptor(1, u64::MAX - 1, 8, WRITE, 0);
        }),
        ("an indirect table of odd length", |queue, data| {
            queue.raw_descriptor(0, data, 24, INDIRECT, 0);
        }),
        ("an indirect table outside of the memory", |queue, _| {
            queue.raw_descriptor(0, 1 << 40, 32, INDIRECT, 0);
        }),
        ("a table in a table", |queue, data| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&data.to_le_bytes());
            bytes[8] = 16;
            bytes[12] = (INDIRECT | WRITE) as u8;
            queue.fill(15, &bytes);
            queue.raw_descriptor(0, data, 16, INDIRECT, 0);
        }),
    ];
    let served = serve(volume());
    let mut client = served.connect(options());
    for (name, make) in chains {
        let queue = client.queue(0);
        let address = queue.guest_address(15);
        make(queue, address);
        queue.raw_publish(0);
        queue.raw_kick();
        let done = queue.wait(TIMEOUT).unwrap();
        assert_eq!(done.written, 0, "{name}");
    }
    still_serves(&served, client);
}

#[test]
fn malformed_chains_fail_with_a_status() {
    let chains: [(&str, Chain); 4] = [
        ("readable after writable", |queue, data| {
            queue.raw_descriptor(0, data, 101, NEXT | WRITE, 1);
            queue.raw_descriptor(1, data, 16, 0, 0);
        }),
        ("data past the address space", |queue, data| {
            queue.raw_descriptor(0, data, 16, NEXT, 1);
            queue.raw_descriptor(1, u64::MAX - 1, 512, NEXT | WRITE, 2);
            queue.raw_descriptor(2, data + 100, 1, WRITE, 0);
        }),
        ("data in no memory", |queue, data| {
            queue.raw_descriptor(0, data, 16, NEXT, 1);
            queue.raw_descriptor(1, 1 << 50, 512, NEXT | WRITE, 2);
            queue.raw_descriptor(2, data + 100, 1, WRITE, 0);
        }),
        ("no header", |queue, data| {
            queue.raw_descriptor(0, data + 100, 1, WRITE, 0);
        }),
    ];
    let served = serve(volume());
    let mut client = served.connect(options());
    for (name, make) in chains {
        for stale in [0, 255] {
            let queue = client.queue(0);
            let address = queue.guest_address(15);
            queue.fill(15, &[0; 100]);
            queue.fill_at(15, 100, &[stale]);
            make(queue, address);
            queue.raw_publish(0);
            queue.raw_kick();
            let done = queue.wait(TIMEOUT).unwrap();
            let mut bytes = [0; 101];
            queue.fetch(15, &mut bytes);
            assert_eq!((done.written, bytes[100]), (1, IO_ERROR), "{name}");
        }
    }
    still_serves(&served, client);
}

#[test]
fn requests_above_the_ring_size_are_served_or_fail() {
    let served = serve(volume());
    for (queue_size, count, is_served) in [
        (16, 127, true),
        (128, 127, true),
        (128, 128, true),
        (128, 256, true),
        (16, 1024, true),
        (1024, 1024, true),
        (128, 1300, false),
        (1024, 4000, false),
    ] {
        let mut client = served.connect(Options {
            queue_size,
            slot_bytes: count * 512,
            segments: count + 8,
            ..options()
        });
        let queue = client.queue(0);
        // Every other sector, then the rest: no two segments are adjacent.
        queue.set_segment_order(512, 2);
        let len = count * 512;
        let bytes = pattern(count as u64, len);
        let slot = queue.take_slot().unwrap();
        queue.fill(slot, &bytes);
        for command in [
            Command::Write { sector: 0, len },
            Command::Read { sector: 0, len },
        ] {
            let done = queue.call(slot, command, TIMEOUT).unwrap();
            let right = match (is_served, command) {
                (true, Command::Read { .. }) => (OK, 1 + len as u32),
                (true, _) => (OK, 1),
                (false, _) => (IO_ERROR, 1),
            };
            assert_eq!(
                (done.status, done.written),
                right,
                "{count} of {queue_size}"
            );
        }
        let mut read = vec![0; len];
        queue.fetch(slot, &mut read);
        assert!(read == bytes, "{count} segments in a ring of {queue_size}");
        drop(client);
    }
}

#[test]
fn invalid_requests_with_a_status_byte_get_a_status() {
    let served = serve(volume());
    let mut client = served.connect(options());
    let queue = client.queue(0);
    let data = queue.guest_address(15);
    let mut header = [0; 16];
    for (name, header_at, header_len, data_at, data_len) in [
        ("a short header", data, 15, data, 512),
        ("a header outside of the memory", 1 << 40, 16, data, 512),
        ("data outside of the memory", data, 16, 1 << 40, 512),
        (
            "data that end outside of the memory",
            data,
            16,
            data,
            1 << 30,
        ),
        ("data larger than any request", data, 16, data, u32::MAX - 1),
    ] {
        queue.fill(15, &header);
        queue.raw_descriptor(0, header_at, header_len, NEXT, 1);
        queue.raw_descriptor(1, data_at, data_len, NEXT | WRITE, 2);
        queue.raw_descriptor(2, data + 100, 1, WRITE, 0);
        queue.raw_publish(0);
        queue.raw_kick();
        assert_eq!(queue.wait(TIMEOUT).unwrap().written, 1, "{name}");
        let mut status = [0; 101];
        queue.fetch(15, &mut status);
        assert_eq!(status[100], IO_ERROR, "{name}");
        header[8] += 1;
    }
    still_serves(&served, client);
}

#[test]
fn corrupt_ring_stops_only_its_queue() {
    type Corrupt = fn(&mut ClientQueue);
    let corruptions: [(&str, Corrupt); 3] = [
        ("an index that jumps", |queue| queue.raw_avail_index(1000)),
        ("a head beyond the end", |queue| queue.raw_publish(16)),
        ("a chain that is available twice", |queue| {
            let slot = queue.take_slot().unwrap();
            queue.push(slot, Command::Flush);
            queue.raw_publish(slot);
        }),
    ];
    for (name, corrupt) in corruptions {
        let served = serve(volume());
        let mut client = served.connect(options());
        served.device.hold(true);
        let queue = client.queue(0);
        corrupt(queue);
        queue.raw_kick();
        queue.wait_for_error(TIMEOUT).expect(name);
        served.device.hold(false);
        client.stop_queue(0).unwrap();
        assert!(served.device.counts().flushes <= 1, "{name}");
        still_serves(&served, client);
    }
}

#[test]
fn ring_outside_of_memory_is_refused() {
    let served = serve(volume());
    let stream = UnixStream::connect(&served.path).unwrap();
    let frontend = vhost::vhost_user::Frontend::from_stream(stream, 1);
    use vhost::VhostBackend;
    use vhost::vhost_user::message::VhostUserHeaderFlag;
    frontend.set_owner().unwrap();
    let features = frontend.get_features().unwrap();
    assert!(frontend.set_features(features).is_ok());
    frontend.set_hdr_flags(VhostUserHeaderFlag::empty());
    let addresses = vhost::VringConfigData {
        queue_max_size: 16,
        queue_size: 16,
        flags: 0,
        desc_table_addr: 0x1000,
        used_ring_addr: 0x2000,
        avail_ring_addr: 0x3000,
        log_addr: None,
    };
    frontend.set_vring_num(0, 16).unwrap();
    frontend.set_vring_addr(0, &addresses).unwrap();
    drop(frontend);
    still_serves(&served, served_client(&served));
}

fn served_client(served: &Served) -> Client {
    served.connect(options())
}

#[test]
fn invalid_control_messages_end_the_connection() {
    let served = serve(volume());
    for bytes in [
        vec![0xff; 64],
        vec![0; 12],
        [
            &[5u8, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255][..],
            &[1; 100],
        ]
        .concat(),
        // SET_MEM_TABLE with 255 regions and no descriptor.
        [
            &[5u8, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0][..],
            &[255, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat(),
        // SET_VRING_NUM of queue 4,000,000,000.
        [
            &[8u8, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0][..],
            &[0, 40, 107, 238, 16, 0, 0, 0],
        ]
        .concat(),
        // SET_BACKEND_REQ_FD without a descriptor.
        vec![21, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        vec![1, 0],
    ] {
        let mut stream = UnixStream::connect(&served.path).unwrap();
        stream.write_all(&bytes).unwrap();
    }
    still_serves(&served, served_client(&served));
}
