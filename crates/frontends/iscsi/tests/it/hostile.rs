//! Attacks by a malicious peer: refused, without effect on another session.

use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;
use std::io::Write;

const HOST: &str = "iqn.2026-11.test:host";
const OTHER: &str = "iqn.2026-11.test:hostile";

/// Sends the attack, and asserts its failure.
type Attack = fn(&mut Client);

/// Asserts that the connection ends, with or without a reject.
fn ended(client: &mut Client) {
    while let Some(pdu) = client.receive() {
        assert!(
            [0x3f, 0x31].contains(&pdu.opcode()),
            "opcode {:02x}",
            pdu.opcode()
        );
    }
}

fn rejected(client: &mut Client) {
    assert_eq!(client.receive().expect("a reject").opcode(), 0x3f);
}

fn data_out(client: &Client, transfer_tag: u32, number: u32, offset: u32) -> Pdu {
    Pdu::new(0x05, 0x80)
        .word(16, client.tag)
        .word(20, transfer_tag)
        .word(36, number)
        .word(40, offset)
}

/// A write of 16 blocks waiting for its data; returns the R2T.
fn asked(client: &mut Client) -> Pdu {
    let command = client.write_10(0, 16, 0xa1);
    client.send(&command);
    client.receive().expect("an R2T")
}

const ATTACKS: &[(&str, Attack)] = &[
    (
        "a data segment that exceeds the negotiated length",
        |client| {
            let mut pdu = client.write_10(0, 1, 0xa1);
            pdu.head[5..8].copy_from_slice(&[0xff; 3]);
            client.send(&pdu);
            ended(client);
        },
    ),
    ("more immediate data than the command has", |client| {
        let pdu = client.write_10(0, 1, 0xa1).data(&[0; 1024]);
        client.send(&pdu);
        rejected(client);
    }),
    ("an expected length of 4 GiB", |client| {
        let pdu = client.write_10(0, 1, 0xa1).word(20, u32::MAX);
        client.send(&pdu);
        rejected(client);
    }),
    ("data for an unknown R2T", |client| {
        let r2t = asked(client);
        client.send(&data_out(client, r2t.get(20) + 1, 0, 0).data(&[0; 512]));
        ended(client);
    }),
    ("data beyond the solicited range", |client| {
        let r2t = asked(client);
        client.send(&data_out(client, r2t.get(20), 0, 0).data(&[0; 16 * 512 + 4]));
        ended(client);
    }),
    ("data at another offset", |client| {
        let r2t = asked(client);
        client.send(&data_out(client, r2t.get(20), 0, 512).data(&[0xee; 16 * 512]));
        ended(client);
    }),
    ("data at an offset that wraps", |client| {
        let r2t = asked(client);
        client.send(&data_out(client, r2t.get(20), 0, u32::MAX - 3).data(&[0; 512]));
        ended(client);
    }),
    ("less data than solicited", |client| {
        let r2t = asked(client);
        client.send(&data_out(client, r2t.get(20), 0, 0).data(&[0; 512]));
        ended(client);
    }),
    ("unsolicited data that was not negotiated", |client| {
        let command = client.write_10(0, 16, 0x21);
        client.send(&command);
        ended(client);
    }),
    ("data for an unknown command", |client| {
        client.tag = 4711;
        client.send(&data_out(client, 1, 0, 0).data(&[0; 512]));
        client.tag = 0;
        assert_eq!(client.ready(), 2, "the session was dropped");
    }),
    ("one tag for two commands", |client| {
        asked(client);
        let command = client.write_10(0, 16, 0xa1).word(16, client.tag - 1);
        client.send(&command);
        rejected(client);
    }),
    ("a tag that means none", |client| {
        let command = client.write_10(0, 1, 0xa1).word(16, NO_TAG);
        client.send(&command.data(&[0; 512]));
        rejected(client);
    }),
    ("a PDU with an unknown opcode", |client| {
        client.send(&Pdu::new(0x1f, 0x80));
        rejected(client);
    }),
    ("a login within a session", |client| {
        client.send(&Pdu::new(0x43, 0x87).data(b"InitiatorName=iqn.a\0"));
        rejected(client);
    }),
    ("a text request that is not valid UTF-8", |client| {
        client.send(&Pdu::new(0x44, 0x80).word(20, NO_TAG).data(b"\xff\xfe="));
        rejected(client);
    }),
    ("a command for a unit that does not exist", |client| {
        let command = client.write_10(0, 1, 0xa1).byte(9, 9);
        client.send(&command.data(&[0; 512]));
        assert_eq!(client.receive().unwrap().head[3], 2);
    }),
    ("more immediate commands than permitted", |client| {
        for _ in 0..17 {
            let mut command = client.write_10(0, 16, 0xa1);
            client.command_number -= 1;
            command.head[0] |= 0x40;
            client.send(&command);
        }
        while client.receive().expect("a reject").opcode() == 0x31 {}
    }),
];

#[test]
fn every_attack_is_refused_and_other_sessions_continue() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    for (name, attack) in ATTACKS {
        println!("{name}");
        let mut client = Client::log_in(&server, OTHER, "");
        attack(&mut client);
        assert_eq!(host.write(1, &[9; 512]), 0, "{name}");
        assert_eq!(host.read(1, 1), (vec![9; 512], 0), "{name}");
        assert_eq!(server.device.content(0, 512), [0; 512], "{name}");
    }
}

#[test]
fn corrupt_header_digest_ends_the_connection() {
    let server = Server::start(&[]);
    let mut client = Client::log_in(&server, OTHER, "HeaderDigest=CRC32C\0DataDigest=CRC32C\0");
    client.spoil.1 = 1;
    client.send(&Pdu::new(0x40, 0x80).word(16, 1).word(20, NO_TAG));
    ended(&mut client);
}

/// First login requests, and the class and detail of the response; none if the connection ends.
const LOGINS: &[(u8, &str, Option<[u8; 2]>)] = &[
    (0x87, "", Some([2, 7])),
    (0x87, "InitiatorName=host\0TargetName=T\0", Some([2, 0])),
    (0x87, "InitiatorName=iqn.a\0", Some([2, 7])),
    (
        0x87,
        "InitiatorName=iqn.a\0TargetName=iqn.none\0",
        Some([2, 3]),
    ),
    (
        0x87,
        "InitiatorName=iqn.a\0InitiatorName=iqn.b\0TargetName=T\0",
        Some([2, 0]),
    ),
    (0x87, "InitiatorName=iqn.a\0SessionType=Odd\0", Some([2, 9])),
    (
        0x87,
        "InitiatorName=iqn.a\0TargetName=T\0MaxRecvDataSegmentLength=1\0",
        Some([2, 0]),
    ),
    (0x86, "InitiatorName=iqn.a\0TargetName=T\0", Some([2, 0x0b])),
    (0x84, "InitiatorName=iqn.a\0TargetName=T\0", Some([2, 0x0b])),
    (0xc7, "InitiatorName=iqn.a\0", None),
    (
        0x81,
        "InitiatorName=iqn.a\0TargetName=T\0CHAP_A=5\0",
        Some([2, 0]),
    ),
    (
        0x81,
        "InitiatorName=iqn.a\0TargetName=T\0AuthMethod=CHAP\0",
        Some([2, 1]),
    ),
];

#[test]
fn logins_are_refused_with_their_status() {
    let server = Server::start(&[]);
    for (flags, text, expected) in LOGINS {
        let mut client = Client::connect(&server);
        let text = text.replace("=T\0", &format!("={}\0", server.target));
        let pdu = Pdu::new(0x43, *flags).data(text.as_bytes());
        client.send(&pdu);
        let answer = client
            .receive()
            .map(|answer| [answer.head[36], answer.head[37]]);
        assert_eq!(answer, *expected, "{text}");
        assert!(client.receive().is_none(), "{text}");
    }
}

#[test]
fn login_flood_does_not_affect_a_session() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let mut open = Vec::new();
    for number in 0..600 {
        let mut client = Client::connect(&server);
        if number % 2 == 0 {
            // Half of a header.
            let _ = client.stream.write_all(&[0x43; 20]);
        }
        open.push(client);
        if number % 100 == 0 {
            assert_eq!(host.write(1, &[9; 512]), 0);
        }
    }
    assert_eq!(host.read(1, 1), (vec![9; 512], 0));
    assert_eq!(server.sessions(), 1);
}

fn secrets() -> (std::path::PathBuf, Server) {
    use std::os::unix::fs::OpenOptionsExt;
    let path = std::env::temp_dir().join(format!("convect-iscsi-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .unwrap();
    file.write_all(
        b"name host\nsecret 0123456789abcdef\nmutual-name t\nmutual-secret fedcba9876543210\n",
    )
    .unwrap();
    let server = Server::start(&[("chap", path.to_str().unwrap())]);
    (path, server)
}

#[test]
fn login_requires_the_secret() {
    let (path, server) = secrets();
    std::fs::remove_file(path).unwrap();
    let names = format!("InitiatorName={OTHER}\0TargetName={}\0", server.target);
    // Directly to the operational stage, without a method, or with none.
    for (flags, keys) in [
        (0x87, ""),
        (0x83, ""),
        (0x83, "AuthMethod=None\0"),
        (0x81, "AuthMethod=None\0"),
    ] {
        let mut client = Client::connect(&server);
        let answer = client.login(flags, &format!("{names}{keys}"));
        assert_eq!(answer.head[36..38], [2, 1], "{keys}");
    }
    // The target's own challenge reflected, and a proof of another challenge.
    for reflect in [true, false] {
        let mut client = Client::connect(&server);
        let answer = client.login(0x81, &format!("{names}AuthMethod=CHAP\0"));
        assert!(
            answer.text().contains("AuthMethod=CHAP"),
            "{}",
            answer.text()
        );
        assert_eq!(answer.head[1] & 0x80, 0, "authentication cannot be skipped");
        let answer = client.login(0x01, "CHAP_A=7,5\0");
        let text = answer.text();
        let challenge = text
            .lines()
            .find_map(|line| line.strip_prefix("CHAP_C="))
            .unwrap();
        let back = if reflect { challenge } else { "0x00112233" };
        let proof = format!(
            "CHAP_N=host\0CHAP_R=0x{}\0CHAP_I=1\0CHAP_C={back}\0",
            "00".repeat(32)
        );
        let answer = client.login(0x81, &proof);
        assert_eq!(answer.head[36..38], [2, 1]);
        assert!(
            !answer.text().contains("CHAP_R"),
            "the target proves nothing to an unauthenticated host"
        );
        assert!(client.receive().is_none());
    }
    // The target is not listed either.
    let mut client = Client::connect(&server);
    let answer = client.login(
        0x87,
        &format!("InitiatorName={OTHER}\0SessionType=Discovery\0"),
    );
    assert_eq!(answer.head[36], 0);
    client.send(
        &Pdu::new(0x44, 0x80)
            .word(16, 1)
            .word(20, NO_TAG)
            .word(24, 1)
            .data(b"SendTargets=All\0"),
    );
    assert!(client.receive().unwrap().data.is_empty());
}

#[test]
fn initiators_without_access_see_nothing() {
    let server = Server::start(&[("initiators", HOST)]);
    let mut client = Client::connect(&server);
    let names = format!("InitiatorName={OTHER}\0TargetName={}\0", server.target);
    assert_eq!(client.login(0x87, &names).head[36..38], [2, 3]);
    drop(Client::log_in(&server, HOST, ""));
}

/// An identification descriptor of a volume (SPC-4 6.3.6.2).
fn descriptor(serial: &str) -> [u8; 32] {
    let name = scsi::Identity::new(serial).name();
    let hex = name.trim_start_matches("naa.");
    let mut entry = [0; 32];
    (entry[0], entry[4], entry[5], entry[7]) = (0xe4, 1, 3, 16);
    for (index, byte) in entry[8..24].iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap();
    }
    entry
}

/// EXTENDED COPY of one block from unit 0 to the other; status and sense key.
fn copy(client: &mut Client, from: &str, to: &str) -> (u8, Option<u8>) {
    let mut list = vec![0; 16];
    (list[3], list[11]) = (64, 28);
    list.extend(descriptor(from));
    list.extend(descriptor(to));
    let mut segment = [0; 28];
    (segment[0], segment[3], segment[7], segment[11]) = (0x02, 0x18, 1, 1);
    list.extend(segment);
    let mut cdb = [0; 16];
    (cdb[0], cdb[13]) = (0x83, list.len() as u8);
    let command = client.command(0xa1, list.len() as u32, &cdb);
    client.send(&command.data(&list));
    let answer = client.receive().unwrap();
    (answer.head[3], answer.data.get(4).copied())
}

#[test]
fn inaccessible_unit_is_neither_listed_nor_a_copy_target() {
    let server = Server::start(&[]);
    let (_export, device, serial) = server.second(&[("initiators", HOST)]);
    let own = server
        .target
        .trim_start_matches("iqn.2026-11.test:")
        .to_owned();
    for (name, units, copied) in [(OTHER, 8, (2, Some(0x0a))), (HOST, 16, (0, None))] {
        let mut client = Client::log_in(&server, name, "").settle();
        assert_eq!(client.write(0, &[0x77; 512]), 0);
        let report = client.command(0xc1, 64, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64]);
        client.send(&report);
        assert_eq!(client.receive().unwrap().data[3], units, "{name}");
        if name == HOST {
            // Unit 1 is as new to it as unit 0 was.
            let ready = client.command(0x81, 0, &[0; 6]).byte(9, 1);
            client.send(&ready);
            assert_eq!(client.receive().unwrap().head[3], 2);
        }
        assert_eq!(copy(&mut client, &own, &serial), copied, "{name}");
        let expected = if name == HOST { 0x77 } else { 0 };
        assert_eq!(device.content(0, 512), [expected; 512], "{name}");
    }
}
