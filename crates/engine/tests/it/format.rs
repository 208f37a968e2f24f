//! A pool that a newer version made is refused by name, whatever older labels lie beside; what a
//! newer version added and this one may pass over is kept.

use crate::support::{Client, Folder, MIB, engine, pattern, tiered, volume};
use engine::{EngineError, ErrorCode};
use format::{LABEL_SIZE, Label, LabelError, crc32c, label_offsets, label_slots_for};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

const DRIVES: [&str; 2] = ["fast", "slow"];

fn drive(folder: &Folder, name: &str) -> File {
    let path = folder.path().join(name);
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap()
}

fn read(file: &File, offset: u64) -> Vec<u8> {
    let mut bytes = vec![0; LABEL_SIZE as usize];
    file.read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

fn offsets(file: &File) -> [u64; 4] {
    label_offsets(file.metadata().unwrap().len())
}

/// The drive's newest label.
fn newest(file: &File) -> Label {
    let labels = offsets(file).map(|offset| Label::decode_to_read(&read(file, offset)));
    let labels = labels.into_iter().filter_map(Result::ok);
    labels.max_by_key(|label| label.generation).unwrap()
}

/// Writes the drives' next labels as a newer version would: changed, with a right checksum.
fn relabel(folder: &Folder, change: impl Fn(&mut Vec<u8>)) {
    for name in DRIVES {
        let file = drive(folder, name);
        let mut label = newest(&file);
        label.generation += 1;
        let mut bytes = label.encode().unwrap();
        change(&mut bytes);
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap());
        let crc = crc32c(&bytes[12..128 + length as usize]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        for slot in label_slots_for(label.generation) {
            file.write_all_at(&bytes, offsets(&file)[slot]).unwrap();
        }
    }
}

fn existing(folder: &Folder) -> Vec<String> {
    DRIVES.map(|name| folder.existing(name)).to_vec()
}

fn closed(folder: &Folder) {
    let engine = engine(2);
    engine
        .pool_create(&tiered(folder, "p", 2, 128, 64))
        .unwrap();
    engine.volume_create("p", &volume("v", 16)).unwrap();
    let client = Client::open(&engine, "p", "v");
    client.write(MIB, &pattern(1, 8192)).unwrap();
    engine.pool_export("p").unwrap();
}

fn refused(folder: &Folder) -> EngineError {
    let engine = engine(2);
    let import = engine.pool_import(&existing(folder), "p", false);
    let failed = import.unwrap_err();
    // Such a drive cannot be overwritten either.
    let create = engine.pool_create(&tiered(folder, "q", 2, 128, 64));
    assert_eq!(create.unwrap_err(), failed);
    failed
}

#[test]
fn a_pool_of_a_newer_version_is_refused_by_name() {
    type Change = fn(&mut Vec<u8>);
    let cases: &[(&str, Change)] = &[
        ("with features 0x4,", |bytes| bytes[32] = 4),
        ("may only be read", |bytes| bytes[24] = 1),
        ("format version 2", |bytes| bytes[7] = 2),
        ("description of the pool is invalid", |bytes| {
            bytes[128] = b'['
        }),
    ];
    for (why, change) in cases {
        let folder = Folder::new();
        closed(&folder);
        relabel(&folder, change);
        let failed = refused(&folder);
        assert_eq!(failed.code, ErrorCode::Damaged);
        assert!(failed.message.contains(why), "{}", failed.message);
        assert!(
            failed.message.contains("newer version"),
            "{}",
            failed.message
        );
    }
}

#[test]
fn one_wrong_byte_of_a_label_does_not_close_a_pool() {
    let folder = Folder::new();
    closed(&folder);
    let file = drive(&folder, "fast");
    let slot = label_slots_for(newest(&file).generation)[0];
    // The version is not under the checksum: the label's twin says otherwise.
    file.write_all_at(&[3], offsets(&file)[slot] + 7).unwrap();
    let bytes = read(&file, offsets(&file)[slot]);
    assert!(matches!(
        Label::decode(&bytes),
        Err(LabelError::Newer { .. })
    ));
    let engine = engine(2);
    engine.pool_import(&existing(&folder), "p", false).unwrap();
    let client = Client::open(&engine, "p", "v");
    assert!(client.read(MIB, 8192).unwrap() == pattern(1, 8192));
}

#[test]
fn what_may_be_passed_over_is_kept() {
    let folder = Folder::new();
    closed(&folder);
    relabel(&folder, |bytes| {
        bytes[16] = 8;
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let field = br#","later":{"a":[1]}}"#;
        bytes.resize(128 + length - 1, 0);
        bytes.extend_from_slice(field);
        let length = (bytes.len() - 128) as u32;
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
    });
    let engine = engine(2);
    engine.pool_import(&existing(&folder), "p", false).unwrap();
    engine.volume_create("p", &volume("w", 16)).unwrap();
    engine.pool_export("p").unwrap();
    for name in DRIVES {
        let config = newest(&drive(&folder, name)).config;
        assert_eq!(config.features.compatible, 8);
        assert_eq!(config.unknown["later"]["a"][0], 1);
        assert_eq!(config.volumes.len(), 2);
    }
}
