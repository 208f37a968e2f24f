//! Drives of open pools and block devices of this host: list and probe, with wear and health.

use super::Result;
use super::health::DriveHealthMonitor;
use super::registry::PoolRegistry;
use super::wear::WearMonitor;
use crate::control::{Control, PoolCalls};
use crate::mapping::ToApi;
use api::v1;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The drives of open pools and of this host.
pub struct Drives {
    control: Arc<dyn Control>,
    sys_block: PathBuf,
    wear: Arc<WearMonitor>,
    health: Arc<DriveHealthMonitor>,
}

impl Drives {
    pub(super) fn new(
        registry: &PoolRegistry,
        sys_block: &Path,
        wear: &Arc<WearMonitor>,
        health: &Arc<DriveHealthMonitor>,
    ) -> Self {
        Self {
            control: Arc::clone(registry.control()),
            sys_block: sys_block.to_owned(),
            wear: Arc::clone(wear),
            health: Arc::clone(health),
        }
    }

    /// Reports on one drive.
    ///
    /// # Errors
    /// As the engine's.
    pub fn probe(&self, spec: &str) -> Result<v1::DriveReport> {
        let found = self.control.drive_probe(spec);
        let mut report: v1::DriveReport = found.map_err(ToApi::to_api)?.to_api();
        report.health = self.health.health(&report.spec);
        if let Some(name) = &report.pool {
            let pool = self.control.pool_status(name).map_err(ToApi::to_api)?;
            let mut drives = pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
            let drive = drives.find(|drive| drive.spec == report.spec);
            report.wear = drive.map(|drive| self.wear.of(&pool.id, drive));
        }
        Ok(report)
    }

    /// The drives of the open pools and the block devices of this host.
    ///
    /// # Errors
    /// As the engine's.
    pub fn list(&self) -> Result<v1::DriveList> {
        let mut items = Vec::new();
        for pool in self.control.pool_list().map_err(ToApi::to_api)? {
            let drives = pool.vdrives.into_iter().flat_map(|vdrive| vdrive.drives);
            items.extend(drives.map(|drive| v1::DriveReport {
                wear: Some(self.wear.of(&pool.id, &drive)),
                ..self.report(&drive.spec, drive.size, Some(&pool.name))
            }));
        }
        for (device, size) in crate::host_drives::block_devices(&self.sys_block) {
            let spec = format!("file:/dev/{device}");
            if items.iter().all(|known| known.spec != spec) {
                items.push(self.report(&spec, size, None));
            }
        }
        Ok(v1::DriveList { items })
    }

    fn report(&self, spec: &str, size: u64, pool: Option<&str>) -> v1::DriveReport {
        let found = self.control.drive_probe(spec);
        let found = found.map(ToApi::to_api);
        let mut report = found.unwrap_or_else(|problem| v1::DriveReport {
            spec: spec.to_owned(),
            size,
            logical_sector: 0,
            physical_sector: 0,
            rotation: "unknown".to_owned(),
            write_cache: false,
            found: None,
            pool: pool.map(str::to_owned),
            wear: None,
            health: None,
            error: Some(problem.message),
        });
        report.health = self.health.health(spec);
        report
    }
}
