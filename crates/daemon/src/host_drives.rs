//! The kinds of drives, for those who only write them, and the block devices of this host.

use std::path::Path;

/// Names of the block devices under `sys` (`/sys/block`) that have a size, in order.
pub fn block_devices(sys: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(sys) else {
        return Vec::new();
    };
    let has_size = |path: &Path| {
        std::fs::read_to_string(path.join("size"))
            .is_ok_and(|sectors| sectors.trim().parse::<u64>().is_ok_and(|count| count > 0))
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| has_size(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Names of the kinds of drives, as they are written before the colon.
pub fn drive_kinds() -> Vec<&'static str> {
    drives::kinds().iter().map(|kind| kind.name).collect()
}

/// Names of the drives that can be modelled.
pub fn drive_profiles() -> Vec<&'static str> {
    drives::profiles()
        .iter()
        .map(|profile| profile.name)
        .collect()
}
