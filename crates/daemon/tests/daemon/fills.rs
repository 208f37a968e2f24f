//! Fill levels: logged once per level, and shown while they last.

use crate::common::{manager, pool_request, volume_request};
use crate::fake::World;
use api::v1::{Fill, PoolWarnings, Trend};
use std::sync::{Arc, Mutex};

/// Captures this thread's log.
#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogCapture {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl LogCapture {
    /// Lines since the last call.
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn each_fill_level_is_logged_once_with_its_forecast() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    let mut volume = volume_request("tank", "v");
    volume.size = 3 << 29;
    manager.volumes.create(volume).unwrap();
    let told = LogCapture::default();
    let sink = told.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_target(false)
        .with_writer(move || sink.clone())
        .finish();
    let _here = tracing::subscriber::set_default(subscriber);

    let mut up_s = 0;
    // Samples with a fill level in per mille.
    let mut look = |per_mille: u64| {
        world.pools().get_mut("tank").unwrap().used = ((1 << 30) * per_mille).div_ceil(1000);
        manager.fills.watch(up_s);
        up_s += 10;
        told.take()
    };
    let space = || -> Fill { manager.pools.show("tank").unwrap().fills[0] };
    assert_eq!(look(950), Vec::<String>::new(), "no level is set");
    let levels = |at: &[u8]| {
        manager
            .pools
            .warn_at("tank", &PoolWarnings { at: at.to_vec() })
    };
    assert_eq!(levels(&[80, 90]).unwrap().warn_at, [80, 90]);
    assert_eq!(look(100), Vec::<String>::new());
    assert_eq!(space().trend, Trend::Unknown);

    // Slightly more than 1 MiB per second: 80 % is reached, then 90 %.
    let mut all = Vec::new();
    for per_mille in (700..=910).step_by(10) {
        all.extend(look(per_mille));
    }
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(
        all[0].contains("WARN pool tank: its space is 80.0 % full (819.2 MiB of 1 GiB)"),
        "{all:?}"
    );
    assert!(all[1].contains("its space is 90.0 % full"), "{all:?}");
    assert!(
        all[1].contains(", forecast to be full in about "),
        "{all:?}"
    );
    assert!(
        all[1].ends_with(" s: add a vdrive or delete data"),
        "{all:?}"
    );
    let shown = manager.pools.show("tank").unwrap();
    assert_eq!((shown.promised, shown.promised_percent), (3 << 29, 150));
    let fill = space();
    assert_eq!(
        (fill.percent, fill.level, fill.trend),
        (91, Some(90), Trend::Filling)
    );
    assert!(matches!(fill.seconds_to_full, Some(89..=91)), "{fill:?}");
    assert_eq!(fill.trend_s, Some(230));
    assert!(
        shown.messages[0].contains("91.0 % full"),
        "{:?}",
        shown.messages
    );
    assert_eq!(manager.pools.list().unwrap().items, [shown]);

    // Oscillating around the level: nothing more until it is below by a point.
    assert!(
        [895, 905, 890, 901]
            .iter()
            .all(|per_mille| look(*per_mille).is_empty())
    );
    assert_eq!(space().level, Some(90));
    let below = look(889);
    assert!(
        below[0].contains("INFO pool tank: its space is below 90 % again"),
        "{below:?}"
    );
    assert_eq!(look(900).len(), 1);
    // A new level takes effect immediately.
    levels(&[50]).unwrap();
    assert_eq!(space().level, Some(50));
    levels(&[]).unwrap();
    assert!(manager.pools.show("tank").unwrap().messages.is_empty());
}
