//! Reads and writes without a task: waiting and failing like all commands.

use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;
use block::{ErrorKind, OpKind};
use std::collections::BTreeMap;

const HOST: &str = "iqn.2026-11.test:host";
const CHECK_CONDITION: u8 = 2;

/// Waits until the target has read what was sent: a ping behind it is answered.
fn wait_until_read(client: &mut Client) {
    let ping = Pdu::new(0x40, 0x80).word(16, 99).word(20, NO_TAG);
    client.send(&ping.word(24, client.command_number));
    let echo = client.receive().unwrap();
    assert_eq!((echo.opcode(), echo.get(16)), (0x20, 99));
}

/// READ(10) of one block.
fn read_10(client: &mut Client, lba: u8) -> Pdu {
    client.command(0xc1, 512, &[0x28, 0, 0, 0, 0, lba, 0, 0, 1, 0])
}

/// Responses by tag: status and data.
fn answers(client: &mut Client, count: usize) -> BTreeMap<u32, (u8, Vec<u8>)> {
    let mut all = BTreeMap::new();
    while all.len() < count {
        let answer = client.receive().unwrap();
        all.insert(answer.get(16), (answer.head[3], answer.data));
    }
    all
}

#[test]
fn rejected_operation_is_resubmitted() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    for lba in 0..8 {
        assert_eq!(client.write(lba, &[lba as u8; 512]), 0);
    }
    server.device.limit(1);
    server.device.hold();
    let mut wanted = BTreeMap::new();
    for lba in 0..8 {
        let read = read_10(&mut client, lba);
        client.send(&read);
        wanted.insert(client.tag, (0, vec![lba; 512]));
    }
    for lba in 8..10 {
        let write = client.write_10(lba, 1, 0xa1).data(&[lba as u8; 512]);
        client.send(&write);
        wanted.insert(client.tag, (0, Vec::new()));
    }
    wait_until_read(&mut client);
    assert!(server.device.given_back() > 0);
    server.device.go_on();
    assert_eq!(answers(&mut client, 10), wanted);
    let written = server.device.content(8 * 512, 1024);
    assert_eq!(written, [[8; 512], [9; 512]].concat());
}

#[test]
fn compare_and_write_waits_for_a_write_in_flight() {
    let server = Server::start(&[]);
    let mut writer = Client::log_in(&server, HOST, "").settle();
    let mut other = Client::log_in(&server, "iqn.2026-11.test:other", "").settle();
    server.device.backwards();
    server.device.hold();
    let write = writer.write_10(3, 1, 0xa1).data(&[1; 512]);
    writer.send(&write);
    while server.device.in_flight() == 0 {
        std::thread::yield_now();
    }
    let mut cdb = [0; 16];
    (cdb[0], cdb[9], cdb[13]) = (0x89, 3, 1);
    let compare = other.command(0xa1, 1024, &cdb);
    other.send(&compare.data(&[[1; 512], [2; 512]].concat()));
    wait_until_read(&mut other);
    server.device.go_on();
    assert_eq!(writer.receive().unwrap().head[3], 0);
    assert_eq!(
        other.receive().unwrap().head[3],
        0,
        "it read the written data"
    );
    assert_eq!(server.device.content(3 * 512, 512), [2; 512]);
    // The block is no longer locked.
    assert_eq!(writer.write(3, &[4; 512]), 0);
}

#[test]
fn volume_errors_become_sense_data() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    for (kind, error, key, code) in [
        (OpKind::Read, ErrorKind::Medium, 0x03, [0x11, 0x00]),
        (OpKind::Write, ErrorKind::NoSpace, 0x07, [0x27, 0x07]),
    ] {
        server.device.fail(kind, error);
        let command = match kind {
            OpKind::Read => read_10(&mut client, 0),
            _ => client.write_10(0, 1, 0xa1).data(&[1; 512]),
        };
        client.send(&command);
        let answer = client.receive().unwrap();
        assert_eq!((answer.opcode(), answer.head[3]), (0x21, CHECK_CONDITION));
        let sense = &answer.data[2..];
        assert_eq!((sense[2] & 0x0f, &sense[12..14]), (key, &code[..]));
        server.device.heal();
    }
    assert_eq!(client.write(0, &[5; 512]), 0);
    assert_eq!(client.read(0, 1), (vec![5; 512], 0));
}

#[test]
fn unit_attention_is_reported_by_the_next_read() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    server.device.resize(16 << 20);
    // The export processes the change on a loop of its own.
    let mut reads = std::iter::repeat_with(|| client.read(0, 1).1).take(10_000);
    let told = reads.find(|status| *status != 0);
    assert_eq!(told, Some(CHECK_CONDITION));
    assert_eq!(client.read(0, 1).1, 0);
}

#[test]
fn ordered_command_is_a_barrier_for_direct_reads() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    server.device.hold();
    let (simple, ordered) = (0xa1, 0xa2);
    for (attribute, fill) in [(simple, 1), (ordered, 2), (simple, 3)] {
        let write = client.write_10(0, 1, attribute).data(&[fill; 512]);
        client.send(&write);
    }
    wait_until_read(&mut client);
    assert_eq!(server.device.in_flight(), 1);
    server.device.go_on();
    let order: Vec<u32> = (0..3).map(|_| client.receive().unwrap().get(16)).collect();
    assert_eq!(order, [client.tag - 2, client.tag - 1, client.tag]);
    assert_eq!(server.device.content(0, 512), [3; 512]);
}
