//! Kinds of drives, for clients, and the block devices of this host.

use std::path::Path;

/// Names and sizes in bytes of the non-empty block devices under `sys` (`/sys/block`), in order.
pub fn block_devices(sys: &Path) -> Vec<(String, u64)> {
    let Ok(entries) = std::fs::read_dir(sys) else {
        return Vec::new();
    };
    let size = |path: &Path| -> Option<u64> {
        let sectors = std::fs::read_to_string(path.join("size")).ok()?;
        sectors.trim().parse::<u64>().ok()?.checked_mul(512)
    };
    let mut found: Vec<(String, u64)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, size(&entry.path())?)))
        .filter(|(_, size)| *size > 0)
        .collect();
    found.sort();
    found
}

/// Names of the drive kinds: the part of a specification before the colon.
pub fn drive_kinds() -> Vec<&'static str> {
    drives::kinds().iter().map(|kind| kind.name).collect()
}

/// Names of the drive models.
pub fn drive_profiles() -> Vec<&'static str> {
    drives::profiles()
        .iter()
        .map(|profile| profile.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_without_size_are_skipped() {
        let sys = tempfile::tempdir().unwrap();
        for (name, sectors) in [
            ("sdb", "16\n"),
            ("sda", "8\n"),
            ("loop0", "0\n"),
            ("x", "?"),
        ] {
            let folder = sys.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("size"), sectors).unwrap();
        }
        let found = block_devices(sys.path());
        assert_eq!(found, [("sda".to_owned(), 4096), ("sdb".to_owned(), 8192)]);
        assert!(block_devices(&sys.path().join("none")).is_empty());
    }
}
