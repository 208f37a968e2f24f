//! A metadata region without room: writes that would need a new page are refused, and everything else
//! continues.

use crate::support::{self, Client, Folder, MIB, pattern, tiered, volume};
use block::ErrorKind;
use engine::{Engine, EngineConfig, ErrorCode};

const CHUNKS: u64 = 256;
const BLOCK: u64 = 4096;

/// An engine whose pools have some 1,500 pages: less than a few snapshots of 256 chunks take.
fn engine() -> Engine {
    Engine::start(&EngineConfig {
        threads: 1,
        ram_tier: 8 << 20,
        map_cache: 8 << 20,
        meta_groups: Some(1),
        ..EngineConfig::default()
    })
    .unwrap()
}

/// Writes a block of each chunk; the stamps that they have by then, as far as there was room.
fn write_all(client: &Client, stamps: &mut [u64], stamp: u64) -> usize {
    let mut refused = 0;
    for (chunk, known) in stamps.iter_mut().enumerate() {
        match client.write(chunk as u64 * MIB, &content(chunk, stamp)) {
            Ok(()) => *known = stamp,
            Err(failed) => {
                assert_eq!(failed.kind, ErrorKind::NoSpace, "{failed}");
                refused += 1;
            }
        }
    }
    refused
}

fn content(chunk: usize, stamp: u64) -> Vec<u8> {
    pattern((chunk as u64) << 32 | stamp, BLOCK as usize)
}

fn check(engine: &Engine, name: &str, stamps: &[u64]) {
    let client = Client::open(engine, "tank", name);
    for (chunk, stamp) in stamps.iter().enumerate() {
        let read = client.read(chunk as u64 * MIB, BLOCK as usize).unwrap();
        assert!(read == content(chunk, *stamp), "chunk {chunk} of {name}");
    }
}

#[test]
fn a_full_metadata_region_refuses_pages_and_stops_nothing() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 64, 600);
    let running = engine();
    running.pool_create(&spec).unwrap();
    for name in ["v", "w"] {
        running
            .volume_create("tank", &volume(name, CHUNKS))
            .unwrap();
    }
    let [client, other] = ["v", "w"].map(|name| Client::open(&running, "tank", name));
    let [mut stamps, mut others] = [(); 2].map(|()| vec![0; CHUNKS as usize]);
    let mut taken = Vec::new();
    let snapshot = |name: &str| running.snapshot_create("tank", &["v".to_owned()], name, 7);
    let full = loop {
        let stamp = taken.len() as u64 + 1;
        let refused = write_all(&client, &mut stamps, stamp);
        let name = format!("s{stamp}");
        match snapshot(&name) {
            Ok(_) if refused == 0 => taken.push((name, stamps.clone())),
            Ok(_) => panic!("a snapshot was taken where writes found no room"),
            Err(failed) => {
                assert_eq!(failed.code, ErrorCode::NoSpace, "{failed}");
                break refused;
            }
        }
    };
    assert!(!taken.is_empty());

    let refused = write_all(&other, &mut others, 1);
    assert!(refused > 0);
    // What has pages continues, again and again.
    for stamp in 30..60 {
        assert!(write_all(&client, &mut stamps, stamp) <= full);
    }
    check(&running, "v", &stamps);
    for (name, stamps) in &taken {
        check(&running, &format!("v@{name}"), stamps);
    }

    let names: Vec<String> = taken.into_iter().map(|(name, _)| name).collect();
    running.snapshot_delete("tank", "v", &names).unwrap();
    support::wait_jobs(&running);
    assert_eq!(write_all(&other, &mut others, 2), 0);
    for client in [&client, &other] {
        client.flush().unwrap();
    }
    support::audit_at_rest(&running, "tank");
    drop((client, other));
    running.shutdown();

    let running = engine();
    let drives = support::drives_of(&spec);
    running.pool_import(&drives, "tank", false).unwrap();
    check(&running, "v", &stamps);
    check(&running, "w", &others);
}
