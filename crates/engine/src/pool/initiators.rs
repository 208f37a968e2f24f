//! Initiators that have volumes open, and which of them volumes bypass.

use super::{Pool, Result, error, lock};
use crate::control::types::{ErrorCode, IoCounters};
use crate::device::{Initiator, Initiators, OpenedDevice};
use block::BlockDevice;
use format::{PoolConfig, VolumeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The initiators of open volumes, by volume number.
#[derive(Default)]
pub(crate) struct AllInitiators(BTreeMap<u32, Arc<Initiators>>);

impl AllInitiators {
    /// Applies a pool's description.
    pub fn follow(&mut self, config: &PoolConfig) {
        let mut known = std::mem::take(&mut self.0);
        for volume in &config.volumes {
            if let Some(initiators) = known.remove(&volume.id) {
                initiators.bypass(&volume.knobs.bypass);
                self.0.insert(volume.id, initiators);
            }
        }
    }

    /// Those of a volume.
    fn of(&mut self, volume: &VolumeConfig) -> Arc<Initiators> {
        let initiators = self.0.entry(volume.id).or_default();
        initiators.bypass(&volume.knobs.bypass);
        initiators.clone()
    }

    /// Adds counts of bypassed operations of one volume, or of all.
    pub fn add_to(&self, sum: &mut IoCounters, volume: Option<u32>) {
        let all = self.0.iter();
        let asked = all.filter(|(id, _)| volume.is_none_or(|volume| volume == **id));
        asked.for_each(|(_, initiators)| initiators.add_to(sum));
    }
}

impl Pool {
    /// Counts of bypassed operations of a volume.
    pub(super) fn bypassed(&self, volume: u32) -> IoCounters {
        let mut sum = IoCounters::default();
        lock(&self.initiators).add_to(&mut sum, Some(volume));
        sum
    }

    /// The volume, or with `volume@snapshot` that snapshot of it, for a front end that may know the initiator;
    /// `export`: the name of the export whose operations come through this device, if they are to be
    /// counted for one.
    ///
    /// # Errors
    /// `NotFound`, or `Invalid` for an invalid initiator's name.
    pub fn open_volume_for(
        &self,
        name: &str,
        initiator: Option<&str>,
        export: Option<&str>,
    ) -> Result<Arc<dyn BlockDevice>> {
        let device = self.open_volume(name)?;
        let export = export.and_then(|export| lock(&self.exported).number(export));
        let Some(initiator) = initiator else {
            return Ok(match export {
                Some(export) => OpenedDevice::new(device, None, Some(export)),
                None => device,
            });
        };
        if let Err(wrong) = format::check_initiator(initiator) {
            return error(ErrorCode::Invalid, wrong);
        }
        let volume = name.split_once('@').map_or(name, |(volume, _)| volume);
        let initiators = {
            // The set of bypassed initiators does not change meanwhile.
            let config = lock(&self.config);
            let Some(volume) = config.volumes.iter().find(|known| known.name == volume) else {
                let text = format!("volume {volume} was deleted meanwhile");
                return error(ErrorCode::NotFound, text);
            };
            lock(&self.initiators).of(volume)
        };
        let initiator = Initiator::new(initiators, initiator);
        Ok(OpenedDevice::new(device, Some(initiator), export))
    }
}
