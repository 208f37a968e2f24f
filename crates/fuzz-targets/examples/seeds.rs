//! Writes the seeds of the fuzz corpus, one or more of every record as the program encodes it:
//! `cargo run -p convect-fuzz-targets --example seeds`.

use format::{
    BlockCounts, BlockMask, Checkpoint, ChunkPage, Features, HOME_GROUPS, HomesPage, JournalHeader,
    JournalPage, Label, NodePage, Page, PageHeader, PageKind, PagePtr, PoolConfig, Record,
    SlotsPage, VolumePage,
};
use serde_json::{Value, json};
use std::path::Path;
use stream::{Begin, Encoder};
use units::{DriveId, Place, PoolId, ShardId, SnapshotId, VdriveId};

fn save(target: &str, name: &str, bytes: &[u8]) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = corpus.join(target);
    std::fs::create_dir_all(&folder).expect("the folder can be created");
    std::fs::write(folder.join(name), bytes).expect("a seed can be written");
}

/// For targets that fill up with zeroes: those at the end are left out.
fn save_short(target: &str, name: &str, bytes: &[u8]) {
    let length = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    save(target, name, &bytes[..length]);
}

fn at(block: u64) -> Place {
    Place::new(VdriveId(1), block)
}

fn ptr(block: u64) -> PagePtr {
    PagePtr {
        place: Place::new(VdriveId(0), block),
        crc: 0x1234_5678,
        hint: 3,
    }
}

/// A pool with every layout, in the words of docs/format.md.
fn config() -> PoolConfig {
    let id = |drive: u128| DriveId(drive).to_string();
    let part =
        |drive: u128, offset: u64| json!({"drive": id(drive), "offset": offset, "blocks": 4096});
    let data = |drives: &[u128]| {
        drives
            .iter()
            .map(|drive| part(*drive, 1 << 30))
            .collect::<Vec<_>>()
    };
    let drive = |drive: u128| json!({"id": id(drive), "spec": "file:/dev/x", "size": 64u64 << 30});
    let vdrive = |id: u8, tier: &str, layout: Value, drives: &[u128]| json!({"id": id, "tier": tier, "layout": layout, "parts": data(drives)});
    let mut stale = part(2, 1 << 21);
    stale["out"] = true.into();
    stale["stale"] = "00000000000000ff".into();
    let config = json!({
        "name": "tank",
        "policy": "slow_first",
        "shards": 2,
        "group_blocks": 512,
        "meta": {"parts": [part(1, 1 << 21), stale], "journal_blocks": 1024},
        "drives": (1..=5).map(drive).collect::<Vec<_>>(),
        "vdrives": [
            vdrive(1, "fast", json!({"kind": "mirror"}), &[1, 2]),
            vdrive(2, "slow", json!({"kind": "stripe", "chunk_blocks": 16}), &[3, 4]),
            vdrive(3, "slow", json!({"kind": "concat"}), &[5]),
        ],
        "volumes": [{"id": 1, "name": "disk", "size": 1 << 30, "lba_size": 512, "thick": false}],
        "exports": [{"name": "disk", "volume": "disk", "kind": "nbd",
            "parameters": {"listen": "unix:/run/disk.sock"}}],
        "next_volume": 2,
        "later": "kept",
    });
    serde_json::from_value(config).expect("it is a description")
}

fn labels() {
    let label = |features| Label {
        pool: PoolId(1),
        drive: DriveId(1),
        generation: 7,
        exported: true,
        config: PoolConfig {
            features,
            ..config()
        },
    };
    let features = |compatible, read_only, incompatible| Features {
        compatible,
        read_only,
        incompatible,
    };
    for (name, features) in [
        ("plain", features(0, 0, 0)),
        ("compatible", features(1 << 63, 0, 0)),
        ("read-only", features(0, 2, 0)),
        ("incompatible", features(0, 0, 4)),
    ] {
        save_short("label", name, &label(features).encode().expect("it fits"));
    }
    let bytes = label(Features::default()).encode().expect("it fits");
    save("config", "plain", &bytes[128..]);
}

fn records() -> Vec<Record> {
    let (volume, chunk) = (1, 2);
    let mask: BlockMask = [0, 63, 64, 255].into_iter().collect();
    vec![
        Record::Write {
            volume,
            chunk,
            first: 3,
            slot: at(5),
            crcs: vec![7, 8].into(),
            old: vec![].into(),
        },
        Record::Write {
            volume,
            chunk,
            first: 0,
            slot: at(9),
            crcs: vec![7; 16].into(),
            old: vec![at(9); 16].into(),
        },
        Record::Trim {
            volume,
            chunk,
            first: 3,
            count: 2,
            old: vec![at(1), Place::NONE].into(),
        },
        Record::Trim {
            volume,
            chunk,
            first: 0,
            count: 256,
            old: vec![].into(),
        },
        Record::Promote {
            volume,
            chunk,
            first: 16,
            count: 16,
            slot: at(1 << 39),
        },
        Record::Evict {
            volume,
            chunk,
            mask,
            old: vec![at(3); 4].into(),
        },
        Record::Home {
            volume,
            chunk,
            home: at(256),
            mask,
        },
        Record::MoveHome {
            volume,
            chunk,
            new: at(512),
            old: at(256),
        },
        Record::MoveHome {
            volume,
            chunk,
            new: Place::NONE,
            old: at(256),
        },
        Record::Merge {
            volume,
            chunk,
            lower: 3,
        },
    ]
}

fn journal() {
    let mut page = JournalPage::new();
    for (index, record) in records().iter().enumerate() {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        save("record", &format!("kind-{index}"), &bytes);
        assert!(page.push(record), "all of them fit");
    }
    let header = JournalHeader {
        pool: PoolId(1),
        shard: ShardId(0),
        epoch: 3,
        sequence: 9,
        durable_below: 8,
    };
    let mut bytes = vec![0; fuzz_targets::input::PAGE];
    page.seal(header, &mut bytes);
    save_short("journal", "all-kinds", &bytes);
    JournalPage::new().seal(header, &mut bytes);
    save_short("journal", "empty", &bytes);
}

fn pages() {
    let content = |page: &Page| page.bytes()[64..].to_vec();
    let header = PageHeader {
        kind: PageKind::Node,
        level: 1,
        owner: 1,
        key: 0,
        generation: 1,
    };
    let mut node = Page::new(header);
    for index in [0, 1, 7] {
        NodePage::set(&mut node, index, ptr(index as u64 + 1));
    }
    save_short("node", "content", &content(&node));
    save_short("node", "whole", node.bytes());

    let mut chunk = ChunkPage::new(1, 2);
    chunk.set_home(at(256));
    for block in 0..4 {
        chunk.set_slot(block, at(5 + block as u64));
        chunk.set_crc(block, 9);
        chunk.set_home_valid(block, block > 1);
    }
    save_short("chunk", "content", &content(chunk.page()));
    save_short("chunk", "whole", chunk.page().bytes());

    let counts = BlockCounts {
        home: 1,
        fast: 2,
        clean: 3,
        slow: 4,
    };
    let volume = VolumePage::encode(VolumePage::header(u32::MAX, 2, 3), ptr(3), counts);
    save_short("volume", "content", &content(&volume));
    save_short("volume", "whole", volume.bytes());

    let mut bits = [0; 256];
    bits[0] = u64::MAX;
    let slots = SlotsPage::encode(SlotsPage::header(u32::MAX - 1, 2, 3), &bits);
    save_short("slots", "content", &content(&slots));
    save_short("slots", "whole", slots.bytes());

    let mut groups = [None; HOME_GROUPS];
    groups[0] = Some(5);
    let homes = HomesPage::encode(HomesPage::header(u32::MAX - 2, 2, 3), &groups);
    save_short("homes", "content", &content(&homes));
    save_short("homes", "whole", homes.bytes());
}

fn nbd() {
    let string = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    save(
        "nbd_option",
        "info",
        &[string("disk"), vec![0, 2, 0, 3, 0, 1]].concat(),
    );
    let contexts = [
        string("disk"),
        vec![0, 0, 0, 2],
        string("base:"),
        string("base:allocation"),
    ];
    save("nbd_option", "contexts", &contexts.concat());
    let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
    request.extend(4..28u8);
    save("nbd_request", "request", &request);
}

/// One of every kind of PDU, and what belongs together.
fn sessions() {
    // How it is sent, sixteenths of its data, its header, its data.
    let pdu = |opcode: u8, flags: u8, words: &[(usize, u32)], cdb: &[u8], data: &[u8]| {
        let mut bytes = vec![0, (data.len() / 16) as u8];
        let mut head = [0; 48];
        (head[0], head[1]) = (opcode, flags);
        for (at, value) in words {
            head[*at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        head[32..32 + cdb.len()].copy_from_slice(cdb);
        bytes.extend(head);
        bytes.extend(data);
        bytes
    };
    let none = u32::MAX;
    let ready = |tag| pdu(0x01, 0x81, &[(16, tag)], &[], &[]);
    // By the second connection; and with the number that it says, whatever was sent before.
    let by_second = |mut pdu: Vec<u8>| {
        pdu[0] |= 4;
        pdu
    };
    let numbered = |mut pdu: Vec<u8>, number: u8| {
        pdu[0] |= 2;
        pdu[2 + 27] = number;
        pdu
    };
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    // As much as one PDU of the input can carry.
    let write = [0x2a, 0, 0, 0, 0, 0, 0, 0, 7, 0];
    let text = |words: &str| {
        let mut text = words.as_bytes().to_vec();
        text.resize(text.len().next_multiple_of(16), 0);
        pdu(0x04, 0x80, &[(16, 1), (20, none)], &[], &text)
    };
    for (name, choice, pdus) in [
        (
            "ping",
            0,
            vec![pdu(0x40, 0x80, &[(16, 9), (20, none)], &[], &[1; 32])],
        ),
        ("targets", 0, vec![text("SendTargets=All\0")]),
        (
            "renegotiate",
            1,
            vec![text("MaxRecvDataSegmentLength=8192\0")],
        ),
        // Another initiator's unit: its attention first.
        (
            "elsewhere",
            0,
            vec![
                pdu(0x01, 0x81, &[(8, 0x0001_0000), (16, 1)], &[], &[]),
                pdu(
                    0x01,
                    0xc1,
                    &[(8, 0x0001_0000), (16, 2), (20, 4096)],
                    &read,
                    &[],
                ),
            ],
        ),
        (
            "reads",
            2,
            vec![
                ready(1),
                pdu(0x01, 0xc1, &[(16, 2), (20, 4096)], &read, &[]),
                pdu(
                    0x01,
                    0xc1,
                    &[(8, 0x0001_0000), (16, 3), (20, 4096)],
                    &read,
                    &[],
                ),
            ],
        ),
        (
            "at once",
            1,
            vec![
                ready(1),
                pdu(0x01, 0xa1, &[(16, 2), (20, 3584)], &write, &[7; 3584]),
            ],
        ),
        (
            "unasked",
            1,
            vec![
                ready(1),
                pdu(0x01, 0x21, &[(16, 2), (20, 3584)], &write, &[7; 1024]),
                pdu(
                    0x05,
                    0x00,
                    &[(16, 2), (20, none), (40, 1024)],
                    &[],
                    &[8; 1024],
                ),
                pdu(
                    0x05,
                    0x80,
                    &[(16, 2), (20, none), (36, 1), (40, 2048)],
                    &[],
                    &[9; 1536],
                ),
            ],
        ),
        (
            "asked for",
            2,
            vec![
                ready(1),
                pdu(0x01, 0xa1, &[(16, 2), (20, 3584)], &write, &[]),
                pdu(0x05, 0x80, &[(16, 2), (20, 1)], &[], &[7; 3584]),
            ],
        ),
        (
            "functions",
            0,
            [1, 2, 3, 4, 5, 6, 7]
                .map(|function| pdu(0x42, 0x80 | function, &[(16, 5), (20, 1)], &[], &[]))
                .to_vec(),
        ),
        (
            "two connections",
            0x80,
            vec![
                ready(1),
                by_second(numbered(ready(2), 3)),
                numbered(ready(3), 2),
                by_second(pdu(0x42, 0x85, &[(16, 5)], &[], &[])),
                pdu(0x40, 0x80, &[(16, none), (20, 1), (28, 9)], &[], &[]),
                pdu(0x46, 0x81, &[(16, 6), (20, 0x0001_0000)], &[], &[]),
            ],
        ),
        (
            "aborted before it comes",
            0x81,
            vec![
                ready(1),
                numbered(pdu(0x42, 0x81, &[(16, 5), (20, 7), (32, 2)], &[], &[]), 3),
                by_second(numbered(ready(7), 2)),
                by_second(ready(8)),
            ],
        ),
        (
            "leaves",
            0,
            vec![pdu(0x46, 0x80, &[(16, 3)], &[], &[]), ready(4)],
        ),
        (
            "acknowledges",
            0,
            vec![
                pdu(0x10, 0x80, &[(16, none), (20, none)], &[], &[]),
                ready(1),
            ],
        ),
        (
            "again",
            0,
            vec![pdu(0x43, 0x87, &[(16, 1)], &[], b"InitiatorName=a\0")],
        ),
        (
            "keys",
            0,
            vec![
                ready(1),
                pdu(
                    0x01,
                    0xc1,
                    &[(16, 2), (20, 64)],
                    &[0x5e, 0, 0, 0, 0, 0, 0, 0, 64],
                    &[],
                ),
            ],
        ),
    ] {
        save(
            "iscsi_session",
            name,
            &[vec![choice], pdus.concat()].concat(),
        );
    }
}

/// Who, what, by which key, with which new key, of what type, with which flags.
fn reservations() {
    let (register, reserve, release, clear, preempt, abort, ignore) = (0, 1, 2, 3, 4, 5, 6);
    let (one, two): ([u8; 6], [u8; 6]) = ([0, register, 0, 1, 0, 0], [1, register, 0, 2, 0, 0]);
    for kind in [1, 3, 5, 6, 7, 8] {
        let steps = [
            one,
            two,
            [0, reserve, 1, 0, kind, 0],
            [1, reserve, 2, 0, kind, 0],
            [1, preempt, 2, 1, kind, 0],
            [1, release, 2, 0, kind, 0],
        ];
        save("scsi_reservations", &format!("type{kind}"), &steps.concat());
    }
    let taken = [
        one,
        two,
        [0, reserve, 1, 0, 5, 0],
        [1, abort, 2, 1, 5, 0],
        [1, clear, 2, 0, 0, 0],
    ];
    save("scsi_reservations", "aborted", &taken.concat());
    let old = [
        [2, 8, 0, 0, 0, 0],
        one,
        [2, 9, 0, 0, 0, 0],
        [0, ignore, 0, 3, 0, 1],
    ];
    save("scsi_reservations", "old", &old.concat());
}

fn iscsi() {
    let keys = "InitiatorName=iqn.a\0TargetName=iqn.t\0SessionType=Normal\0AuthMethod=CHAP,None\0\
                HeaderDigest=CRC32C,None\0MaxBurstLength=262144\0InitialR2T=No\0";
    save("iscsi_login", "keys", keys.as_bytes());
    let proof = "CHAP_N=host\0CHAP_R=0x00112233445566778899aabbccddeeff\0CHAP_I=7\0CHAP_C=0bAAEC\0";
    save("iscsi_login", "proof", proof.as_bytes());
    let mut header = [0; 48];
    header[0] = 0x01;
    header[1] = 0xa1;
    header[32] = 0x2a;
    save("iscsi_login", "command", &header);
    sessions();
    reservations();
    // A command: unit, sixteenths of its data, CDB, data.
    let command = |cdb: &[u8], data: &[u8]| {
        let mut bytes = vec![0, (data.len() / 16) as u8];
        bytes.extend(cdb);
        bytes.resize(18, 0);
        bytes.extend(data);
        bytes
    };
    let ready = command(&[0x00], &[]);
    let register = |action: u8, key: u8, new: u8| {
        let mut list = [0; 32];
        (list[7], list[15]) = (key, new);
        command(&[0x5f, action, 1, 0, 0, 0, 0, 0, 24, 0], &list)
    };
    for (name, commands) in [
        ("inquiry", vec![command(&[0x12, 1, 0x83, 0, 255], &[])]),
        (
            "modes",
            vec![
                ready.clone(),
                command(&[0x5a, 0, 0x3f, 0, 0, 0, 0, 1, 0], &[]),
            ],
        ),
        (
            "write",
            vec![
                ready.clone(),
                command(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1], &[7; 512]),
            ],
        ),
        (
            "compare",
            vec![
                ready.clone(),
                command(&[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], &[0; 1024]),
            ],
        ),
        (
            "unmap",
            vec![
                ready.clone(),
                command(&[0x42, 0, 0, 0, 0, 0, 0, 0, 24], &[0; 32]),
            ],
        ),
        (
            "copy",
            vec![
                ready.clone(),
                command(&[0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 76], &[0; 80]),
            ],
        ),
        (
            "status",
            vec![
                ready.clone(),
                command(&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64], &[]),
            ],
        ),
        (
            "sanitize",
            vec![
                ready.clone(),
                command(&[0x48, 0x81, 0, 0, 0, 0, 0, 0, 8], &[1; 16]),
            ],
        ),
        (
            "reserve",
            vec![
                ready.clone(),
                register(0, 0, 5),
                register(1, 5, 0),
                command(&[0x5e, 3, 0, 0, 0, 0, 0, 1, 0], &[]),
                register(5, 5, 5),
            ],
        ),
        (
            "populate",
            vec![
                ready.clone(),
                command(
                    &[0x83, 0x10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 32],
                    &[
                        0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 8,
                        0, 0, 0, 8, 0, 0, 0, 0,
                    ],
                ),
                command(&[0x84, 0x07, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 2, 0], &[]),
            ],
        ),
        (
            "groups",
            vec![
                ready.clone(),
                command(
                    &[0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 8],
                    &[0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
                ),
                command(&[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 255], &[]),
            ],
        ),
        (
            "opcodes",
            vec![
                ready,
                command(&[0xa3, 0x0c, 0x80, 0, 0, 0, 0, 0, 0xff, 0xff], &[]),
            ],
        ),
    ] {
        save("scsi_commands", name, &commands.concat());
    }
}

fn kept_reservations() {
    let kept = "reservations 1\ngeneration 2\n\
                registration 7 1 iqn.t iqn.0,i,0x00023d000001\n\
                registration 8 1 iqn.t iqn.1,i,0x00023d000001\n\
                reservation 5 1 iqn.t iqn.0,i,0x00023d000001\n";
    save("reservations", "kept", kept.as_bytes());
    let list = |key: u8, new: u8, flags: u8| {
        let mut list = [0; 24];
        (list[7], list[15], list[20]) = (key, new, flags);
        list
    };
    let mut commands = vec![0];
    for (who, action, list) in [
        (0, 0, list(0, 7, 5)),
        (1, 6, list(0, 8, 1)),
        (0, 1, list(7, 0, 0)),
        (1, 5, list(8, 7, 0)),
    ] {
        commands.extend([who, 24, action, 6]);
        commands.extend(list);
    }
    save("reservations", "commands", &commands);
}

fn streams() {
    let id = |epoch| SnapshotId {
        pool: PoolId(1),
        epoch,
        created_s: 1_800_000_000,
    };
    for (name, from) in [("whole", None), ("later", Some(id(3)))] {
        let begin = Begin {
            pool: PoolId(2),
            to: id(5),
            from,
            size: 1 << 30,
            start: 4096,
            lba_size: 512,
            volume: "disk".to_owned(),
            snapshot: "b".to_owned(),
        };
        let mut out = Vec::new();
        let mut encoder = Encoder::begin(&begin, &mut out);
        encoder.data(4096, &[7; 4096], &mut out);
        encoder.zeroes(8192, 1 << 20, &mut out);
        match from {
            None => encoder.end(4096, &mut out),
            Some(_) => encoder.failed("the drive is gone", &mut out),
        }
        save("stream", name, &out);
    }
}

fn main() {
    labels();
    let checkpoint = Checkpoint {
        pool: PoolId(1),
        shard: ShardId(0),
        generation: 9,
        epoch: 3,
        journal_from: 1000,
        directory: ptr(1),
        slots: ptr(2),
        homes: ptr(3),
    };
    save_short("checkpoint", "plain", &checkpoint.encode());
    journal();
    pages();
    nbd();
    iscsi();
    kept_reservations();
    streams();
}
