//! A read-only host cannot affect a unit that others write to, by any command.

use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;

const WRITER: &str = "iqn.2026-11.test:writer";
const OTHER: &str = "iqn.2026-11.test:other";

/// A CDB with its data-out.
type Command = (Vec<u8>, Vec<u8>);

/// Sends a command with its data: status, and data or sense data.
fn run(client: &mut Client, (cdb, data): &Command) -> (u8, Vec<u8>) {
    let (flags, expected) = match data.len() {
        0 => (0xc1, 4096),
        len => (0xa1, len as u32),
    };
    let pdu = client.command(flags, expected, cdb).data(data);
    client.send(&pdu);
    let mut all = Vec::new();
    loop {
        let answer = client.receive().expect("the session continues");
        all.extend(&answer.data);
        match answer.opcode() {
            0x25 if answer.head[1] & 1 == 0 => {}
            0x21 | 0x25 => return (answer.head[3], all),
            other => panic!("opcode {other:02x} for {cdb:02x?}"),
        }
    }
}

/// Key, code and qualifier of fixed-format sense data, after its length.
fn sense(data: &[u8]) -> (u8, u8, u8) {
    (data[4], data[14], data[15])
}

/// The complete state of the unit as visible to its writer.
fn state(server: &Server, writer: &mut Client) -> Vec<(u8, Vec<u8>)> {
    let commands: [&[u8]; 5] = [
        &[0; 6],
        &[0x1a, 0, 0x0a, 0, 255, 0],
        &[0x5e, 3, 0, 0, 0, 0, 0, 4, 0, 0],
        &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0],
        &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0],
    ];
    let commands = commands.map(|cdb| run(writer, &(cdb.to_vec(), Vec::new())));
    let mut state = commands.to_vec();
    state.push((0, server.device.content(0, 64 << 10)));
    state
}

/// A CDB: these bytes, padded with zeroes.
fn cdb(bytes: &[u8]) -> Vec<u8> {
    let mut cdb = bytes.to_vec();
    cdb.resize(16, 0);
    cdb
}

fn reserve_out(action: u8, kind: u8, key: u8, flags: u8) -> Command {
    let mut list = vec![0; 24];
    (list[15], list[20]) = (key, flags);
    (cdb(&[0x5f, action, kind, 0, 0, 0, 0, 0, 24]), list)
}

/// A copy of block 8 to block 0 within the unit.
fn copy_list(server: &Server, long: bool) -> Vec<u8> {
    let serial = server.target.rsplit(':').next().unwrap();
    let name = scsi::Identity::new(serial).name();
    let hex = name.trim_start_matches("naa.");
    let mut target = [0; 32];
    (target[0], target[4], target[5], target[7]) = (0xe4, 1, 3, 16);
    for (index, byte) in target[8..24].iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap();
    }
    let mut segment = [0; 28];
    (segment[0], segment[3], segment[11], segment[19]) = (0x02, 0x18, 1, 8);
    let mut list = vec![0; if long { 48 } else { 16 }];
    match long {
        false => (list[3], list[11]) = (32, 28),
        true => (list[0], list[3], list[16], list[43], list[45]) = (1, 32, 0xff, 32, 28),
    }
    list.extend(target);
    list.extend(segment);
    list
}

/// Attempts to change the unit with this operation code and service action.
fn attempts(server: &Server, opcode: u8, action: u8) -> Vec<Command> {
    let block = vec![0xee; 512];
    let control = |head: usize| {
        let mut list = vec![0; head];
        list.extend([0x0a, 0x0a, 0x24, 0x10, 0x08, 0, 0, 0, 0xff, 0xff, 0, 0]);
        list
    };
    match (opcode, action) {
        (0x0a, _) => vec![(cdb(&[0x0a, 0, 0, 0, 1]), block)],
        (0x15, _) => vec![(cdb(&[0x15, 0x10, 0, 0, 16]), control(4))],
        (0x55, _) => vec![(cdb(&[0x55, 0x10, 0, 0, 0, 0, 0, 0, 20]), control(8))],
        (0x16, _) => vec![(cdb(&[0x16]), Vec::new())],
        (0x1b, _) => [0x00, 0x02, 0x10, 0x01]
            .map(|flags| (cdb(&[0x1b, 0, 0, 0, flags]), Vec::new()))
            .to_vec(),
        (0x2a | 0x2e, _) => vec![(cdb(&[opcode, 0, 0, 0, 0, 0, 0, 0, 1]), block)],
        (0xaa | 0xae, _) => vec![(cdb(&[opcode, 0, 0, 0, 0, 0, 0, 0, 0, 1]), block)],
        (0x8a | 0x8b | 0x8e, _) => {
            let mut long = cdb(&[opcode]);
            long[13] = 1;
            vec![(long, block)]
        }
        (0x9c, _) => {
            let mut long = cdb(&[opcode]);
            long[13] = 8;
            vec![(long, vec![0xee; 4096])]
        }
        (0x89, _) => {
            let mut long = cdb(&[opcode]);
            long[13] = 1;
            vec![(long, [vec![0x11; 512], block].concat())]
        }
        (0x41, _) => vec![(cdb(&[0x41, 0, 0, 0, 0, 0, 0, 0, 1]), block)],
        (0x93, _) => {
            let mut long = cdb(&[opcode, 0x08]);
            long[13] = 1;
            vec![(long, block)]
        }
        (0x42, _) => {
            let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
            list.extend([0; 11]);
            list.extend([16, 0, 0, 0, 0]);
            vec![(cdb(&[0x42, 0, 0, 0, 0, 0, 0, 0, 24]), list)]
        }
        (0x48, 0x01) => vec![(
            cdb(&[0x48, 0x01, 0, 0, 0, 0, 0, 0, 5]),
            vec![1, 0, 0, 1, 0x5a],
        )],
        (0x48, _) => vec![(cdb(&[0x48, action]), Vec::new())],
        (0x5f, _) => [0x00, 0x01]
            .into_iter()
            .flat_map(|flags| {
                [1, 3].map(|kind| {
                    [
                        reserve_out(0, 0, 7, flags),
                        reserve_out(action, kind, 7, flags),
                    ]
                })
            })
            .flatten()
            .collect(),
        (0x83, 0x00 | 0x01) => {
            let list = copy_list(server, action == 1);
            let mut long = cdb(&[0x83, action]);
            long[13] = list.len() as u8;
            vec![(long, list)]
        }
        // The zero token, for block 0.
        (0x83, 0x11) => {
            let mut list = vec![0; 536 + 16];
            list[..2].copy_from_slice(&550u16.to_be_bytes());
            list[16..20].copy_from_slice(&0xffff_0001u32.to_be_bytes());
            list[22..24].copy_from_slice(&504u16.to_be_bytes());
            (list[535], list[536 + 11]) = (16, 1);
            let mut long = cdb(&[0x83, 0x11, 0, 0, 0, 0, 0, 0, 0, 1]);
            long[10..14].copy_from_slice(&552u32.to_be_bytes());
            vec![(long, list)]
        }
        (0xa4, _) => vec![(
            cdb(&[0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 8]),
            vec![0, 0, 0, 0, 2, 0, 0, 1],
        )],
        // Any command: to no block, and to the first one.
        _ => vec![
            (cdb(&[opcode, action]), Vec::new()),
            (cdb(&[opcode, action, 0, 0, 0, 0, 0, 0, 1]), Vec::new()),
        ],
    }
}

/// Operation codes and service actions that the unit reports.
fn commands(client: &mut Client) -> Vec<(u8, u8)> {
    let cdb = cdb(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 16, 0]);
    let (status, list) = run(client, &(cdb, Vec::new()));
    assert_eq!(status, 0);
    let rows = list[4..].chunks_exact(8);
    rows.map(|row| (row[0], row[3])).collect()
}

/// A volume with content and a writing host, and another host's session to it.
struct Shared {
    server: Server,
    writer: Client,
    other: Client,
    _export: Box<dyn reactor::Export>,
}

fn shared(read_only: &str) -> Shared {
    let server = Server::start(&[]);
    let target = format!("{}.other", server.target);
    let export = server.also(&[("target", &target), ("read-only", read_only)]);
    let mut writer = Client::log_in(&server, WRITER, "").settle();
    assert_eq!(writer.write(0, &[0x11; 512 * 16]), 0);
    let other = Client::log_in_to(server.portal(), &target, OTHER, "").settle();
    Shared {
        server,
        writer,
        other,
        _export: export,
    }
}

#[test]
fn read_only_host_cannot_change_the_unit() {
    let mut all = shared("yes");
    let before = state(&all.server, &mut all.writer);
    let rows = commands(&mut all.writer);
    assert!(rows.len() > 60);
    for (opcode, action) in rows {
        for attempt in attempts(&all.server, opcode, action) {
            let (status, data) = run(&mut all.other, &attempt);
            let after = state(&all.server, &mut all.writer);
            let told = (status == 2).then(|| sense(&data));
            assert!(
                after == before,
                "{:02x?}: {status:02x} {told:02x?}",
                attempt.0
            );
        }
    }
    assert_eq!(all.writer.write(0, &[0x22; 512]), 0);
}

#[test]
fn changing_commands_are_write_protected_and_effective_for_a_writer() {
    let changing: [(u8, u8); 31] = [
        (0x0a, 0),
        (0x15, 0),
        (0x16, 0),
        (0x1b, 0),
        (0x2a, 0),
        (0x2e, 0),
        (0x41, 0),
        (0x42, 0),
        (0x48, 1),
        (0x48, 2),
        (0x55, 0),
        (0x5f, 0),
        (0x5f, 1),
        (0x5f, 2),
        (0x5f, 3),
        (0x5f, 4),
        (0x5f, 5),
        (0x5f, 6),
        (0x5f, 7),
        (0x83, 0x11),
        (0x89, 0),
        (0x8a, 0),
        (0x8b, 0),
        (0x8e, 0),
        (0x93, 0),
        (0x9c, 0),
        (0xa4, 0x0a),
        (0xaa, 0),
        (0xae, 0),
        (0x83, 0x00),
        (0x83, 0x01),
    ];
    let mut reader = shared("yes");
    for (opcode, action) in changing {
        // Verifies that the attempts of the other test would be effective.
        let mut writers = shared("no");
        let list = attempts(&writers.server, opcode, action);
        // The source of the copy must have different content.
        if opcode == 0x83 {
            assert_eq!(run(&mut writers.other, &write_of(8)).0, 0);
        }
        let before = state(&writers.server, &mut writers.writer);
        for attempt in &list {
            run(&mut writers.other, attempt);
            if state(&writers.server, &mut writers.writer) != before {
                break;
            }
        }
        let after = state(&writers.server, &mut writers.writer);
        // Portal states belong to the target that the other host has logged in to.
        let changes = after != before || opcode == 0xa4;
        assert!(changes, "{opcode:02x}/{action:02x} changes something");
        let (status, data) = run(
            &mut reader.other,
            &attempts(&reader.server, opcode, action)[0],
        );
        let expected = match opcode {
            // The read-only unit is one of those in the list.
            0x83 if action < 2 => (0x0a, 0x0d, 0x01),
            _ => (0x07, 0x27, 0x00),
        };
        assert_eq!((status, sense(&data)), (2, expected), "{opcode:02x}");
    }
}

/// A write of one block.
fn write_of(lba: u8) -> Command {
    let command = cdb(&[0x2a, 0, 0, 0, 0, lba, 0, 0, 1]);
    (command, vec![0x77; 512])
}

#[test]
fn resets_of_a_read_only_host_affect_only_its_commands() {
    let mut all = shared("yes");
    assert_eq!(run(&mut all.writer, &(cdb(&[0x16]), Vec::new())).0, 0);
    all.server.device.hold();
    let waiting = all.writer.write_10(0, 1, 0xa1).data(&[1; 512]);
    all.writer.send(&waiting);
    while all.server.device.in_flight() == 0 {
        std::thread::yield_now();
    }
    // ABORT TASK SET, CLEAR TASK SET, and resets of the unit and of the target.
    for function in [0x82, 0x84, 0x85, 0x86, 0x87] {
        let number = all.other.command_number;
        let pdu = Pdu::new(0x42, function).word(16, u32::from(function));
        all.other.send(&pdu.word(20, NO_TAG).word(24, number));
        let answer = all.other.receive().unwrap();
        assert_eq!(
            (answer.opcode(), answer.head[2]),
            (0x22, 0),
            "{function:02x}"
        );
    }
    all.server.device.go_on();
    let answer = all.writer.receive().unwrap();
    assert_eq!(
        (answer.opcode(), answer.head[3]),
        (0x21, 0),
        "the write completed"
    );
    assert_eq!(all.writer.ready(), 0, "without a unit attention");
    // The reservation is unchanged.
    let (status, _) = run(
        &mut all.other,
        &(cdb(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1]), Vec::new()),
    );
    assert!([0x02, 0x18].contains(&status));
    let (status, _) = run(
        &mut all.other,
        &(cdb(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1]), Vec::new()),
    );
    assert_eq!(status, 0x18);
}
