//! Where a journal ends, and what an opening believes of what cannot be read.

use crate::support::memory::{MemoryDrive, attached};
use crate::support::{BLOCK, Client, MIB, pattern, pool, vdrive, volume, wait_job};
use block::ErrorKind;
use engine::{Engine, EngineConfig, EngineError, LayoutSpec, ScrubSpec, Tier};
use format::{JournalHeader, JournalPage, Label, label_offsets, page_body};
use units::{PoolId, ShardId};

fn start() -> Engine {
    Engine::start(&EngineConfig {
        threads: 1,
        ram_tier: 8 << 20,
        map_cache: 8 << 20,
        journal_blocks: Some(1024),
        ..EngineConfig::default()
    })
    .unwrap()
}

/// A pool of one shard on these drives, whose volume holds the pattern of 1 in its first block; then that of 2 was written
/// and, with `flush`, flushed, and the engine ended.
fn killed(drives: &[MemoryDrive], layout: LayoutSpec, flush: bool) {
    let engine = start();
    let specs: Vec<String> = drives.iter().map(|drive| drive.spec().to_owned()).collect();
    let fast = vdrive(Tier::Fast, layout, &specs);
    engine.pool_create(&pool("tank", 1, vec![fast])).unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &block(1)).unwrap();
    client.flush().unwrap();
    client.write(0, &block(2)).unwrap();
    if flush {
        client.flush().unwrap();
        wait_for_mark(&drives[0]);
    }
}

fn block(seed: u8) -> Vec<u8> {
    pattern(seed.into(), BLOCK as usize)
}

fn id(drive: &MemoryDrive) -> PoolId {
    let image = drive.image();
    let at = label_offsets(image.len() as u64);
    let labels = at.map(|at| Label::decode(&image[at as usize..][..MIB as usize]).ok());
    labels.into_iter().flatten().next().unwrap().pool
}

/// A page of the journal, and whether it has records.
fn page(id: PoolId, block: &[u8]) -> Option<(JournalHeader, bool)> {
    let found = page_body(block, id, ShardId(0)).ok().flatten()?;
    Some((found.0, !found.1.is_empty()))
}

fn pages(drive: &MemoryDrive) -> Vec<(JournalHeader, bool)> {
    let (id, image) = (id(drive), drive.image());
    let blocks = image.chunks_exact(BLOCK as usize);
    let mut pages: Vec<_> = blocks.filter_map(|block| page(id, block)).collect();
    pages.sort_by_key(|(header, _)| (header.epoch, header.sequence));
    pages
}

/// Until the drive says that all that was recorded was durable.
fn wait_for_mark(drive: &MemoryDrive) {
    for _ in 0..crate::support::LOOKS {
        let pages = pages(drive);
        let last = pages.iter().rfind(|(_, records)| *records).unwrap().0;
        let marks = pages
            .iter()
            .filter(|(header, _)| header.epoch == last.epoch);
        if marks.map(|(header, _)| header.durable_below).max() > Some(last.sequence) {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("no mark comes");
}

fn import(specs: &[String]) -> Result<(Engine, Client), EngineError> {
    let engine = start();
    engine.pool_import(specs, "tank", false)?;
    let client = Client::open(&engine, "tank", "v");
    Ok((engine, client))
}

#[test]
fn a_rotten_block_of_the_last_flush_is_a_medium_error_and_not_what_was_there_before() {
    let (drives, specs) = attached(["rot:end-rotten"], 96);
    killed(&drives, LayoutSpec::Concat, true);
    assert_eq!(drives[0].replace(&block(2), &block(9)), 1);
    let (_engine, client) = import(&specs).unwrap();
    let read = client.read(0, BLOCK as usize).expect_err("it is lost");
    assert_eq!(read.kind, ErrorKind::Medium);
}

#[test]
fn a_write_that_cannot_be_read_at_the_opening_is_not_taken_for_not_written() {
    let (drives, specs) = attached(["rot:end-unreadable"], 96);
    killed(&drives, LayoutSpec::Concat, false);
    assert_eq!(drives[0].fail_reads(|bytes| bytes == block(2)), 1);
    let (engine, client) = import(&specs).unwrap();
    assert!(client.read(0, BLOCK as usize).is_err(), "it is lost");
    // It is there once the drive can be read.
    drives[0].fail_reads(|_| false);
    assert!(client.read(0, BLOCK as usize).unwrap() == block(2));
    // It is said until a whole scrub has ended, also after the pool was closed and opened.
    drop(client);
    assert_eq!(engine.pool_status("tank").unwrap().opening_lost, 1);
    engine.shutdown();
    let (engine, client) = import(&specs).unwrap();
    let status = engine.pool_status("tank").unwrap();
    assert_eq!(status.opening_lost, 1);
    let said = status.messages.join("; ");
    assert!(said.contains("1 blocks of 4096 bytes are lost"), "{said}");
    client.write(0, &block(3)).unwrap();
    let spec = ScrubSpec {
        rate: u64::MAX,
        began_s: 1,
    };
    let job = engine.pool_scrub("tank", &spec).unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    assert_eq!(engine.pool_status("tank").unwrap().opening_lost, 0);
    engine.shutdown();
}

#[test]
fn a_page_that_cannot_be_read_does_not_end_the_journal() {
    let (drives, specs) = attached(["rot:end-page"], 96);
    killed(&drives, LayoutSpec::Concat, true);
    let (id, pages) = (id(&drives[0]), pages(&drives[0]));
    let last = pages.iter().rfind(|(_, records)| *records).unwrap().0;
    let is = |block: &[u8], so: &dyn Fn(u64) -> bool| {
        let found = page(id, block).filter(|(header, _)| header.epoch == last.epoch);
        found.is_some_and(|(header, _)| so(header.sequence))
    };
    // There is no other record of it.
    drives[0].empty(|block| is(block, &|sequence| sequence > last.sequence));
    assert_eq!(
        drives[0].fail_reads(|block| is(block, &|sequence| sequence == last.sequence)),
        1
    );
    let refused = import(&specs).err().expect("nobody knows what it held");
    assert!(
        refused.message.contains("cannot be read"),
        "{}",
        refused.message
    );
    drives[0].fail_reads(|_| false);
    let (_engine, client) = import(&specs).unwrap();
    assert!(client.read(0, BLOCK as usize).unwrap() == block(2));
}

#[test]
fn a_member_without_labels_that_cannot_be_read_is_not_taken_for_one_that_tells_nothing() {
    let (drives, specs) = attached(["rot:end-witness-a", "rot:end-witness-b"], 96);
    killed(&drives, LayoutSpec::Mirror, true);
    let pool = id(&drives[1]);
    let mut bare = drives[1].image();
    for at in label_offsets(bare.len() as u64) {
        bare[at as usize..][..MIB as usize].fill(0);
    }
    drives[1].restore(&bare);
    let import = || {
        let engine = start();
        let status = engine.pool_import(&specs, "tank", true);
        engine.shutdown();
        status.map(|_| ())
    };
    let is_page = |block: &[u8]| page(pool, block).is_some();
    assert!(drives[1].fail_reads(is_page) > 0);
    let refused = import().expect_err("nobody knows what it tells");
    let said = refused.message;
    assert!(said.contains("its other records cannot be read"), "{said}");
    // Once it can be read, it records nothing that the other one lacks.
    drives[1].fail_reads(|_| false);
    import().unwrap();
}

#[test]
fn a_lost_page_is_noticed_however_many_were_made_during_the_flush_that_made_it_durable() {
    let (drives, specs) = attached(["rot:end-beyond"], 96);
    killed(&drives, LayoutSpec::Concat, true);
    let (drive, id, known) = (&drives[0], id(&drives[0]), pages(&drives[0]));
    let last = known.iter().rfind(|(_, records)| *records).unwrap().0;
    let image = drive.image();
    let mut blocks = image.chunks_exact(BLOCK as usize);
    let at = blocks.position(|block| page(id, block).is_some_and(|(header, _)| header == last));
    let at = at.unwrap() as u64;
    let mut image = drive.image();
    let mut put = |sequence: u64, durable_below: u64| {
        let header = JournalHeader {
            sequence,
            durable_below,
            ..last
        };
        let from = ((at + sequence - last.sequence) * BLOCK) as usize;
        JournalPage::new().seal(header, &mut image[from..][..BLOCK as usize]);
    };
    let (lost, during) = (last.sequence, 300);
    (lost + 1..=lost + during).for_each(|sequence| put(sequence, lost));
    put(lost + during + 1, lost + 1);
    image[(at * BLOCK) as usize..][..BLOCK as usize].fill(0);
    drive.put_back(&image);
    let refused = import(&specs).err().expect("a page is lost");
    let text = format!("page {lost} of its journal is lost");
    assert!(refused.message.contains(&text), "{}", refused.message);
}

#[test]
fn an_opening_that_is_refused_writes_to_no_member() {
    let (drives, specs) = attached(["rot:end-leg-a", "rot:end-leg-b"], 96);
    killed(&drives, LayoutSpec::Mirror, true);
    let id = id(&drives[0]);
    let last = pages(&drives[0]);
    let last = last.iter().rfind(|(_, records)| *records).unwrap().0;
    for drive in &drives {
        let emptied =
            drive.empty(|block| page(id, block).is_some_and(|(header, _)| header == last));
        assert_eq!(emptied, 1);
    }
    // One member has none of the checkpoints.
    assert!(drives[1].empty(|block| block.starts_with(b"CVCP")) > 0);
    let before = drives.each_ref().map(MemoryDrive::image);
    import(&specs).err().expect("a page is lost");
    for (drive, before) in drives.iter().zip(before) {
        assert!(drive.image() == before, "{} was written to", drive.spec());
    }
}

/// A bitmap of slots, and the checkpoint that wrote it.
fn bitmap(block: &[u8]) -> Option<u64> {
    let is = block.starts_with(b"CVPG") && block[4] == 4;
    is.then(|| u64::from_le_bytes(block[16..24].try_into().unwrap()))
}

/// A pool whose volume was written since the checkpoint before the newest one, which has lost its bitmaps.
fn without_bitmaps(drive: &MemoryDrive, specs: &[String]) {
    let engine = start();
    let fast = vdrive(Tier::Fast, LayoutSpec::Concat, specs);
    engine.pool_create(&pool("tank", 1, vec![fast])).unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    engine.pool_export("tank").unwrap();
    engine.pool_import(specs, "tank", false).unwrap();
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &block(1)).unwrap();
    client.flush().unwrap();
    drop(client);
    engine.pool_export("tank").unwrap();
    let image = drive.image();
    let newest = image.chunks_exact(BLOCK as usize).filter_map(bitmap).max();
    assert!(drive.empty(|block| bitmap(block) == newest) > 0);
}

#[test]
fn the_checkpoint_before_a_damaged_one_and_the_journal_since_stand_in_for_it() {
    let (drives, specs) = attached(["rot:end-stand-in"], 96);
    without_bitmaps(&drives[0], &specs);
    let (_engine, client) = import(&specs).unwrap();
    assert!(client.read(0, BLOCK as usize).unwrap() == block(1));
}

#[test]
fn a_damaged_checkpoint_is_not_made_up_for_by_a_journal_that_lost_a_page() {
    let (drives, specs) = attached(["rot:end-no-stand-in"], 96);
    without_bitmaps(&drives[0], &specs);
    let id = id(&drives[0]);
    let emptied = drives[0].empty(|block| page(id, block).is_some());
    assert!(emptied > 0);
    let refused = import(&specs)
        .err()
        .expect("nothing tells what was written");
    assert!(
        refused.message.contains("is damaged"),
        "{}",
        refused.message
    );
}
