//! Labels that are written while members come and go, on one thread.

use super::*;
use crate::vdrive::{Member, StaleMap};
use block::{Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Rotation};
use format::{Features, MetaConfig, Policy, ScrubConfig};
use reactor::Clock;
use std::cell::RefCell;
use std::rc::Rc;

/// Members of the metadata region, each on a drive of the same number.
const MEMBERS: u64 = 3;

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        0
    }
}

type Hook = Box<dyn FnOnce() + Send>;

/// A drive that takes everything, and that something happens in the first flush of.
#[derive(Clone, Default)]
struct Taking {
    in_flush: Arc<Mutex<Option<Hook>>>,
    /// Flushes that fail from now on.
    bad_flushes: Arc<Mutex<usize>>,
    /// Where it was written to, in order; cleared by a flush that works.
    unflushed: Arc<Mutex<Vec<u64>>>,
    /// All of that, once it was durable.
    flushed: Arc<Mutex<Vec<u64>>>,
    /// Bytes that it has more than when it joined.
    grown: u64,
}

impl Drive for Taking {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            spec: "taking".into(),
            size: (1 << 30) + self.grown,
            logical_sector: 512,
            physical_sector: 4096,
            rotation: Rotation::Solid,
            write_cache: true,
            persistent: true,
        }
    }
}

impl OpenDrive for Taking {
    fn queue(&self, _: &Handle) -> std::io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(self.clone()))
    }
}

impl Taking {
    fn take(&self, io: &DriveIo) -> std::result::Result<(), DriveError> {
        match io.kind {
            DriveIoKind::Write => lock(&self.unflushed).push(io.offset),
            DriveIoKind::Flush => {
                let mut bad = lock(&self.bad_flushes);
                if *bad > 0 {
                    *bad -= 1;
                    return Err(DriveError::Os(5));
                }
                lock(&self.flushed).append(&mut lock(&self.unflushed));
            }
            _ => {}
        }
        Ok(())
    }
}

impl DriveQueue for Taking {
    fn submit(&self, io: DriveIo) {
        let hook = match io.kind {
            DriveIoKind::Flush => lock(&self.in_flush).take(),
            _ => None,
        };
        if let Some(hook) = hook {
            hook();
        }
        let result = self.take(&io);
        io.done.send((io.buf, result));
    }

    fn in_flight(&self) -> usize {
        0
    }
}

fn config(members: u64) -> PoolConfig {
    let part = |drive: u64| PartConfig {
        drive: DriveId(drive.into()).to_string(),
        offset: 0,
        blocks: 1024,
        out: false,
        out_since: 0,
        out_why: String::new(),
        stale: String::new(),
    };
    PoolConfig {
        name: "pool".into(),
        policy: Policy::FastFirst,
        shards: 1,
        group_blocks: 512,
        meta: MetaConfig {
            parts: (0..members).map(part).collect(),
            journal_blocks: 64,
        },
        drives: Vec::new(),
        vdrives: Vec::new(),
        volumes: Vec::new(),
        layers: Vec::new(),
        snapshots: Vec::new(),
        schedules: Vec::new(),
        receiving: Vec::new(),
        reservations: Vec::new(),
        exports: Vec::new(),
        next_volume: 1,
        scrub: ScrubConfig::default(),
        warn_at: Vec::new(),
        promotion_budget: 0,
        qos: format::QosConfig::default(),
        audit_anchor: None,
        opening: String::new(),
        paused: Vec::new(),
        checkpoints: Vec::new(),
        old: Vec::new(),
        opening_lost: 0,
        unknown: BTreeMap::new(),
        features: Features::default(),
    }
}

/// A keeper over drives with these labels.
fn opened(
    config: PoolConfig,
    generation: u64,
    drives: BTreeMap<DriveId, u64>,
    pool_drives: Vec<PoolDrive>,
    members: &Arc<Members>,
) -> Arc<Keeper> {
    let found = Labelled { generation, drives };
    Keeper::new(
        PoolId(1),
        config,
        found,
        pool_drives,
        members.clone(),
        Arc::default(),
    )
}

/// Brings the second member up to date.
fn second_comes_back(members: &Arc<Members>) -> Hook {
    let members = members.clone();
    Box::new(move || {
        let member = members.get((0, 1)).unwrap();
        assert!(members.begin_sync((0, 1)) && members.end_sync((0, 1), member.absences()));
    })
}

/// The result for a barrier while the keeper runs.
fn recorded(handle: &Handle, keeper: &Arc<Keeper>, members: &Arc<Members>) -> Option<bool> {
    handle.spawn(keeper.clone().run(handle.clone()));
    members.enforce();
    let told = Rc::new(RefCell::new(None));
    let (give, waits) = (told.clone(), members.clone());
    handle.spawn(async move { *give.borrow_mut() = Some(waits.recorded().await) });
    while handle.run_ready(64) > 0 {}
    told.take()
}

#[test]
fn a_member_that_comes_back_while_labels_are_written_gets_one_too() {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let members = Arc::<Members>::default();
    let in_flush = Arc::<Mutex<Option<Hook>>>::default();
    let mut pool_drives = Vec::new();
    for index in 0..MEMBERS {
        let drive = DriveId(index.into());
        let id = (0, index as usize);
        members.add(Arc::new(Member::new(id, drive, true, StaleMap::new(8))));
        pool_drives.push(PoolDrive {
            id: drive,
            spec: "taking".into(),
            drive: Some(Arc::new(Taking {
                in_flush: in_flush.clone(),
                ..Taking::default()
            })),
            size: 1 << 30,
            shared: Arc::default(),
        });
    }
    let labelled = (0..MEMBERS)
        .map(|index| (DriveId(index.into()), 1))
        .collect();
    let keeper = opened(config(MEMBERS), 1, labelled, pool_drives, &members);
    // Two are out. While labels tell of it, one of them is resynced.
    assert!(members.take_out((0, 1), "test", false) && members.take_out((0, 2), "test", false));
    *lock(&in_flush) = Some(second_comes_back(&members));
    assert_eq!(recorded(&handle, &keeper, &members), Some(true));
    assert!(!keeper.has_older());
    // The third is still out, and its drive keeps the label that it had.
    assert_eq!(lock(&keeper.labelled)[&DriveId(2)], 1);
    let told = lock(&keeper.config).clone();
    let out: Vec<bool> = told.meta.parts.iter().map(|part| part.out).collect();
    assert_eq!(out, [false, false, true]);
}

#[test]
fn no_label_goes_over_a_drives_newest_one_while_its_other_places_are_in_doubt() {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let members = Arc::<Members>::default();
    let only = Member::new((0, 0), DriveId(0), true, StaleMap::new(8));
    members.add(Arc::new(only));
    // One drive with the only metadata, and one without any.
    let drives = [Taking::default(), Taking::default()];
    let pool_drive = |index: usize| PoolDrive {
        id: DriveId(index as u128),
        spec: "taking".into(),
        drive: Some(Arc::new(drives[index].clone())),
        size: 1 << 30,
        shared: Arc::default(),
    };
    let pool_drives = vec![pool_drive(0), pool_drive(1)];
    let labelled = BTreeMap::from([(DriveId(0), 1), (DriveId(1), 1)]);
    let keeper = opened(config(1), 1, labelled, pool_drives, &members);
    let places = label_slots_for(1).map(|slot| format::label_offsets(1 << 30)[slot]);
    let save = || {
        let (keeper, handle) = (keeper.clone(), handle.clone());
        let task = handle.clone();
        task.spawn(async move {
            keeper.save(&handle, config(1), false).await.unwrap();
        });
        while task.run_ready(64) > 0 {}
    };
    // The next generation reaches one drive alone, and cannot be brought to the other one either, though it is
    // tried twice.
    *lock(&drives[0].bad_flushes) = 3;
    save();
    save();
    assert_eq!(*lock(&drives[0].bad_flushes), 0);
    let in_doubt = lock(&drives[0].unflushed).clone();
    assert!(!in_doubt.is_empty() && !in_doubt.iter().any(|at| places.contains(at)));
    // The drive works again: it has the newest label of all in the end.
    save();
    save();
    assert!(!keeper.has_older());
    let flushed = lock(&drives[0].flushed).clone();
    assert!(flushed.iter().any(|at| places.contains(at)));
}

#[test]
fn a_drive_that_came_back_when_it_could_not_be_asked_gets_the_next_generation() {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let members = Arc::<Members>::default();
    let drives: Vec<Taking> = (0..MEMBERS).map(|_| Taking::default()).collect();
    let pool_drive = |(index, drive): (usize, &Taking)| {
        let id = DriveId(index as u128);
        let member = Member::new((0, index), id, true, StaleMap::new(8));
        members.add(Arc::new(member));
        PoolDrive {
            id,
            spec: "taking".into(),
            drive: Some(Arc::new(drive.clone())),
            size: 1 << 30,
            shared: Arc::default(),
        }
    };
    let pool_drives = drives.iter().enumerate().map(pool_drive).collect();
    let labelled = (0..MEMBERS)
        .map(|index| (DriveId(index.into()), 2))
        .collect();
    let keeper = opened(config(MEMBERS), 2, labelled, pool_drives, &members);
    // The second is away for generation 3 and there again before 4, which would go over its only label; the
    // first fails 3 and goes out, so that the second is indispensable.
    assert!(members.take_out((0, 1), "test", false));
    *lock(&drives[0].bad_flushes) = 1;
    *lock(&drives[0].in_flush) = Some(second_comes_back(&members));
    assert_eq!(recorded(&handle, &keeper, &members), Some(true));
    assert_eq!(lock(&keeper.labelled)[&DriveId(1)], 5);
}

#[test]
fn a_label_that_is_written_soon_is_not_answered_while_a_drive_with_metadata_was_passed_over() {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let members = Arc::<Members>::default();
    let pool_drive = |index: usize| {
        let id = DriveId(index as u128);
        let member = Member::new((0, index), id, true, StaleMap::new(8));
        members.add(Arc::new(member));
        PoolDrive {
            id,
            spec: "taking".into(),
            drive: Some(Arc::new(Taking::default())),
            size: 1 << 30,
            shared: Arc::default(),
        }
    };
    let pool_drives = vec![pool_drive(0), pool_drive(1)];
    // The next generation would go over the newest label of the second.
    let labelled = BTreeMap::from([(DriveId(0), 3), (DriveId(1), 2)]);
    let keeper = opened(config(2), 3, labelled, pool_drives, &members);
    let answered = Rc::new(RefCell::new(None));
    let (give, task, saved) = (answered.clone(), handle.clone(), keeper.clone());
    handle.spawn(async move {
        let answer = saved.save_soon(&task, config(2)).await;
        let generation = saved.generation.load(Ordering::Acquire);
        let labels = lock(&saved.labelled).clone();
        *give.borrow_mut() = Some((answer, generation, labels));
    });
    while handle.run_ready(64) > 0 {}
    let (answer, generation, labels) = answered.take().expect("an answer");
    answer.unwrap();
    assert!(labels.values().all(|own| *own == generation), "{labels:?}");
}

/// With this bug the test fails.
fn finds(mutation: Mutation, test: fn()) {
    units::mutation::switch(Some(mutation));
    let passed = std::panic::catch_unwind(test).is_ok();
    units::mutation::switch(None);
    assert!(!passed, "{mutation:?} is not found");
}

#[test]
fn known_bugs_are_found() {
    finds(
        Mutation::FailedLabelled,
        a_drive_that_failed_a_label_is_not_said_to_have_it_by_the_next,
    );
    finds(
        Mutation::LabelAtEnd,
        labels_are_written_where_the_end_was_when_the_drive_joined,
    );
}

#[test]
fn labels_are_written_where_the_end_was_when_the_drive_joined() {
    let handle = Handle::simulated(Box::new(Still), 1).unwrap();
    let members = Arc::<Members>::default();
    members.add(Arc::new(Member::new(
        (0, 0),
        DriveId(0),
        false,
        StaleMap::new(8),
    )));
    let drive = Taking {
        grown: 8 << 20,
        ..Taking::default()
    };
    let pool_drive = PoolDrive {
        id: DriveId(0),
        spec: "taking".into(),
        drive: Some(Arc::new(drive.clone())),
        size: 1 << 30,
        shared: Arc::default(),
    };
    let labelled = BTreeMap::from([(DriveId(0), 1)]);
    let keeper = opened(config(1), 1, labelled, vec![pool_drive], &members);
    for _ in 0..2 {
        let (keeper, handle) = (keeper.clone(), handle.clone());
        let task = handle.clone();
        task.spawn(async move { keeper.save(&handle, config(1), false).await.unwrap() });
        while task.run_ready(64) > 0 {}
    }
    let mut flushed = lock(&drive.flushed).clone();
    flushed.sort_unstable();
    assert_eq!(flushed, format::label_offsets(1 << 30));
}

#[test]
fn a_drive_that_failed_a_label_is_not_said_to_have_it_by_the_next() {
    let drives = [Taking::default(), Taking::default()];
    let pool_drive = |index: usize| PoolDrive {
        id: DriveId(index as u128),
        spec: "taking".into(),
        drive: Some(Arc::new(drives[index].clone())),
        size: 1 << 30,
        shared: Arc::default(),
    };
    // The second one failed labels 5 and 6, and gets the seventh.
    let labelled = BTreeMap::from([(DriveId(0), 6), (DriveId(1), 4)]);
    let of = |index: u128| format::DriveConfig {
        id: DriveId(index).to_string(),
        spec: "taking".into(),
        size: 1 << 30,
        offline: false,
        labelled: 0,
        wear: Default::default(),
    };
    let mut config = PoolConfig {
        drives: vec![of(0), of(1)],
        ..config(2)
    };
    let members = Arc::<Members>::default();
    let pool_drives = vec![pool_drive(0), pool_drive(1)];
    let keeper = opened(config.clone(), 6, labelled, pool_drives, &members);
    let (asked, _) = keeper.targets();
    keeper.tell_labelled(&mut config, &asked, 7);
    // A crash while the seventh is written leaves what they have now.
    let least: Vec<u64> = config
        .drives
        .iter()
        .map(|known| known.oldest_label(7))
        .collect();
    assert_eq!(least, [6, 4]);
}
