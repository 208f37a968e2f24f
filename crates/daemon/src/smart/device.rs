//! Maps a drive's specification to the disk that reports its health.

use std::path::Path;

/// The disk, like `sda`, of a drive's specification, found in `/sys/class/block`; nothing for files
/// and modelled drives. For a partition it is the disk that contains it.
pub fn whole_disk(spec: &str, sys_class_block: &Path) -> Option<String> {
    spec.strip_prefix("file:")?;
    let (path, _) = drives::file_path(spec)?;
    let path = std::fs::canonicalize(path).ok()?;
    let name = path.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
    disk_of(&name, sys_class_block)
}

/// The disk of a block device, by its name in `/sys`.
fn disk_of(name: &str, sys_class_block: &Path) -> Option<String> {
    let device = std::fs::canonicalize(sys_class_block.join(name)).ok()?;
    let disk = match device.join("partition").exists() {
        true => device.parent()?,
        false => &device,
    };
    // Devices without hardware, like loop and device-mapper devices, have no health.
    disk.join("device").exists().then_some(())?;
    disk.file_name()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn partition_maps_to_its_disk_and_file_to_none() {
        let sys = tempfile::tempdir().unwrap();
        let devices = sys.path().join("devices");
        let class = sys.path().join("class");
        std::fs::create_dir_all(devices.join("sda/sda1")).unwrap();
        std::fs::create_dir_all(devices.join("sda/device")).unwrap();
        std::fs::create_dir_all(devices.join("loop0")).unwrap();
        std::fs::create_dir_all(&class).unwrap();
        std::fs::write(devices.join("sda/sda1/partition"), "1\n").unwrap();
        for (name, to) in [("sda", "sda"), ("sda1", "sda/sda1"), ("loop0", "loop0")] {
            symlink(devices.join(to), class.join(name)).unwrap();
        }
        assert_eq!(disk_of("sda", &class).as_deref(), Some("sda"));
        assert_eq!(disk_of("sda1", &class).as_deref(), Some("sda"));
        assert_eq!(disk_of("loop0", &class), None);
        assert_eq!(disk_of("sdb", &class), None);
        let file = sys.path().join("a.img");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            whole_disk(&format!("file:{}", file.display()), &class),
            None
        );
        assert_eq!(whole_disk("ram:a?size=1G", &class), None);
    }
}
