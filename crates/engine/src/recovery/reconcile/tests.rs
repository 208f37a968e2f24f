use super::*;
use crate::SpacePolicy;
use crate::io::read::slow_path::Looked;
use crate::shard::state::{PoolShared, ShardConfig};
use crate::space::{GroupTable, VdriveSpace};
use crate::tiering::access_stats::By;
use crate::vdrive::{DriveShared, Layout, Member, Members, PartIo, StaleMap, VdriveIo};
use block::{DmaBuf, IoBuf};
use format::LayoutConfig;
use reactor::{Handle, Reactor};
use std::sync::Arc;
use units::{BLOCK, CHUNK, DriveId, PoolId, ShardId, VdriveId};

const VOLUME: u32 = 1;
const GROUP: u64 = 512;
const GROUPS: u32 = 8;
/// First block of the metadata region's groups.
const PAGES: u64 = 2048;

fn vdrive(handle: &Handle, number: u8, name: &str) -> Rc<VdriveIo> {
    let blocks = PAGES + GROUP * u64::from(GROUPS);
    let spec = format!("ram:{name}?size={}", blocks * BLOCK as u64);
    let queue = drives::open(&spec).unwrap().queue(handle).unwrap();
    let member = Member::new((0, 0), DriveId(1), false, StaleMap::new(GROUP));
    let shared = Arc::<DriveShared>::default();
    let part = PartIo::new(handle, queue, &spec, 0, Arc::new(member), shared);
    let layout = Layout::new(LayoutConfig::Concat, &[blocks]);
    let (members, dma) = (Arc::<Members>::default(), handle.dma().clone());
    Rc::new(VdriveIo::new(
        VdriveId(number),
        layout,
        vec![part],
        members,
        dma,
    ))
}

/// A shard with a metadata region and one fast vdrive.
fn shard(handle: &Handle, name: &str) -> Rc<Shard> {
    let table = Arc::new(GroupTable::default());
    for (number, class, base) in [(0, Class::Meta, PAGES), (1, Class::Fast, 0)] {
        let space = VdriveSpace {
            class,
            base,
            groups: GROUPS,
        };
        table.add(VdriveId(number), space);
    }
    let config = ShardConfig {
        pool: PoolId(1),
        shard: ShardId(0),
        shards: 1,
        group_blocks: GROUP,
        journal_base: 256,
        journal_blocks: 512,
        ram_bytes: 0,
        spare_groups: 0,
        map_pages: 64,
        summaries: 0,
        ledger: 0,
    };
    let members = Arc::<Members>::default();
    let shared = Arc::new(PoolShared::new(table, SpacePolicy::FastFirst, members));
    let vdrives = (0..2).map(|number| {
        let vdrive = vdrive(handle, number, &format!("{name}-{number}"));
        (VdriveId(number), vdrive)
    });
    let shard = Shard::new(config, handle.clone(), shared, vdrives.collect());
    shard.set_volume(VOLUME, VOLUME);
    shard
}

fn content(handle: &Handle, byte: u8) -> DmaBuf {
    let mut content = handle.dma().get(BLOCK);
    content.fill(byte);
    content
}

async fn map_page(shard: &Shard, chunk: u32) -> Rc<MapPage> {
    shard.map_page(VOLUME, chunk, true).await.unwrap().unwrap()
}

/// The byte that the first block of a chunk is full of.
async fn first_byte(shard: &Shard, chunk: u32) -> Result<u8, ErrorKind> {
    let mut buf = IoBuf::zeroed(BLOCK);
    let offset = u64::from(chunk) * CHUNK as u64;
    let read = shard
        .read(By::read(VOLUME), offset, &mut buf, Looked::Unknown)
        .await;
    read.map(|()| buf.as_bytes().unwrap()[0])
        .map_err(|failed| failed.kind)
}

/// Runs `test` over a shard whose chunks 0 and 1 have a block each, of ones and of twos.
fn with_shard(name: &'static str, test: impl AsyncFnOnce(Rc<Shard>) + 'static) {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let ran = reactor.block_on(async move {
        let shard = shard(&handle, name);
        for (chunk, byte) in [(0, 1), (1, 2)] {
            let data = content(&handle, byte);
            let mapped = shard.remap_for_benchmark(VOLUME, chunk, 0, Some(&data));
            mapped.await.unwrap();
        }
        test(shard).await;
    });
    for number in 0..2 {
        drives::forget_ram(&format!("{name}-{number}"));
    }
    ran.unwrap();
}

fn disputed(chunks: &[u32]) -> Disputed {
    Disputed {
        chunks: chunks.iter().map(|chunk| (VOLUME, *chunk)).collect(),
        ..Disputed::default()
    }
}

#[test]
fn what_is_kept_is_used_and_what_only_a_left_out_record_named_is_free() {
    with_shard("disputed-marks", async |shard| {
        let slot = map_page(&shard, 0).await.page.borrow().slot(0);
        let nobodys = shard.state.borrow_mut().alloc.take_own_slot(Class::Fast);
        shard.state.borrow_mut().alloc.replay_slots(slot, 1, false);
        assert_ne!(shard.audit().await.unwrap().count, 0);
        let mut disputed = disputed(&[0]);
        disputed.slots.extend(nobodys);
        shard.keep(&disputed).await.unwrap();
        let audit = shard.audit().await.unwrap();
        assert_eq!(audit.wrong, Vec::<String>::new());
        assert_eq!(first_byte(&shard, 0).await, Ok(1));
    });
}

#[test]
fn of_two_owners_of_a_slot_the_one_that_lies_there_has_it_and_the_other_is_lost() {
    with_shard("disputed-two", async |shard| {
        let (first, second) = (map_page(&shard, 0).await, map_page(&shard, 1).await);
        // What chunk 0 has was given to chunk 1 and written over.
        let (old, taken) = (first.page.borrow().slot(0), second.page.borrow().slot(0));
        first.page.borrow_mut().set_slot(0, taken);
        first.page.borrow_mut().set_crc(0, 99);
        shard.state.borrow_mut().alloc.replay_slots(old, 1, false);
        assert_ne!(shard.audit().await.unwrap().count, 0);
        shard.keep(&disputed(&[0, 1])).await.unwrap();
        let audit = shard.audit().await.unwrap();
        assert_eq!(audit.wrong, Vec::<String>::new());
        assert_eq!(first_byte(&shard, 0).await, Err(ErrorKind::Medium));
        assert_eq!(first_byte(&shard, 1).await, Ok(2));
    });
}

#[test]
fn of_two_owners_of_a_home_the_one_whose_records_count_has_it() {
    with_shard("disputed-home", async |shard| {
        let (first, second) = (map_page(&shard, 0).await, map_page(&shard, 1).await);
        let slots = [&first, &second].map(|map_page| map_page.page.borrow().slot(0));
        let group = slots[0].block() / GROUP + 1;
        let home = Place::new(VdriveId(1), group * GROUP);
        for (map_page, slot) in [&first, &second].into_iter().zip(slots) {
            map_page.page.borrow_mut().set_home(home);
            map_page.page.borrow_mut().set_crc(0, 99);
            let mut state = shard.state.borrow_mut();
            state.alloc.replay_slots(slot, 1, false);
            shard.change(&mut state, VOLUME, map_page, 0, |page| {
                page.set_slot(0, Place::NONE);
                page.set_home_valid(0, true);
            });
        }
        shard.keep(&disputed(&[0])).await.unwrap();
        let audit = shard.audit().await.unwrap();
        assert_eq!(audit.wrong, Vec::<String>::new());
        assert!(first.page.borrow().home().is_none());
        assert_eq!(second.page.borrow().home(), home);
        assert_eq!(first_byte(&shard, 0).await, Err(ErrorKind::Medium));
    });
}
