//! Checks the configured memory against the host's.

use crate::{Config, ServeError};
use units::format_bytes;

/// Checks the RAM tier and the map cache against `MemAvailable` in the text of `/proc/meminfo`.
/// Without that line the check passes.
///
/// # Errors
/// When the sum exceeds the available memory.
pub fn check_memory(config: &Config, meminfo: &str) -> Result<(), ServeError> {
    let wanted = config.ram_tier.saturating_add(config.map_cache);
    match available(meminfo) {
        Some(available) if wanted > available => Err(ServeError::new(format!(
            "ram_tier ({}) and map_cache ({}) need {}, but this host has {} available: reduce \
             them in the configuration or free memory",
            format_bytes(config.ram_tier),
            format_bytes(config.map_cache),
            format_bytes(wanted),
            format_bytes(available)
        ))),
        _ => Ok(()),
    }
}

/// Available memory in bytes, according to `meminfo`.
pub(crate) fn available(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| {
        let value = line.strip_prefix("MemAvailable:")?;
        let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    })
}
