//! Explanations of block locations in an open pool: by logical block, across shards and snapshots.

use crate::support::{BLOCK, Client, Folder, MIB, engine, pattern, tiered, volume, wait_jobs};
use engine::{Cause, CopyKind, Engine, ErrorCode, Explanation, MoveCount, Spot};

const LBA: u64 = 512;
/// Examines what is done in the background, 10 ms apart.
const LOOKS: usize = 3000;
/// Regions of 256 MiB belong to the shards in turn.
const REGION: u64 = 256 * MIB;

fn told(engine: &Engine, offset: u64) -> Explanation {
    engine.volume_explain("p", "v", offset / LBA).unwrap()
}

fn causes(told: &Explanation) -> Vec<Cause> {
    told.moves.iter().map(|known| known.cause).collect()
}

fn count(engine: &Engine, cause: Cause) -> MoveCount {
    let counts = engine.pool_moves("p").unwrap();
    assert_eq!(counts.len(), Cause::ALL.len());
    counts[cause as usize]
}

#[test]
fn each_shard_tells_of_its_own_and_all_are_counted_together() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "p", 2, 192, 256))
        .unwrap();
    engine.volume_create("p", &volume("v", 2 * 256)).unwrap();
    let client = Client::open(&engine, "p", "v");
    for region in 0..2 {
        let data = pattern(region, MIB as usize);
        client.write(region * REGION, &data).unwrap();
    }
    let written = count(&engine, Cause::Written);
    assert_eq!((written.moves, written.bytes), (32, 2 * MIB));
    engine.pool_cool("p").unwrap();
    for offset in [0, REGION + 5 * BLOCK + LBA] {
        let told = told(&engine, offset);
        assert_eq!(told.offset, offset / BLOCK * BLOCK);
        assert!(told.log_is_whole && told.heat.is_some() && !told.inherited);
        let [place] = &told.places[..] else {
            panic!("{told:?}");
        };
        assert_eq!((place.tier, place.kind), (Spot::Slow, CopyKind::Home));
        assert!(place.drives[0].drive.contains("slow"), "{place:?}");
        assert_eq!(causes(&told)[0], Cause::EvictedCooled);
        assert!(causes(&told).ends_with(&[Cause::Written]));
        // The drive has it where it says.
        let block = folder.read("slow", place.drives[0].byte, BLOCK);
        assert!(block == client.read(told.offset, BLOCK as usize).unwrap());
        // Reading it has brought it into RAM.
        let fastest = self::told(&engine, offset).places.swap_remove(0);
        assert_eq!(fastest.tier, Spot::Ram);
    }
    assert!(told(&engine, MIB).places.is_empty());
    let beyond = engine
        .volume_explain("p", "v", 2 * REGION / LBA)
        .unwrap_err();
    assert_eq!(beyond.code, ErrorCode::Invalid);
    assert!(beyond.message.contains("0 to 1048575"), "{beyond}");
    let unknown = engine.volume_explain("p", "w", 0).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
    engine.shutdown();
}

#[test]
fn what_a_snapshot_has_is_told_as_its_and_what_it_leaves_as_merged() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "p", 1, 96, 96))
        .unwrap();
    engine.volume_create("p", &volume("v", 16)).unwrap();
    let client = Client::open(&engine, "p", "v");
    client.write(0, &pattern(1, 2 * BLOCK as usize)).unwrap();
    engine.snapshot_create("p", &["v".into()], "s", 1).unwrap();
    let old = told(&engine, 0);
    assert_eq!(
        (old.inherited, old.snapshot.as_deref()),
        (true, Some("v@s"))
    );
    assert_eq!(causes(&old), [Cause::Written]);
    client.write(BLOCK, &pattern(2, BLOCK as usize)).unwrap();
    let new = told(&engine, BLOCK);
    assert_eq!((new.inherited, new.snapshot), (false, None));
    assert_eq!(new.moves[0].blocks, 0b10);
    engine.snapshot_delete("p", "v", &["s".into()]).unwrap();
    let mut looks = 0..LOOKS;
    while count(&engine, Cause::Merged).moves == 0 && looks.next().is_some() {
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    wait_jobs(&engine);
    let merged = told(&engine, BLOCK);
    let place = &merged.places[0];
    assert_eq!(
        place.came.as_ref().map(|came| came.cause),
        Some(Cause::Merged)
    );
    client.discard(0, 2 * BLOCK).unwrap();
    let gone = told(&engine, 0);
    assert!(gone.places.is_empty());
    assert_eq!(causes(&gone)[0], Cause::Discarded);
    engine.shutdown();
}
