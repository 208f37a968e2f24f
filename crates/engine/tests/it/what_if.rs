//! What another size of the fast tier would give, told of a pool that is served.

use crate::support::{
    BLOCK, Client, Folder, MIB, Random, engine, pattern, pool, tiered, vdrive, volume,
};
use engine::{ErrorCode, Forecast, LayoutSpec, Tier};

/// The share that LRU would hit with so many percent of the size of now.
fn hits(of: &Forecast, percent: u64) -> f64 {
    let mut points = of.points.iter();
    points
        .find(|point| point.percent == percent)
        .unwrap()
        .lru_hits
}

#[test]
fn a_larger_tier_is_forecast_to_hit_more_and_each_volume_is_told_apart() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "p", 2, 192, 1024))
        .unwrap();
    for (name, mib) in [("small", 16), ("large", 512), ("idle", 16)] {
        engine.volume_create("p", &volume(name, mib)).unwrap();
        let client = Client::open(&engine, "p", name);
        let data = pattern(1, MIB as usize);
        for at in 0..mib {
            client.write(at * MIB, &data).unwrap();
        }
    }
    let mut random = Random(1);
    for (name, mib, reads) in [("small", 16, 8_000), ("large", 512, 16_000)] {
        let client = Client::open(&engine, "p", name);
        for _ in 0..reads {
            let block = random.below(mib * MIB / BLOCK);
            client.read(block * BLOCK, BLOCK as usize).unwrap();
        }
    }
    let told = engine.pool_what_if("p").unwrap();
    let curve: Vec<f64> = told
        .pool
        .points
        .iter()
        .map(|point| point.lru_hits)
        .collect();
    assert!(curve.is_sorted() && curve[0] + 0.1 < curve[5], "{curve:?}");
    let models: Vec<u64> = told
        .pool
        .points
        .iter()
        .filter(|point| point.hits.is_some())
        .map(|point| point.percent)
        .collect();
    assert_eq!(models, [50, 100, 200]);
    assert!(told.slow_ns.is_some() && told.fast_ns.is_some(), "{told:?}");
    let used = told.pool.used_bytes / MIB;
    assert!((400..700).contains(&used), "{used}");
    let of = |name: &str| {
        let mut volumes = told.volumes.iter();
        volumes.find(|known| known.volume.as_deref() == Some(name))
    };
    // More than it has brings the large one more; the small one is there already, if it is at all.
    let large = of("large").expect("it has some of the fast tier");
    assert!(hits(large, 25) + 0.05 < hits(large, 200), "{large:?}");
    if let Some(small) = of("small") {
        assert!(hits(small, 800) > 0.9, "{small:?}");
    }
}

#[test]
fn a_pool_of_one_tier_says_that_there_is_nothing_to_forecast() {
    let folder = Folder::new();
    let engine = engine(1);
    let drive = [folder.drive("only", 192)];
    let vdrives = vec![vdrive(Tier::Fast, LayoutSpec::Concat, &drive)];
    engine.pool_create(&pool("p", 1, vdrives)).unwrap();
    let failed = engine.pool_what_if("p").unwrap_err();
    assert_eq!(failed.code, ErrorCode::Invalid);
    assert!(failed.message.contains("add a vdrive"), "{failed}");
}
