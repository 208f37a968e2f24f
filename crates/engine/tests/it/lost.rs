//! Records that are lost on every drive are missed when a pool is opened: what was flushed is there,
//! or the pool says that it is not.

use crate::support::{
    self, BLOCK, Client, Folder, engine, pattern, pool, spoil_all, vdrive, volume,
};
use format::{PoolConfig, checkpoint_block, journal_start};
use std::os::unix::fs::FileExt;

const DRIVES: [&str; 2] = ["a", "b"];

fn config(folder: &Folder) -> PoolConfig {
    folder.newest_label("a").unwrap().config
}

/// Overwrites a block of the metadata region, on both members.
fn lose(folder: &Folder, config: &PoolConfig, block: u64) {
    for part in &config.meta.parts {
        let drive = config.drives.iter().find(|drive| drive.id == part.drive);
        let path = drive.unwrap().spec.strip_prefix("file:").unwrap();
        assert!(path.starts_with(folder.path().to_str().unwrap()));
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[0x5a; BLOCK as usize], part.offset + block * BLOCK)
            .unwrap();
    }
}

/// A pool of one shard that ended hard, after `flushes` writes with a flush each.
fn ended(folder: &Folder, flushes: u64) {
    let engine = engine(1);
    let members = DRIVES.map(|name| folder.drive(name, 160));
    let mirror = vdrive(engine::Tier::Fast, engine::LayoutSpec::Mirror, &members);
    engine.pool_create(&pool("p", 1, vec![mirror])).unwrap();
    engine.volume_create("p", &volume("v", 64)).unwrap();
    write(&engine, flushes);
    drop(engine);
}

fn write(engine: &engine::Engine, flushes: u64) {
    let client = Client::open(engine, "p", "v");
    for number in 0..flushes {
        client
            .write(number * 2 * BLOCK, &pattern(number, BLOCK as usize))
            .unwrap();
        client.flush().unwrap();
    }
}

fn open(folder: &Folder) -> Result<engine::Engine, String> {
    let engine = engine(1);
    let drives = DRIVES.map(|name| folder.existing(name));
    match engine.pool_import(&drives, "p", false) {
        Ok(_) => Ok(engine),
        Err(failed) => Err(failed.to_string()),
    }
}

fn journal_page(config: &PoolConfig, number: u64) -> u64 {
    journal_start(config.shards, 0, config.meta.journal_blocks) + number
}

/// Not always that of the last write: a slow machine leaves time for marks of what is durable between and after writes.
fn last_journal_page(folder: &Folder, config: &PoolConfig) -> u64 {
    let pool = folder.newest_label("a").unwrap().pool;
    let is_page =
        |bytes: &[u8]| format::JournalHeader::read(bytes, pool, units::ShardId(0)).is_some();
    let part = &config.meta.parts[0];
    let pages = folder.written_blocks("a").into_iter();
    let places = pages.filter(|(_, bytes)| is_page(bytes)).map(|(at, _)| at);
    (places.max().unwrap() - part.offset) / BLOCK
}

#[test]
fn a_page_lost_out_of_the_journal_is_missed() {
    for (flushes, lost) in [(20, 7), (132, 127)] {
        let folder = Folder::new();
        ended(&folder, flushes);
        let config = config(&folder);
        lose(&folder, &config, journal_page(&config, lost));
        let Err(failed) = open(&folder) else {
            panic!("page {lost} of {flushes} was not missed");
        };
        assert!(
            failed.contains(&format!("page {lost} of its journal is lost")),
            "{failed}"
        );
    }
}

#[test]
fn the_page_at_the_end_of_the_journal_may_be_torn() {
    let folder = Folder::new();
    ended(&folder, 20);
    let config = config(&folder);
    lose(&folder, &config, last_journal_page(&folder, &config) + 1);
    let engine = open(&folder).unwrap();
    let client = Client::open(&engine, "p", "v");
    for number in 0..20 {
        let read = client.read(number * 2 * BLOCK, BLOCK as usize).unwrap();
        assert!(read == pattern(number, BLOCK as usize), "{number}");
    }
}

#[test]
fn a_lost_checkpoint_is_missed_when_more_was_written_since() {
    let folder = Folder::new();
    ended(&folder, 20);
    let engine = open(&folder).unwrap();
    write(&engine, 30);
    drop(engine);
    let config = config(&folder);
    // The first opening wrote generation 1, the second one generation 2.
    lose(&folder, &config, checkpoint_block(0, 2));
    let Err(failed) = open(&folder) else {
        panic!("the checkpoint was not missed");
    };
    assert!(failed.contains("its newest checkpoint is lost"), "{failed}");
}

#[test]
fn a_bad_copy_on_the_fast_tier_is_read_from_where_it_was_made() {
    const BLOCKS: u64 = 80;
    let folder = Folder::new();
    let engine = engine(1);
    let spec = support::tiered(&folder, "p", 1, 160, 256);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("p", &volume("v", 16)).unwrap();
    let client = Client::open(&engine, "p", "v");
    let contents: Vec<_> = (0..BLOCKS)
        .map(|number| pattern(number + 1, BLOCK as usize))
        .collect();
    for (number, content) in contents.iter().enumerate() {
        client.write(number as u64 * BLOCK, content).unwrap();
    }
    let demoted = |status: &engine::PoolStatus| status.fast_shadow == BLOCKS * BLOCK;
    support::wait_status(&engine, "p", demoted);
    assert_eq!(spoil_all(&folder, "fast", &contents), contents.len());
    for (number, content) in contents.iter().enumerate() {
        let read = client.read(number as u64 * BLOCK, BLOCK as usize).unwrap();
        assert!(read == *content, "block {number}");
    }
}
