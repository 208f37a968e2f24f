//! The description of a pool: the input is the JSON of an otherwise valid label.

use crate::memory::bounded;
use format::{Label, crc32c};

pub(crate) fn run(data: &[u8]) {
    let mut bytes = vec![0; 128];
    bytes[..8].copy_from_slice(b"CONVECT\x01");
    bytes[12..16].copy_from_slice(&(data.len() as u32).to_le_bytes());
    bytes.extend_from_slice(data);
    let crc = crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    if let Ok(label) = bounded((64 << 10) + 128 * bytes.len(), || Label::decode(&bytes)) {
        // The engine divides by these and relies on the parts lying within their drives.
        let config = &label.config;
        assert!(config.shards > 0 && config.group_blocks.is_power_of_two());
        let parts = config.vdrives.iter().flat_map(|vdrive| &vdrive.parts);
        for part in parts.chain(&config.meta.parts) {
            let end = part.offset.checked_add(part.blocks * 4096);
            assert!(config.drives.iter().any(|drive| drive.id == part.drive
                && end.is_some_and(|end| end <= drive.size)));
        }
        if let Ok(again) = label.encode() {
            assert_eq!(Label::decode(&again), Ok(label));
        }
    }
}
