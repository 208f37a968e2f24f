//! The volume's exports, and the commands to use them.

use crate::daemon::Daemon;
use crate::failure::Result;
use crate::interrupt;
use crate::scene::{Scene, VOLUME};
use api::v1::ExportList;
use std::time::Duration;

/// Exports the volume to guests and as a file, besides NBD. Where this machine has no FUSE, that
/// one is left out with a word.
pub fn export(scene: &Scene) -> Result<()> {
    let socket = scene.scratch.join("guest.sock");
    let socket = socket.display().to_string();
    let daemon = &scene.daemon;
    daemon.run(&[
        "export",
        "create",
        "guest",
        VOLUME,
        "vhost-user-blk",
        "--path",
        &socket,
    ])?;
    let folder = scene.scratch.join("files");
    std::fs::create_dir(&folder)?;
    let mount = folder.display().to_string();
    let made = daemon.run(&[
        "export", "create", "disk.img", VOLUME, "fuse", "--mount", &mount,
    ]);
    if let Err(failure) = made {
        println!("  not exported as a file: {failure}");
    }
    Ok(())
}

fn hints(daemon: &Daemon) -> Result<Vec<(String, Vec<String>)>> {
    let answer = daemon.run(&["export", "list"])?;
    let list: ExportList = serde_json::from_slice(&answer)
        .map_err(|error| crate::failure::Failure::new(format!("export list: {error}")))?;
    Ok(list
        .items
        .into_iter()
        .map(|export| (export.kind, export.hints))
        .collect())
}

/// Prints the commands, and waits for an interrupt.
pub fn leave_open(scene: &mut Scene) -> Result<()> {
    println!("\nThe volume stays exported. In another terminal:");
    for (kind, lines) in hints(&scene.daemon)? {
        println!("  {kind}:");
        for line in lines {
            println!("    {line}");
        }
    }
    println!("  convect:");
    println!(
        "    export CONVECT_SOCKET={}",
        scene.daemon.socket().display()
    );
    println!(
        "    convect pool status demo; convect pool iostat demo --watch; convect map {VOLUME}"
    );
    println!(
        "\nCtrl-C ends it and removes {}.",
        scene.scratch.path().display()
    );
    while !interrupt::asked() {
        scene.daemon.check()?;
        // Being asked for the end is how this is meant to end.
        let _ = interrupt::pause(Duration::from_millis(200));
    }
    println!();
    Ok(())
}
