//! Locate LEDs of drive slots, in enclosures that the kernel supports (`/sys/class/enclosure`).

use std::path::Path;

/// Switches the locate LED of a disk, like `sda`, on or off.
///
/// # Errors
/// Why it failed, and what to do.
pub fn locate(disk: &str, on: bool, sys_class_enclosure: &Path) -> Result<(), String> {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let mut slots = folders(sys_class_enclosure).flat_map(|enclosure| folders(&enclosure));
    let slot = slots.find(|slot| slot.join("device/block").join(disk).exists());
    let Some(slot) = slot else {
        return Err(format!(
            "no enclosure known to the kernel contains {disk}, so it has no locate LED: find the \
             drive by its serial number, which `convect drive show` prints"
        ));
    };
    let light = slot.join("locate");
    std::fs::write(&light, if on { "1" } else { "0" }).map_err(|error| {
        format!(
            "cannot switch the locate LED of {disk} by {}: {error}: give the daemon's user write \
             permission there",
            light.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locate_switches_the_led_of_the_slot() {
        let sys = tempfile::tempdir().unwrap();
        for (slot, disk) in [("0", "sda"), ("1", "sdb")] {
            let slot = sys.path().join("0:0:0:0").join(slot);
            std::fs::create_dir_all(slot.join("device/block").join(disk)).unwrap();
            std::fs::write(slot.join("locate"), "0").unwrap();
        }
        let lights = || {
            ["0", "1"].map(|slot| {
                std::fs::read_to_string(sys.path().join("0:0:0:0").join(slot).join("locate"))
                    .unwrap()
            })
        };
        locate("sdb", true, sys.path()).unwrap();
        assert_eq!(lights(), ["0", "1"]);
        locate("sdb", false, sys.path()).unwrap();
        assert_eq!(lights(), ["0", "0"]);
        let why = locate("nvme0n1", true, sys.path()).unwrap_err();
        assert!(why.contains("no enclosure"), "{why}");
        assert!(locate("sda", true, &sys.path().join("none")).is_err());
    }
}
