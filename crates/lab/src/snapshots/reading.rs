//! Reading through many snapshots and levels of clones, in turns with a volume that has none.

use super::run::{PLAIN, export, load, requests, snapshot};
use crate::arguments::Snapshots;
use crate::content::BLOCK;
use crate::demo::Shares;
use crate::failure::Result;
use crate::fio::{Load, Pattern, Target};
use crate::scene::{POOL, Scene, VOLUME};
use crate::screen::thousands;
use crate::scrub_cost::median;
use api::v1::Counters;

/// Requests between one snapshot that is read through and the next.
const BETWEEN: u64 = 5000;
/// Writes a block after which more of them change nothing: hardly one was never met.
const ENOUGH: u64 = 4;
/// The most seconds that writing to a volume as often as to another may take.
const CATCH_UP: u64 = 900;

/// One of those that are read in turns.
struct Reader {
    what: String,
    target: Target,
    iops: Vec<f64>,
    served: Counters,
}

impl Reader {
    fn new(what: String, target: Target) -> Self {
        Self {
            what,
            target,
            iops: Vec::new(),
            served: Counters::default(),
        }
    }

    /// One round.
    fn read(&mut self, scene: &Scene, with: &Snapshots) -> Result<()> {
        let reads = requests(
            self.target.clone(),
            Pattern::RandomRead,
            with.used,
            with.seconds,
        );
        let before = scene.daemon.counters(POOL)?;
        let name = format!("reading {}", self.what);
        self.iops.push(load(scene, &name, &reads, || Ok(()))?.iops);
        let after = scene.daemon.counters(POOL)?;
        let served = &mut self.served;
        served.blocks_ram += after.blocks_ram.saturating_sub(before.blocks_ram);
        served.blocks_fast += after.blocks_fast.saturating_sub(before.blocks_fast);
        served.blocks_slow += after.blocks_slow.saturating_sub(before.blocks_slow);
        Ok(())
    }

    /// Median of the rounds' ratios to another's, which was read in turns with it.
    fn ratio(&self, plain: &Self) -> f64 {
        let rounds = self.iops.iter().zip(&plain.iops);
        let ratios: Vec<f64> = rounds.map(|(iops, of)| iops / of.max(1.0)).collect();
        median(&ratios)
    }

    fn show(&self, plain: Option<&Self>) {
        let mut line = format!("  {}: {} IOPS", self.what, thousands(median(&self.iops)));
        if let Some(plain) = plain {
            line += &format!(", {:.1} %", 100.0 * self.ratio(plain));
        }
        if let Some(shares) = Shares::between(&Counters::default(), &self.served) {
            line += &format!("; {}", shares.text());
        }
        println!("{line}");
    }
}

fn writes(target: &Target, with: &Snapshots, requests: u64, seconds: u64) -> Load {
    Load {
        requests: Some(requests),
        ..super::run::requests(target.clone(), Pattern::RandomWrite, with.used, seconds)
    }
}

/// A volume without snapshots, filled, and written to as often as the first one was so far.
pub(super) fn plain(scene: &Scene, with: &Snapshots) -> Result<Target> {
    // The first one is the only one that was written to, and was filled once.
    let all = scene.daemon.counters(POOL)?.write_bytes;
    let got = all.saturating_sub(with.used) / BLOCK as u64;
    let enough = ENOUGH * with.used / BLOCK as u64;
    let volume = format!("{POOL}/{PLAIN}");
    let size = with.volume.to_string();
    scene
        .daemon
        .run(&["volume", "create", &volume, "--size", &size])?;
    let target = export(scene, PLAIN)?;
    scene.fill_other(target.clone(), with.used)?;
    let count = got.min(enough);
    if count > 0 {
        let again = writes(&target, with, count, CATCH_UP);
        load(
            scene,
            "writing as often as to the first volume",
            &again,
            || Ok(()),
        )?;
    }
    println!(
        "  a second volume without snapshots: written {} times before the chain, the first one {}",
        thousands(count as f64),
        thousands(got as f64)
    );
    Ok(target)
}

/// Clones of clones, each with writes of its own; returns the last.
fn levels(scene: &Scene, with: &Snapshots) -> Result<Option<Target>> {
    let (mut of, mut last) = (VOLUME.to_owned(), None);
    for level in 0..with.levels {
        let (snapshot, clone) = (format!("{of}@level"), format!("level{level}"));
        scene.daemon.run(&["snapshot", "create", &snapshot])?;
        scene
            .daemon
            .run(&["snapshot", "clone", &snapshot, &clone])?;
        of = format!("{POOL}/{clone}");
        let target = export(scene, &clone)?;
        let own = writes(&target, with, BETWEEN, with.seconds);
        load(scene, "writing to a clone", &own, || Ok(()))?;
        last = Some(target);
    }
    Ok(last)
}

/// Reads of what many layers have, in turns with a volume that was written to as often.
pub fn measure(scene: &Scene, with: &Snapshots) -> Result<()> {
    let plain = plain(scene, with)?;
    for number in 0..with.chain {
        snapshot(scene, &format!("chain{number}"))?;
        for target in [&plain, &scene.target()] {
            let between = writes(target, with, BETWEEN, with.seconds);
            load(scene, "writing between snapshots", &between, || Ok(()))?;
        }
    }
    let last = levels(scene, with)?;
    let mut readers = vec![
        Reader::new("without snapshots".to_owned(), plain),
        Reader::new(format!("through {} snapshots", with.chain), scene.target()),
    ];
    if let Some(last) = last {
        let what = format!("and {} levels of clones", with.levels);
        readers.push(Reader::new(what, last));
    }
    for _ in 0..with.rounds.max(1) {
        for reader in &mut readers {
            reader.read(scene, with)?;
        }
    }
    println!("reads in turns; of the volume without snapshots, the median of the rounds' ratios:");
    for (index, reader) in readers.iter().enumerate() {
        reader.show((index > 0).then_some(&readers[0]));
    }
    Ok(())
}
