//! What was written to the drives of a pool, kept in its labels, and the budget of its promotion.

use crate::support::{Client, Folder, MIB, engine, pattern, start_again, tiered, volume};
use engine::{Engine, ErrorCode, PoolChange, WearStatus};

/// When the test's drives begin to count.
const SINCE_S: u64 = 1_700_000_000;

/// What was written to each drive: the fast one, the slow one.
fn wear(engine: &Engine) -> [WearStatus; 2] {
    let status = engine.pool_status("tank").unwrap();
    [0, 1].map(|at: usize| status.vdrives[at].drives[0].wear)
}

/// The generation of the newest label of a drive.
fn generation(folder: &Folder, name: &str) -> u64 {
    folder.newest_label(name).unwrap().generation
}

fn budget(engine: &Engine, bytes: u64) -> Result<Option<u64>, ErrorCode> {
    let change = PoolChange {
        promotion_budget: Some(bytes),
    };
    let changed = engine.pool_change("tank", &change);
    changed
        .map(|status| status.budget.map(|budget| budget.daily))
        .map_err(|failed| failed.code)
}

#[test]
fn what_was_written_outlives_a_closing_whole_and_an_end_but_for_the_last() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    engine.pool_keep_wear("tank", SINCE_S).unwrap();
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &pattern(1, 8 * MIB as usize)).unwrap();
    client.flush().unwrap();
    let [fast, slow] = wear(&engine);
    assert_eq!((fast.since_s, slow.since_s), (SINCE_S, SINCE_S));
    assert_eq!((fast.hosts, slow.hosts), (8 * MIB, 0));
    assert!(fast.metadata > 0 && fast.total() > fast.hosts);
    engine.pool_cool("tank").unwrap();
    let demoted = wear(&engine)[1];
    assert!(demoted.upkeep >= 8 * MIB, "{demoted:?}");
    drop(client);

    start_again(&mut engine, &spec, false);
    let [fast, slow] = wear(&engine);
    assert_eq!((fast.since_s, fast.hosts), (SINCE_S, 8 * MIB));
    assert_eq!(slow.upkeep, demoted.upkeep);
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &pattern(2, MIB as usize)).unwrap();
    engine.pool_keep_wear("tank", SINCE_S + 9).unwrap();
    client.write(0, &pattern(3, MIB as usize)).unwrap();
    assert_eq!(wear(&engine)[0].hosts, 10 * MIB);
    drop(client);

    // Without a closing the last label counts: that one, or one that a checkpoint has written since.
    start_again(&mut engine, &spec, true);
    let fast = wear(&engine)[0];
    assert_eq!(fast.since_s, SINCE_S);
    assert!([9 * MIB, 10 * MIB].contains(&fast.hosts), "{fast:?}");
}

#[test]
fn no_label_is_written_for_it_while_nothing_else_is() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 192, 256);
    let engine = engine(1);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    engine.pool_keep_wear("tank", SINCE_S).unwrap();
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &pattern(1, MIB as usize)).unwrap();
    client.flush().unwrap();
    let look = || {
        std::thread::park_timeout(std::time::Duration::from_millis(300));
        engine.pool_keep_wear("tank", SINCE_S).unwrap();
        generation(&folder, "fast")
    };
    // A checkpoint or a barrier may come in between, and counts as well; not between all looks.
    let (mut before, mut same) = (look(), 0);
    for _ in 0..100 {
        let now = look();
        same = if now == before { same + 1 } else { 0 };
        before = now;
        if same == 3 {
            client.write(0, &pattern(2, 4096)).unwrap();
            assert!(look() > now);
            return;
        }
    }
    panic!("every few looks wrote a label");
}

#[test]
fn a_pool_of_which_nobody_says_since_when_it_counts_keeps_nothing() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 192, 256);
    let mut engine = engine(1);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &pattern(1, MIB as usize)).unwrap();
    assert_eq!(wear(&engine)[0].hosts, MIB);
    drop(client);
    start_again(&mut engine, &spec, false);
    let fast = wear(&engine)[0];
    assert_eq!((fast.since_s, fast.hosts), (0, 0));
}

#[test]
fn the_budget_is_set_at_once_outlives_an_opening_and_goes() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    let made = engine.pool_create(&spec).unwrap();
    assert_eq!(made.budget, None);
    assert_eq!(budget(&engine, 500 * MIB - 1), Ok(Some(500 * MIB)));
    for hard in [false, true] {
        start_again(&mut engine, &spec, hard);
        let status = engine.pool_status("tank").unwrap().budget.unwrap();
        assert_eq!((status.daily, status.today), (500 * MIB, 0));
        assert!(status.left < MIB, "it begins empty: {status:?}");
    }
    // What is not given stays.
    let same = engine.pool_change("tank", &PoolChange::default()).unwrap();
    assert_eq!(same.budget.unwrap().daily, 500 * MIB);
    assert_eq!(budget(&engine, u64::MAX), Err(ErrorCode::Invalid));
    assert_eq!(budget(&engine, 0), Ok(None));
    start_again(&mut engine, &spec, false);
    assert_eq!(engine.pool_status("tank").unwrap().budget, None);
}
