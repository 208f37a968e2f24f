//! The block devices of this host.

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
