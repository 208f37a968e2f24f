//! Unrepairable blocks are reported once, not at each attempt.

use crate::support::{BLOCK, Client, Folder, engine, pattern, spoil, tiered, volume, wait_status};
use engine::SpacePolicy;
use std::sync::Mutex;
use std::time::Duration;

/// Keeps the warnings of all threads, whichever test they are of.
struct Warnings;

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Text(String);

impl tracing::field::Visit for Text {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        TOLD.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_block_that_cannot_be_demoted_is_told_of_once_with_its_volume_and_place() {
    tracing::subscriber::set_global_default(Warnings).unwrap();
    let folder = Folder::new();
    let engine = engine(1);
    let mut spec = tiered(&folder, "tank", 1, 128, 192);
    spec.policy = SpacePolicy::SlowFirst;
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    let blocks: Vec<_> = (0..64)
        .map(|seed| pattern(seed + 1, BLOCK as usize))
        .collect();
    client.write(0, &blocks.concat()).unwrap();
    client.flush().unwrap();
    assert_eq!(spoil(&folder, "fast", &blocks[3]), 1);
    wait_status(&engine, "tank", |status| status.fast_dirty == BLOCK);
    // Other tests of this program warn as well, of drives of their own.
    let own = folder.path().display().to_string();
    let told_of = || {
        let told = TOLD.lock().unwrap().clone();
        let own = told.into_iter().filter(|text| text.contains(&own));
        own.collect::<Vec<String>>()
    };
    let mut looks = 0..6000;
    while told_of().is_empty() && looks.next().is_some() {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    // It is tried some more times meanwhile. On a busy machine these are fewer, which hides nothing that is right.
    std::thread::park_timeout(Duration::from_secs(4));
    let told = told_of();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("volume 1 byte 12288 (file:"), "{told:?}");
    engine.shutdown();
}
