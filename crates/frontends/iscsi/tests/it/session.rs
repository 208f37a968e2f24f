//! Sessions according to the RFC: data transfers, digests, windows, functions, discovery.

use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;

const HOST: &str = "iqn.2026-11.test:host";
const NO_R2T: &str =
    "InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=4096\0MaxBurstLength=4096\0";

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

fn data_out(client: &Client, transfer_tag: u32, number: u32, offset: u32, last: bool) -> Pdu {
    Pdu::new(0x05, if last { 0x80 } else { 0 })
        .word(16, client.tag)
        .word(20, transfer_tag)
        .word(36, number)
        .word(40, offset)
}

#[test]
fn immediate_unsolicited_and_solicited_data() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, NO_R2T).settle();
    let data = pattern(16 * 512);
    let command = client.write_10(0, 16, 0x21);
    client.send(&command.data(&data[..1024]));
    let unasked = data_out(&client, NO_TAG, 0, 1024, false).data(&data[1024..2048]);
    client.send(&unasked);
    client.send(&data_out(&client, NO_TAG, 1, 2048, true).data(&data[2048..4096]));
    let r2t = client.receive().unwrap();
    assert_eq!(r2t.opcode(), 0x31);
    assert_eq!((r2t.get(36), r2t.get(40), r2t.get(44)), (0, 4096, 4096));
    client.send(&data_out(&client, r2t.get(20), 0, 4096, true).data(&data[4096..]));
    let answer = client.receive().unwrap();
    assert_eq!((answer.opcode(), answer.head[3]), (0x21, 0));
    assert_eq!(server.device.content(0, data.len()), data);
    assert_eq!(client.read(0, 16), (data, 0));
}

#[test]
fn data_in_respects_negotiated_lengths_and_digests() {
    let server = Server::start(&[]);
    let keys = "HeaderDigest=CRC32C\0DataDigest=CRC32C\0MaxRecvDataSegmentLength=512\0";
    let mut client = Client::log_in(&server, HOST, keys).settle();
    let data = pattern(4 * 512);
    assert_eq!(client.write(8, &data), 0);
    assert_eq!(client.read(8, 4), (data, 0));
}

#[test]
fn corrupt_data_digest_fails_only_its_command() {
    let server = Server::start(&[]);
    let keys = "HeaderDigest=CRC32C\0DataDigest=CRC32C\0";
    let mut client = Client::log_in(&server, HOST, keys).settle();
    let command = client.write_10(0, 1, 0xa1);
    client.spoil.0 = 1;
    client.send(&command.data(&[7; 512]));
    assert_eq!(client.receive().unwrap().opcode(), 0x3f, "a reject");
    let answer = client.receive().unwrap();
    assert_eq!(answer.head[3], 2);
    assert_eq!(answer.data[2 + 12..2 + 14], [0x47, 0x05]);
    assert_eq!(
        server.device.content(0, 512),
        [0; 512],
        "nothing was written"
    );
    assert_eq!(client.write(0, &[7; 512]), 0);
}

#[test]
fn one_corrupt_data_pdu_fails_its_command() {
    let server = Server::start(&[]);
    let keys = "HeaderDigest=CRC32C\0DataDigest=CRC32C\0InitialR2T=Yes\0ImmediateData=No\0";
    let mut client = Client::log_in(&server, HOST, keys).settle();
    let data = pattern(4 * 512);
    for wrong in 0..4 {
        let command = client.write_10(0, 4, 0xa1);
        client.send(&command);
        let r2t = client.receive().unwrap();
        assert_eq!((r2t.opcode(), r2t.get(44)), (0x31, 4 * 512));
        for number in 0..4 {
            let at = number * 512;
            client.spoil.0 = u8::from(number == wrong);
            let pdu = data_out(&client, r2t.get(20), number, at, number == 3);
            client.send(&pdu.data(&data[at as usize..][..512]));
        }
        assert_eq!(client.receive().unwrap().opcode(), 0x3f, "a reject");
        let answer = client.receive().unwrap();
        assert_eq!((answer.opcode(), answer.head[3]), (0x21, 2));
        assert_eq!(answer.data[2 + 12..2 + 14], [0x47, 0x05], "{wrong}");
    }
    let content = server.device.content(0, data.len());
    assert!(content.iter().all(|byte| *byte == 0), "nothing was written");
}

#[test]
fn commands_outside_of_the_window_are_ignored() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    for number in [client.command_number + 200, client.command_number - 1] {
        let pdu = client.command(0x81, 0, &[0; 6]).word(24, number);
        client.command_number -= 1;
        client.send(&pdu);
    }
    assert_eq!(client.ready(), 0, "only the next command is answered");
}

#[test]
fn pings_are_echoed_and_logout_ends_the_connection() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "");
    client.send(
        &Pdu::new(0x40, 0x80)
            .word(16, 9)
            .word(20, NO_TAG)
            .data(b"hello"),
    );
    let echo = client.receive().unwrap();
    assert_eq!(
        (echo.opcode(), echo.get(16), &echo.data[..]),
        (0x20, 9, &b"hello"[..])
    );
    client.send(
        &Pdu::new(0x46, 0x80)
            .word(16, 10)
            .word(24, client.command_number),
    );
    assert_eq!(client.receive().unwrap().opcode(), 0x26);
    assert!(client.receive().is_none());
}

/// Waits until the target has read what was sent: a ping behind it is answered.
fn wait_until_read(client: &mut Client) {
    client.send(
        &Pdu::new(0x40, 0x80)
            .word(16, 99)
            .word(20, NO_TAG)
            .word(24, client.command_number),
    );
    let echo = client.receive().unwrap();
    assert_eq!((echo.opcode(), echo.get(16)), (0x20, 99));
}

#[test]
fn aborted_running_command_is_not_answered() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    server.device.hold();
    let command = client.write_10(0, 1, 0xa1).data(&[1; 512]);
    client.send(&command);
    let abort = Pdu::new(0x42, 0x81).word(16, 77).word(20, client.tag);
    client.send(&abort.word(24, client.command_number));
    wait_until_read(&mut client);
    server.device.go_on();
    let answer = client.receive().unwrap();
    assert_eq!(
        (answer.opcode(), answer.get(16), answer.head[2]),
        (0x22, 77, 0)
    );
    assert_eq!(client.ready(), 0);
}

#[test]
fn reset_informs_every_nexus_and_ends_commands() {
    let server = Server::start(&[]);
    let mut one = Client::log_in(&server, HOST, "").settle();
    let mut two = Client::log_in(&server, "iqn.2026-11.test:other", "").settle();
    server.device.hold();
    let command = two.write_10(0, 1, 0xa1).data(&[1; 512]);
    two.send(&command);
    while server.device.in_flight() == 0 {
        std::thread::yield_now();
    }
    one.send(
        &Pdu::new(0x42, 0x85)
            .word(16, 5)
            .word(24, one.command_number),
    );
    wait_until_read(&mut one);
    server.device.go_on();
    assert_eq!(one.receive().unwrap().opcode(), 0x22);
    assert_eq!((one.ready(), one.ready()), (2, 0));
    assert_eq!(
        (two.ready(), two.ready()),
        (2, 0),
        "its write is not answered"
    );
}

#[test]
fn session_reinstatement_ends_the_previous_session() {
    let server = Server::start(&[]);
    let mut old = Client::log_in(&server, HOST, "").settle();
    let mut new = Client::log_in(&server, HOST, "").settle();
    assert!(old.receive().is_none());
    assert_eq!(new.ready(), 0);
    assert_eq!(server.sessions(), 1);
}

#[test]
fn resize_is_reported() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    server.device.resize(16 << 20);
    let told = (0..10_000).map(|_| client.ready()).find(|told| *told != 0);
    assert_eq!((told, client.ready()), (Some(2), 0));
    assert_eq!(
        client.read(20_000, 1),
        (vec![0; 512], 0),
        "the added range is readable"
    );
}

#[test]
fn stopped_export_ends_its_sessions() {
    let mut server = Server::start(&[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    server.export = None;
    let told = client.receive().unwrap();
    assert_eq!(
        (told.opcode(), told.head[36]),
        (0x32, 3),
        "all connections of the session are dropped"
    );
    assert!(client.receive().is_none());
}

#[test]
fn unsolicited_data_is_accepted_as_negotiated() {
    let server = Server::start(&[]);
    let (first, most) = ("FirstBurstLength=65536", "MaxBurstLength=8192");
    for keys in [
        vec![first, most],
        vec![most, first],
        vec![most],
        vec![first],
    ] {
        let mut client = Client::connect(&server);
        let names = format!("InitiatorName={HOST}\0TargetName={}\0", server.target);
        let keys = keys.join("\0");
        let text = format!("{names}InitialR2T=No\0ImmediateData=Yes\0{keys}\0");
        let answer = client.login(0x87, &text);
        assert_eq!(answer.head[36], 0);
        let told = answer.text();
        let told = told
            .lines()
            .find_map(|line| line.strip_prefix("FirstBurstLength="));
        // The default is 64 KiB (RFC 7143, section 13.14).
        let told: usize = told.map_or(65536, |told| told.parse().unwrap());
        let mut client = client.settle();
        let data = pattern(told);
        assert_eq!(client.write(0, &data), 0, "{keys}");
        assert_eq!(server.device.content(0, told), data);
    }
}
