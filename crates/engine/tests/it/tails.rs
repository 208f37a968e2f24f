//! The journal's tail in the host's memory belongs to one opening of one set of drives.

use crate::support::memory::{MemoryDrive, attach};
use crate::support::{BLOCK, Client, pattern, pool, vdrive, volume};
use block::{HostMemory, Lasting};
use engine::{Engine, EngineConfig, ErrorCode, ImportOptions, LayoutSpec, Tier};
use std::sync::Arc;

/// An engine on a host with this memory.
fn on(memory: &Arc<HostMemory>) -> Engine {
    Engine::start(&EngineConfig {
        threads: 1,
        ram_tier: 8 << 20,
        map_cache: 8 << 20,
        lasting: Lasting::of(memory.clone()),
        ..EngineConfig::default()
    })
    .unwrap()
}

/// A drive that is known from its copies.
fn drive(spec: &str, number: u64) -> MemoryDrive {
    let drive = MemoryDrive::new(spec, 96);
    known(&drive, number);
    drive
}

fn known(drive: &MemoryDrive, number: u64) {
    drives::give_number(drive.spec(), number);
    attach(std::slice::from_ref(drive));
}

/// A pool on that drive with a volume whose first block was written and flushed.
fn make(engine: &Engine, drive: &MemoryDrive, shards: u16) -> Client {
    let fast = vdrive(Tier::Fast, LayoutSpec::Concat, &[drive.spec().to_owned()]);
    engine
        .pool_create(&pool("tank", shards, vec![fast]))
        .unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    let client = Client::open(engine, "tank", "v");
    client.write(0, &block(1)).unwrap();
    client.flush().unwrap();
    client
}

fn block(seed: u8) -> Vec<u8> {
    pattern(seed.into(), BLOCK as usize)
}

fn import(engine: &Engine, drive: &MemoryDrive) -> Result<Client, engine::EngineError> {
    engine.pool_import(&[drive.spec().to_owned()], "tank", false)?;
    Ok(Client::open(engine, "tank", "v"))
}

fn holds(client: &Client, seed: u8) -> bool {
    client.read(0, BLOCK as usize).unwrap() == block(seed)
}

#[test]
fn a_copy_of_a_pool_that_is_open_on_the_host_is_refused() {
    let memory = Arc::<HostMemory>::default();
    let (first, original) = (on(&memory), drive("rot:tail-open", 1));
    let client = make(&first, &original, 2);
    client.write(0, &block(2)).unwrap();
    let copy = original.copy("rot:tail-open-copy");
    known(&copy, 2);
    let second = on(&memory);
    let refused = import(&second, &copy).err().expect("it is open already");
    assert_eq!(refused.code, ErrorCode::Refused);
    let says = |text: &str| assert!(refused.message.contains(text), "{}", refused.message);
    for text in ["tank", "rot:tail-open-copy", "convect reidentify"] {
        says(text);
    }
    assert!(holds(&client, 2));
    drop(client);
    drop(first);
    // What it had in memory is still the original's.
    assert!(holds(&import(&second, &original).unwrap(), 2));
}

#[test]
fn a_copy_that_is_opened_after_a_kill_leaves_what_is_in_memory_to_the_drives_that_wrote_it() {
    let memory = Arc::<HostMemory>::default();
    let (first, original) = (on(&memory), drive("rot:tail-left", 1));
    let client = make(&first, &original, 2);
    let copy = original.copy("rot:tail-left-copy");
    known(&copy, 2);
    client.write(0, &block(2)).unwrap();
    client.write(BLOCK, &block(3)).unwrap();
    drop(client);
    drop(first);
    let left = memory.all();
    let second = on(&memory);
    let copied = import(&second, &copy).unwrap();
    assert!(holds(&copied, 1), "as flushed");
    copied.write(0, &block(4)).unwrap();
    copied.flush().unwrap();
    drop(copied);
    second.pool_export("tank").unwrap();
    assert_eq!(memory.all(), left, "neither used nor removed");
    let again = import(&second, &original).unwrap();
    assert!(holds(&again, 2));
    assert_eq!(again.read(BLOCK, BLOCK as usize).unwrap(), block(3));
}

#[test]
fn drives_that_were_put_back_behind_a_killed_daemon_are_refused_and_opened_by_a_word() {
    let memory = Arc::<HostMemory>::default();
    let (first, drive) = (on(&memory), drive("rot:tail-back", 1));
    let client = make(&first, &drive, 1);
    let before = drive.image();
    client.write(0, &block(2)).unwrap();
    client.flush().unwrap();
    drop(client);
    drop(first);
    drive.put_back(&before);
    let second = on(&memory);
    let refused = import(&second, &drive).err().expect("they are older");
    assert!(
        refused.message.contains("restored to an earlier"),
        "{}",
        refused.message
    );
    assert!(
        refused.message.contains("--accept-old"),
        "{}",
        refused.message
    );
    let options = ImportOptions {
        accept_old: true,
        ..ImportOptions::default()
    };
    let specs = [drive.spec().to_owned()];
    second.pool_import(&specs, "tank", options).unwrap();
    assert!(holds(&Client::open(&second, "tank", "v"), 1));
}

#[test]
fn drives_that_were_put_back_to_an_earlier_opening_are_refused() {
    let memory = Arc::<HostMemory>::default();
    let (first, drive) = (on(&memory), drive("rot:tail-long-back", 1));
    drop(make(&first, &drive, 1));
    let before = drive.image();
    first.pool_export("tank").unwrap();
    let client = import(&first, &drive).unwrap();
    client.write(0, &block(2)).unwrap();
    client.flush().unwrap();
    drop(client);
    drop(first);
    drive.put_back(&before);
    let second = on(&memory);
    let refused = import(&second, &drive).err().expect("they are older");
    assert!(
        refused.message.contains("restored to an earlier"),
        "{}",
        refused.message
    );
}

#[test]
fn what_openings_leave_in_memory_is_bounded() {
    let memory = Arc::<HostMemory>::default();
    let drive = drive("rot:tail-bounded", 1);
    let mut engine = on(&memory);
    let mut client = make(&engine, &drive, 2);
    let mut names = memory.all();
    for seed in 2..5 {
        assert_eq!(names.len(), 2);
        client.write(0, &block(seed)).unwrap();
        drop(client);
        drop(engine);
        engine = on(&memory);
        client = import(&engine, &drive).unwrap();
        assert!(holds(&client, seed));
        let now = memory.all();
        assert!(now.iter().all(|name| !names.contains(name)), "{now:?}");
        names = now;
    }
    drop(client);
    engine.pool_export("tank").unwrap();
    assert!(memory.all().is_empty());
    import(&engine, &drive).unwrap();
    engine.pool_destroy("tank").unwrap();
    assert!(memory.all().is_empty());
}
