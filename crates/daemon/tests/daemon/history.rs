//! Queries of the history: percentiles, and new objects.

use crate::common::{World, manager, pool_request, volume_request};
use api::v1::{History, ProblemCode};
use daemon::Manager;
use std::sync::Arc;
use std::time::Duration;

const BEGIN_S: u64 = 1_000_000;

fn values(history: &History, name: &str) -> Vec<Option<f64>> {
    let mut all = history.series.iter();
    let found = all.find(|series| series.name == name);
    found.map(|series| series.values.clone()).unwrap()
}

struct Site {
    world: Arc<World>,
    manager: Manager,
    second: u64,
    _folder: tempfile::TempDir,
}

impl Site {
    fn start() -> Self {
        let world = Arc::new(World::default());
        let folder = tempfile::tempdir().unwrap();
        let manager = manager(&world, folder.path());
        manager
            .pools
            .create(pool_request("tank", &["a"], false))
            .unwrap();
        manager.volumes.create(volume_request("tank", "v")).unwrap();
        Self {
            world,
            manager,
            second: 0,
            _folder: folder,
        }
    }

    /// A second with `count` reads of 4 KiB: 1 % take 100 ms, the others 3 µs.
    fn reads(&mut self, count: u64) {
        {
            let mut did = self.world.did.lock().unwrap();
            let (counters, spread) = did.entry("v".to_owned()).or_default();
            counters.reads += count;
            counters.read_bytes += count * 4096;
            counters.read_ns += count / 100 * 100_000_000 + count * 99 / 100 * 3000;
            spread.reads.times[0] += count * 99 / 100;
            spread.reads.times[15] += count / 100;
            spread.reads.sizes[3] += count;
        }
        self.second += 1;
        let up = Duration::from_secs(self.second);
        self.manager.observer.observe(up, BEGIN_S + self.second);
    }

    fn history(&self, series: &[&str]) -> History {
        let times = (Some(BEGIN_S + 2), Some(BEGIN_S + self.second), Some(1));
        let found =
            self.manager
                .history
                .query("volume/tank/v", series, times, BEGIN_S + self.second);
        found.unwrap()
    }
}

#[test]
fn percentiles_and_queue_depth_per_second_and_aggregated() {
    let mut site = Site::start();
    (0..10).for_each(|_| site.reads(1000));
    let history = site.history(&[]);
    for (name, least, most) in [
        ("read_latency_p50", 1e-6, 4.1e-6),
        ("read_latency_p99", 4e-6, 4.1e-6),
        ("read_latency_p999", 0.06, 0.14),
        ("read_size_p50", 4096.0, 4096.0),
        ("read_share", 1.0, 1.0),
        // 10 reads of 100 ms per second.
        ("queue_depth", 1.0, 1.01),
    ] {
        let all = values(&history, name);
        assert_eq!(all.len(), 8, "{name}");
        let right =
            |value: &Option<f64>| value.is_some_and(|value| (least..=most).contains(&value));
        assert!(all.iter().all(right), "{name}: {all:?}");
    }
    assert_eq!(values(&history, "write_latency_p99"), vec![None; 8]);
    let spreads = history.spreads.unwrap();
    let told: u64 = spreads.reads.times.iter().sum();
    assert!(told.abs_diff(8000) * 256 <= 8000, "{told}");
    assert_eq!(spreads.size_bounds[3], 4096);
    assert_eq!(spreads.writes.sizes.iter().sum::<u64>(), 0);
    let pool = site.manager.history.query(
        "pool/tank",
        &["read_latency_p999"],
        (Some(BEGIN_S + 2), Some(BEGIN_S + 10), Some(1)),
        BEGIN_S + 10,
    );
    assert!(values(&pool.unwrap(), "read_latency_p999")[0].is_some());
    let wrong = site
        .manager
        .history
        .query("volume/tank/v", &["p99"], (None, None, None), BEGIN_S);
    let wrong = wrong.unwrap_err();
    assert!(wrong.message.contains("read_latency_p99"), "{wrong}");
}

#[test]
fn new_object_has_no_history_and_unknown_object_is_an_error() {
    let site = Site::start();
    let ask = |object| {
        let times = (Some(BEGIN_S), Some(BEGIN_S + 5), Some(1));
        site.manager.history.query(object, &[], times, BEGIN_S + 5)
    };
    for object in [
        "volume/tank/v",
        "pool/tank",
        "tier/tank/ram",
        "drive/tank/a",
    ] {
        let history = ask(object).unwrap();
        assert_eq!(history.step_s, 1, "{object}");
        assert!(!history.series.is_empty());
        for series in history.series {
            assert_eq!(series.values, [None; 5], "{object}");
        }
    }
    for object in [
        "volume/tank/w",
        "volume/lake/v",
        "pool/lake",
        "tier/tank/tape",
        "drive/tank/b",
        "export/tank/e",
        "daemon",
        "pool",
    ] {
        let missing = ask(object).unwrap_err();
        assert_eq!(missing.code, ProblemCode::NotFound, "{object}");
    }
}
