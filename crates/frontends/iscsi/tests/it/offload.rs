//! Token-based copies (Windows ODX), EXTENDED COPY(LID4), and reported space.

use crate::support::client::Client;
use crate::support::server::Server;
use reactor::Space;

const HOST: &str = "iqn.2026-11.test:host";
const OTHER: &str = "iqn.2026-11.test:other";

/// Sends a command with a parameter list; status, and key and code on failure.
fn out(client: &mut Client, cdb: &[u8], list: &[u8]) -> Result<(), (u8, u8, u8)> {
    let pdu = client.command(0xa1, list.len() as u32, cdb).data(list);
    client.send(&pdu);
    let answer = client.receive().unwrap();
    match answer.head[3] {
        0 => Ok(()),
        _ => Err((answer.data[4], answer.data[14], answer.data[15])),
    }
}

fn read_in(client: &mut Client, lun: u8, cdb: &[u8]) -> Vec<u8> {
    let pdu = client.command(0xc1, 4096, cdb).byte(9, lun);
    client.send(&pdu);
    let answer = client.receive().unwrap();
    assert_eq!(answer.opcode(), 0x25);
    answer.data
}

fn descriptors(ranges: &[(u64, u32)]) -> Vec<u8> {
    let mut list = ((ranges.len() * 16) as u16).to_be_bytes().to_vec();
    for (lba, blocks) in ranges {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    list
}

/// A CDB with a list identifier of four bytes.
fn cdb(opcode: u8, action: u8, id: u8, len: usize) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[9]) = (opcode, action, id);
    cdb[10..14].copy_from_slice(&(len as u32).to_be_bytes());
    cdb
}

fn populate(client: &mut Client, ranges: &[(u64, u32)]) -> Result<(), (u8, u8, u8)> {
    let mut list = vec![0; 14];
    list.extend(descriptors(ranges));
    let len = list.len() as u16 - 2;
    list[..2].copy_from_slice(&len.to_be_bytes());
    out(client, &cdb(0x83, 0x10, 7, list.len()), &list)
}

/// RECEIVE ROD TOKEN INFORMATION: status, blocks, and the token.
fn information(client: &mut Client) -> (u8, u64, Vec<u8>) {
    let mut cdb = cdb(0x84, 0x07, 0, 4096);
    cdb[5] = 7;
    let data = read_in(client, 0, &cdb);
    let sense = usize::from(data[13]);
    let blocks = u64::from_be_bytes(data[16..24].try_into().unwrap());
    (
        data[5],
        blocks,
        data[32 + sense + 4..].get(2..).unwrap_or(&[]).to_vec(),
    )
}

fn token_of(client: &mut Client, ranges: &[(u64, u32)]) -> Vec<u8> {
    populate(client, ranges).unwrap();
    let (status, blocks, token) = information(client);
    let wanted: u32 = ranges.iter().map(|range| range.1).sum();
    assert_eq!((status, blocks, token.len()), (1, u64::from(wanted), 512));
    token
}

fn write_using(
    client: &mut Client,
    token: &[u8],
    offset: u64,
    ranges: &[(u64, u32)],
) -> Result<(), (u8, u8, u8)> {
    let mut list = vec![0; 8];
    list.extend(offset.to_be_bytes());
    list.extend(token);
    list.extend([0; 6]);
    list.extend(descriptors(ranges));
    let len = list.len() as u16 - 2;
    list[..2].copy_from_slice(&len.to_be_bytes());
    out(client, &cdb(0x83, 0x11, 7, list.len()), &list)
}

fn pattern(blocks: usize) -> Vec<u8> {
    (0..blocks * 512).map(|at| (at / 3 % 251) as u8).collect()
}

const REVOKED: Result<(), (u8, u8, u8)> = Err((5, 0x23, 0x06));
const UNKNOWN: Result<(), (u8, u8, u8)> = Err((5, 0x23, 0x04));

#[test]
fn token_copies_to_a_unit_of_another_target() {
    let (source, target) = (Server::start(&[]), Server::start(&[]));
    let mut from = Client::log_in(&source, HOST, "").settle();
    let mut to = Client::log_in(&target, HOST, "").settle();
    let data = pattern(16);
    assert_eq!(from.write(100, &data), 0);
    let token = token_of(&mut from, &[(100, 10), (112, 4)]);
    assert_eq!(write_using(&mut to, &token, 0, &[(0, 4), (8, 10)]), Ok(()));
    assert_eq!(information(&mut to).1, 14);
    let copied = [&data[..10 * 512], &data[12 * 512..]].concat();
    assert_eq!(target.device.content(0, 4 * 512), copied[..4 * 512]);
    assert_eq!(target.device.content(8 * 512, 10 * 512), copied[4 * 512..]);
    // From the middle, and beyond the end.
    assert_eq!(write_using(&mut to, &token, 12, &[(50, 8)]), Ok(()));
    assert_eq!(information(&mut to), (3, 2, Vec::new()));
    assert_eq!(target.device.content(50 * 512, 1024), copied[12 * 512..]);
    assert_eq!(target.device.content(52 * 512, 512), [0; 512]);
}

#[test]
fn token_expires_with_its_source() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let mut writer = Client::log_in(&server, OTHER, "").settle();
    assert_eq!(host.write(0, &pattern(8)), 0);
    let token = token_of(&mut host, &[(0, 8)]);
    assert_eq!(writer.write(8, &[1; 512]), 0);
    assert_eq!(
        write_using(&mut host, &token, 0, &[(100, 8)]),
        Ok(()),
        "beside it"
    );
    assert_eq!(writer.write(7, &[1; 512]), 0);
    assert_eq!(write_using(&mut host, &token, 0, &[(200, 8)]), REVOKED);
    assert_eq!(server.device.content(200 * 512, 8 * 512), [0; 8 * 512]);
}

#[test]
fn token_is_bound_to_its_initiator_and_session() {
    let (source, target) = (Server::start(&[]), Server::start(&[]));
    let mut from = Client::log_in(&source, HOST, "").settle();
    let mut to = Client::log_in(&target, HOST, "").settle();
    let mut other = Client::log_in(&target, OTHER, "").settle();
    let token = token_of(&mut from, &[(0, 8)]);
    assert_eq!(write_using(&mut other, &token, 0, &[(0, 8)]), REVOKED);
    for at in [0, 8, 130, 300, 511] {
        let mut forged = token.clone();
        forged[at] ^= 1;
        assert_eq!(write_using(&mut to, &forged, 0, &[(0, 8)]), UNKNOWN, "{at}");
    }
    assert_eq!(write_using(&mut to, &token, 0, &[(0, 8)]), Ok(()));
    drop(from);
    while source.sessions() > 0 {
        std::thread::yield_now();
    }
    // Creating a token, as other tests do, drops expired ones.
    let refused = write_using(&mut to, &token, 0, &[(0, 8)]);
    assert!(matches!(refused, REVOKED | UNKNOWN), "{refused:?}");
}

#[test]
fn copy_destination_and_limits_are_validated() {
    let mut server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    assert!(
        populate(&mut host, &[(0, 8), (4, 8)]).is_err(),
        "overlapping ranges"
    );
    assert!(populate(&mut host, &[(1 << 40, 1)]).is_err());
    assert!(populate(&mut host, &vec![(0, 1); 65]).is_err());
    let token = token_of(&mut host, &[(0, 8)]);
    assert!(write_using(&mut host, &token, 8, &[(100, 1)]).is_err());
    let many: Vec<_> = (0..20)
        .map(|at| token_of(&mut host, &[(at * 8, 8)]))
        .collect();
    assert_eq!(
        write_using(&mut host, &token, 0, &[(900, 8)]),
        UNKNOWN,
        "too many since"
    );
    server.change(&[("read-only", "yes")]).unwrap();
    assert!(host.ready() == 2, "a unit attention");
    assert_eq!(
        write_using(&mut host, &many[19], 0, &[(900, 8)]),
        Err((7, 0x27, 0))
    );
}

#[test]
fn zero_token_writes_zeroes() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    assert_eq!(host.write(0, &pattern(8)), 0);
    let mut zeroes = vec![0; 512];
    zeroes[..8].copy_from_slice(&[0xff, 0xff, 0, 1, 0, 0, 1, 0xf8]);
    assert_eq!(write_using(&mut host, &zeroes, 0, &[(1, 6)]), Ok(()));
    assert_eq!(server.device.content(512, 6 * 512), [0; 6 * 512]);
    assert_eq!(server.device.content(0, 512), pattern(1));
}

#[test]
fn extended_copy_lid4_copies_and_reports_status() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    assert_eq!(host.write(0, &pattern(4)), 0);
    let page = read_in(&mut host, 0, &[0x12, 0x01, 0x83, 0x10, 0, 0]);
    assert_eq!(page[4..8], [0x01, 0x03, 0, 16], "the NAA name comes first");
    let mut list = vec![0; 48];
    (list[0], list[3], list[16], list[23]) = (1, 32, 0xff, 9);
    (list[43], list[45]) = (32, 28);
    let mut unit = [0; 32];
    (unit[0], unit[4], unit[5], unit[7]) = (0xe4, 0x01, 0x03, 16);
    unit[8..24].copy_from_slice(&page[8..24]);
    unit[30] = 2;
    list.extend(unit);
    let mut segment = [0; 28];
    (segment[0], segment[3], segment[11], segment[27]) = (0x02, 0x18, 4, 64);
    list.extend(segment);
    assert_eq!(
        out(&mut host, &cdb(0x83, 0x01, 0, list.len()), &list),
        Ok(())
    );
    assert_eq!(server.device.content(64 * 512, 4 * 512), pattern(4));
    let mut status = cdb(0x84, 0x05, 0, 4096);
    status[5] = 9;
    let told = read_in(&mut host, 0, &status);
    assert_eq!((told[4], told[5], told[25]), (0x01, 1, 1));
}

#[test]
fn filling_pool_raises_unit_attention_and_is_queryable() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let page = |host: &mut Client| read_in(host, 0, &[0x4d, 0, 0x4c, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(page(&mut host)[2..4], [0, 0], "no space was reported");
    let space = Space {
        used: 81 << 20,
        capacity: 100 << 20,
        warn_at: Some(80 << 20),
    };
    let export = server.export.as_ref().unwrap();
    export.note_space(space, false);
    let told = page(&mut host);
    assert_eq!((told[11], told[23]), (19, 81));
    let mode = read_in(&mut host, 0, &[0x5a, 0x08, 0x1c, 0x02, 0, 0, 0, 1, 0, 0]);
    assert_eq!(mode[8..10], [0x5c, 0x02]);
    assert_eq!((mode[24], mode[31]), (0x81, 80));
    export.note_space(space, true);
    let pdu = host.command(0x81, 0, &[0; 6]);
    host.send(&pdu);
    let answer = host.receive().unwrap();
    assert_eq!(answer.data[14..16], [0x38, 0x07]);
    assert_eq!(host.ready(), 0);
}
