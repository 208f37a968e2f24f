//! The same writes to a qcow2 image, before and after it gets an overlay: a snapshot as QEMU takes it.

use super::run::{load, requests};
use super::writing::{Round, compare, written};
use crate::arguments::Snapshots;
use crate::failure::{Failure, Result, While};
use crate::fio::{self, Load, Pattern};
use crate::rival::{Format, Rival};
use crate::scene::Scene;
use std::path::Path;
use std::process::Command;

/// Makes an image of `size` bytes, or an overlay of another image.
fn create(image: &Path, beneath: Option<&Path>, size: u64) -> Result<()> {
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2"]);
    if let Some(beneath) = beneath {
        command.args(["-F", "qcow2", "-b"]).arg(beneath);
    }
    let made = command.arg(image).arg(size.to_string()).output();
    let made = made.during(|| "cannot start qemu-img: install qemu-utils".to_owned())?;
    if made.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&made.stderr);
    let image = image.display();
    Err(Failure::new(format!(
        "{image} is not made: {}",
        words.trim()
    )))
}

/// One round of random writes to an image.
fn round(scene: &Scene, with: &Snapshots, image: &Path, name: &str) -> Result<Round> {
    let rival = Rival::serve(image, Format::Qcow2, scene.scratch.path())?;
    let writes = requests(
        rival.target(),
        Pattern::RandomWrite,
        with.used,
        with.seconds,
    );
    let began = written(rival.pid())?;
    let figures = load(scene, name, &writes, || Ok(()))?;
    Ok(Round::new(&figures, written(rival.pid())? - began))
}

/// Writes to an image that has all its clusters, and then to a new overlay of it.
pub fn measure(scene: &Scene, with: &Snapshots) -> Result<()> {
    let (base, overlay) = (
        scene.scratch.join("base.qcow2"),
        scene.scratch.join("overlay.qcow2"),
    );
    create(&base, None, with.used)?;
    let rival = Rival::serve(&base, Format::Qcow2, scene.scratch.path())?;
    fio::run(
        &Load::fill(rival.target(), with.used),
        scene.scratch.path(),
        || Ok(()),
    )?;
    drop(rival);
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..with.rounds {
        rounds[0].push(round(scene, with, &base, "qcow2, before")?);
        create(&overlay, Some(&base), with.used)?;
        rounds[1].push(round(scene, with, &overlay, "qcow2, after")?);
    }
    compare(
        "  a qcow2 image by qemu-nbd, after it got an overlay",
        &rounds,
    );
    Ok(())
}
