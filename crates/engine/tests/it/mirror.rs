//! A mirror repairs a member that answers wrong, continues without one that fails, and is opened again
//! without one that is missing.

use crate::support::{self, BLOCK, Client, Folder, MIB, engine, pattern, pool, vdrive, volume};
use engine::{Engine, ErrorCode, LayoutSpec, PoolSpec, Tier};
use std::os::unix::fs::FileExt;

fn mirrored(folder: &Folder) -> PoolSpec {
    let members = [folder.drive("a", 160), folder.drive("b", 160)];
    pool(
        "p",
        2,
        vec![vdrive(Tier::Fast, LayoutSpec::Mirror, &members)],
    )
}

fn with_data(folder: &Folder) -> (Engine, Client) {
    let engine = engine(2);
    engine.pool_create(&mirrored(folder)).unwrap();
    engine.volume_create("p", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "p", "v");
    (0..32).for_each(|number| {
        client
            .write(number * MIB, &pattern(number, MIB as usize))
            .unwrap()
    });
    client.flush().unwrap();
    (engine, client)
}

fn check(client: &Client) {
    for number in 0..32 {
        assert!(client.read(number * MIB, MIB as usize).unwrap() == pattern(number, MIB as usize));
    }
}

/// Overwrites everything of a drive but its labels and, with `keep`, its first part.
fn damage(folder: &Folder, name: &str, keep: u64) {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join(name))
        .unwrap();
    let noise = pattern(99, MIB as usize);
    for number in 2 + keep..158 {
        file.write_all_at(&noise, number * MIB).unwrap();
    }
}

fn repaired(engine: &Engine) -> u64 {
    let status = engine.pool_status("p").unwrap();
    status.vdrives[0]
        .drives
        .iter()
        .map(|drive| drive.repaired)
        .sum()
}

#[test]
fn a_member_with_wrong_data_is_mended_and_counted() {
    let folder = Folder::new();
    let (engine, client) = with_data(&folder);
    damage(&folder, "a", 0);
    // Both members take turns: two passes touch every block of the damaged one.
    check(&client);
    check(&client);
    assert!(repaired(&engine) > 1000, "{}", repaired(&engine));
    let before = repaired(&engine);
    check(&client);
    check(&client);
    assert!(
        repaired(&engine) - before < before / 4,
        "most of it is mended"
    );
    engine.shutdown();
}

#[test]
fn a_read_of_one_block_has_what_the_member_has_that_is_right() {
    for name in ["a", "b"] {
        let folder = Folder::new();
        let (engine, client) = with_data(&folder);
        damage(&folder, name, 0);
        for number in 0..32 {
            let written = pattern(number, MIB as usize);
            for (at, block) in (number * MIB..)
                .step_by(BLOCK as usize)
                .zip(written.chunks_exact(BLOCK as usize))
            {
                let read = client.read(at, BLOCK as usize).unwrap();
                assert!(read == block, "{name} is damaged, at byte {at}");
            }
        }
        assert!(repaired(&engine) > 1000, "{}", repaired(&engine));
        engine.shutdown();
    }
}

#[test]
fn a_pool_opens_with_one_member_damaged_everywhere() {
    let folder = Folder::new();
    let (engine, _) = with_data(&folder);
    drop(engine);
    damage(&folder, "a", 0);
    let engine = support::engine(2);
    let drives = ["a", "b"].map(|name| folder.existing(name));
    engine.pool_import(&drives, "p", false).unwrap();
    check(&Client::open(&engine, "p", "v"));
    engine.shutdown();
}

#[test]
fn data_that_no_member_has_is_an_error_and_not_wrong_data() {
    let folder = Folder::new();
    let (engine, client) = with_data(&folder);
    damage(&folder, "a", 45);
    damage(&folder, "b", 45);
    let answers: Vec<_> = (0..32)
        .map(|number| client.read(number * MIB, MIB as usize))
        .collect();
    assert!(answers.iter().any(|answer| answer.is_err()));
    for (number, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(bytes) => assert!(bytes == pattern(number as u64, MIB as usize)),
            Err(error) => assert_eq!(error.kind, block::ErrorKind::Medium),
        }
    }
    drop(engine);
}

#[test]
fn a_missing_member_is_asked_about_and_done_without() {
    let folder = Folder::new();
    let (engine, _) = with_data(&folder);
    engine.pool_export("p").unwrap();
    let only = [folder.existing("b")];
    let refused = engine.pool_import(&only, "p", false).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Refused);
    assert!(refused.message.contains("--degraded"), "{refused}");
    let status = engine.pool_import(&only, "p", true).unwrap();
    assert_eq!(status.state, "degraded");
    let client = Client::open(&engine, "p", "v");
    check(&client);
    client.write(0, &pattern(0, MIB as usize)).unwrap();
    client.flush().unwrap();
    engine.shutdown();
}

#[test]
fn a_refused_pool_leaves_no_file_behind() {
    let folder = Folder::new();
    let engine = engine(1);
    let drives = [folder.drive("new", 160), folder.drive("small", 8)];
    let spec = pool(
        "p",
        1,
        vec![vdrive(Tier::Fast, LayoutSpec::Mirror, &drives)],
    );
    engine.pool_create(&spec).unwrap_err();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    engine.shutdown();
}

#[test]
fn a_drive_that_bears_something_is_refused_by_name() {
    let folder = Folder::new();
    let (first, _) = with_data(&folder);
    let again = first
        .pool_create(&PoolSpec {
            name: "q".into(),
            ..mirrored(&folder)
        })
        .unwrap_err();
    assert_eq!(again.code, ErrorCode::Exists);
    first.shutdown();
    drop(first);
    let second = engine(1);
    let other = PoolSpec {
        name: "q".into(),
        ..mirrored(&folder)
    };
    let refused = second.pool_create(&other).unwrap_err();
    assert!(refused.message.contains("convect pool 'p'"), "{refused}");
    second
        .pool_create(&PoolSpec {
            force: true,
            ..other
        })
        .unwrap();
    second.shutdown();
}

/// Journal pages on a member: (byte on the drive, header, records), newest of each shard last.
fn journal_pages(
    folder: &Folder,
    name: &str,
) -> Vec<(u64, format::JournalHeader, Vec<format::Record>)> {
    let pool = folder.newest_label(name).unwrap().pool;
    let blocks = folder.written_blocks(name).into_iter();
    let mut pages: Vec<_> = blocks
        .filter_map(|(at, page)| {
            let opened = |shard| format::open_page(&page, pool, units::ShardId(shard)).ok()?;
            let (header, records) = (0..2).find_map(opened)?;
            Some((at, header, records))
        })
        .collect();
    pages.sort_by_key(|(_, header, _)| (header.shard.0, header.epoch, header.sequence));
    pages
}

/// Puts an earlier image of every journal page on a member: the one with the first record alone.
fn shorten_journal(folder: &Folder, name: &str) -> usize {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join(name))
        .unwrap();
    let pages = journal_pages(folder, name);
    let long = pages.iter().filter(|(_, _, records)| records.len() > 1);
    let mut shortened = 0;
    for (at, header, records) in long {
        let mut page = format::JournalPage::new();
        assert!(page.push(&records[0]));
        let mut bytes = vec![0; BLOCK as usize];
        page.seal(*header, &mut bytes);
        file.write_all_at(&bytes, *at).unwrap();
        shortened += 1;
    }
    shortened
}

#[test]
fn an_earlier_image_of_a_journal_page_on_one_member_loses_nothing() {
    for member in ["a", "b"] {
        let folder = Folder::new();
        let (engine, client) = with_data(&folder);
        for number in 0..64 {
            let data = pattern(1000 + number, BLOCK as usize);
            client.write(number * 8 * BLOCK, &data).unwrap();
        }
        client.flush().unwrap();
        drop(engine);
        assert!(shorten_journal(&folder, member) > 0);
        let engine = support::engine(2);
        let drives = ["a", "b"].map(|name| folder.existing(name));
        engine.pool_import(&drives, "p", false).unwrap();
        let client = Client::open(&engine, "p", "v");
        for number in 0..64 {
            let found = client.read(number * 8 * BLOCK, BLOCK as usize).unwrap();
            assert!(
                found == pattern(1000 + number, BLOCK as usize),
                "{member}, write {number}"
            );
        }
        engine.shutdown();
    }
}

/// Puts noise over a block wherever it is on these drives; returns on how many it was found.
fn damage_block(folder: &Folder, names: &[&str], content: &[u8]) -> usize {
    let mut found = 0;
    for name in names {
        let path = folder.path().join(name);
        let blocks = folder.written_blocks(name).into_iter();
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        for (at, _) in blocks.filter(|(_, bytes)| bytes == content) {
            let noise = pattern(99, BLOCK as usize);
            file.write_all_at(&noise, at).unwrap();
            found += 1;
        }
    }
    found
}

#[test]
fn a_block_damaged_on_both_members_is_an_error_and_its_neighbours_are_not() {
    const LOST: u64 = 21;
    for tiered in [false, true] {
        let folder = Folder::new();
        let engine = engine(2);
        let fast = [folder.drive("a", 160), folder.drive("b", 160)];
        let slow = [folder.drive("c", 160), folder.drive("d", 160)];
        let mut vdrives = vec![vdrive(Tier::Fast, LayoutSpec::Mirror, &fast)];
        if tiered {
            vdrives.push(vdrive(Tier::Slow, LayoutSpec::Mirror, &slow));
        }
        engine.pool_create(&pool("p", 2, vdrives)).unwrap();
        engine.volume_create("p", &volume("v", 64)).unwrap();
        let client = Client::open(&engine, "p", "v");
        let content = |block| pattern(5000 + block, BLOCK as usize);
        let all: Vec<u8> = (0..256).flat_map(content).collect();
        client.write(0, &all).unwrap();
        client.flush().unwrap();
        if tiered {
            engine.pool_cool("p").unwrap();
        }
        let names: &[&str] = if tiered {
            &["a", "b", "c", "d"]
        } else {
            &["a", "b"]
        };
        assert!(damage_block(&folder, names, &content(LOST)) >= 2);
        for block in 0..256 {
            let found = client.read(block * BLOCK, BLOCK as usize);
            match found {
                Err(error) if block == LOST => assert_eq!(error.kind, ::block::ErrorKind::Medium),
                Err(error) => panic!("block {block} of a {tiered} pool: {error}"),
                Ok(bytes) => assert!(block != LOST && bytes == content(block), "block {block}"),
            }
        }
        client.write(LOST * BLOCK, &content(1)).unwrap();
        assert!(client.read(LOST * BLOCK, BLOCK as usize).unwrap() == content(1));
        engine.shutdown();
    }
}

#[test]
fn a_member_that_was_away_is_not_taken_because_the_other_one_lost_its_labels() {
    let folder = Folder::new();
    let (engine, _) = with_data(&folder);
    engine.pool_export("p").unwrap();
    let (both, b) = (
        ["a", "b"].map(|name| folder.existing(name)),
        [folder.existing("b")],
    );
    // Member a is away, as it is now, while b continues.
    let old = std::fs::read(folder.path().join("a")).unwrap();
    std::fs::remove_file(folder.path().join("a")).unwrap();
    engine.pool_import(&b, "p", true).unwrap();
    let client = Client::open(&engine, "p", "v");
    client.write(0, &pattern(77, MIB as usize)).unwrap();
    client.flush().unwrap();
    drop(client);
    engine.pool_export("p").unwrap();
    // It comes back, and b loses its labels.
    std::fs::write(folder.path().join("a"), old).unwrap();
    let labels = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("b"))
        .unwrap();
    for number in [0, 1, 158, 159] {
        labels
            .write_all_at(&vec![0; MIB as usize], number * MIB)
            .unwrap();
    }
    for degraded in [false, true] {
        let refused = engine.pool_import(&both, "p", degraded).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Refused);
        assert!(refused.message.contains("lost its labels"), "{refused}");
    }
    // Who takes that drive away wants it so.
    std::fs::rename(folder.path().join("b"), folder.path().join("c")).unwrap();
    engine
        .pool_import(&[folder.existing("a")], "p", true)
        .unwrap();
    check(&Client::open(&engine, "p", "v"));
    engine.shutdown();
}
