//! A connected monitor: the requests of the vhost-user protocol.

use crate::config;
use crate::event::{Bell, EventFd};
use crate::inflight::InflightRegion;
use crate::log::Log;
use crate::memory::{Memory, REGIONS_MAX};
use crate::polling::Choice;
use crate::volume::Volume;
use crate::vring::{Addresses, Common, Vring};
use reactor::Remote;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig,
    VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVirtioFeatures,
    VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use virtio_bindings::virtio_blk::VIRTIO_BLK_F_FLUSH;

/// Time limit for requests in flight when a ring is stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// State of a connection.
pub(crate) struct Session {
    common: Common,
    vrings: Vec<Vring>,
    writeback: bool,
    /// The file of its in-flight memory.
    inflight_file: Option<File>,
}

fn failed(error: io::Error) -> Error {
    Error::ReqHandlerError(error)
}

impl Session {
    pub(crate) fn new(
        volume: Arc<Volume>,
        remotes: Vec<Remote>,
        bells: &[Arc<Bell>],
        polling: Arc<Choice>,
        log: Arc<Log>,
        hang_up: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self {
            common: Common {
                volume,
                remotes,
                memory: Arc::default(),
                features: 0,
                inflight: None,
                polling,
                write_through: Arc::default(),
                log,
                hang_up,
            },
            vrings: bells.iter().cloned().map(Vring::new).collect(),
            writeback: true,
            inflight_file: None,
        }
    }

    fn vring(&mut self, index: u32) -> Result<&mut Vring> {
        self.vrings
            .get_mut(index as usize)
            .ok_or(Error::InvalidParam)
    }

    /// Stops a ring, changes it, and starts it again if it is ready.
    fn change(&mut self, index: u32, change: impl FnOnce(&mut Vring)) -> Result<()> {
        let vring = self
            .vrings
            .get_mut(index as usize)
            .ok_or(Error::InvalidParam)?;
        vring.stop(Instant::now() + STOP_TIMEOUT).map_err(failed)?;
        change(vring);
        vring.start(index as u16, &self.common).map_err(failed)
    }

    /// Whether a part of the shared memory was truncated.
    pub(crate) fn is_cut(&self) -> bool {
        self.common.memory.cut().load(Ordering::Acquire)
    }

    /// Ends the session: stops every ring, and removes the notification descriptors.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.vrings.iter().for_each(Vring::disconnect);
        let stopped = self.stop_all();
        self.vrings.iter().for_each(|vring| vring.bell.clear());
        stopped
    }

    /// Stops every ring; returns the first error after all were stopped.
    fn stop_all(&mut self) -> io::Result<()> {
        for vring in &self.vrings {
            vring.ask_to_stop();
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        let mut result = Ok(());
        for vring in &mut self.vrings {
            result = result.and(vring.stop(deadline));
        }
        result
    }

    /// Replaces the guest memory of the rings.
    fn exchange_memory(&mut self, memory: Memory) -> Result<()> {
        let running: Vec<_> = self.vrings.iter().map(Vring::is_running).collect();
        self.stop_all().map_err(failed)?;
        self.common.memory = Arc::new(memory);
        for (index, was_running) in running.into_iter().enumerate() {
            if was_running {
                self.vrings[index]
                    .start(index as u16, &self.common)
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    fn set_writeback(&mut self, on: bool) {
        self.writeback = on;
        if let Some(inflight) = &self.common.inflight {
            inflight.set_writeback(on);
        }
        self.choose_write_through();
    }

    fn choose_write_through(&self) {
        let flush = config::has(self.common.features, VIRTIO_BLK_F_FLUSH);
        self.common
            .write_through
            .store(!(flush && self.writeback), Ordering::Relaxed);
    }

    fn reset(&mut self) -> Result<()> {
        self.stop_all().map_err(failed)?;
        for vring in &mut self.vrings {
            let bell = vring.bell.clone();
            bell.clear();
            *vring = Vring::new(bell);
        }
        self.common.features = 0;
        self.set_writeback(true);
        Ok(())
    }
}

fn event(file: Option<File>) -> Result<Option<EventFd>> {
    file.map(EventFd::new).transpose().map_err(failed)
}

impl VhostUserBackendReqHandlerMut for Session {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.reset()
    }

    fn reset_device(&mut self) -> Result<()> {
        self.reset()
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(config::features(
            &self.common.volume,
            self.vrings.len() as u16,
        ))
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !self.get_features()? != 0 {
            return Err(Error::InvalidParam);
        }
        self.common.features = features;
        self.choose_write_through();
        // Without protocol features no message enables a ring.
        if features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() == 0 {
            for vring in &mut self.vrings {
                vring.enabled = true;
            }
        }
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy_listening: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        let memory = &self.common.memory;
        let memory = memory.exchanged(regions, files).map_err(failed)?;
        self.exchange_memory(memory)?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        let size = u16::try_from(num)
            .ok()
            .filter(|size| size.is_power_of_two() && *size <= config::QUEUE_SIZE_MAX)
            .ok_or(Error::InvalidParam)?;
        self.change(index, |vring| vring.size = size)
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        self.change(index, |vring| {
            vring.addresses = Some(Addresses {
                descriptors: descriptor,
                available,
                used,
            });
        })
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        let base = u16::try_from(base).map_err(|_| Error::InvalidParam)?;
        self.change(index, |vring| vring.base = base)
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let vring = self.vring(index)?;
        vring.stop(Instant::now() + STOP_TIMEOUT).map_err(failed)?;
        vring.kick = None;
        Ok(VhostUserVringState::new(index, u32::from(vring.base)))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let kick = event(fd)?.ok_or(Error::InvalidParam)?;
        self.change(u32::from(index), |vring| vring.kick = Some(Arc::new(kick)))
    }

    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let call = event(fd)?;
        let vring = self.vring(u32::from(index))?;
        vring.bell.set_call(call).map_err(failed)?;
        if vring.is_running() {
            // Notifications to the old descriptor may have been lost.
            vring.bell.call().map_err(failed)?;
        }
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let error = event(fd)?;
        self.vring(u32::from(index))?.bell.set_error(error);
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(config::protocol_features())
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        if features & !config::protocol_features().bits() != 0 {
            return Err(Error::InvalidParam);
        }
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.vrings.len() as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        if self.vring(index)?.enabled == enable {
            return Ok(());
        }
        self.change(index, |vring| vring.enabled = enable)
    }

    fn get_config(
        &mut self,
        offset: u32,
        size: u32,
        _flags: VhostUserConfigFlags,
    ) -> Result<Vec<u8>> {
        Ok(config::read(
            &self.common.volume,
            self.vrings.len() as u16,
            self.writeback,
            offset,
            size,
        ))
    }

    fn set_config(&mut self, offset: u32, buf: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        // Only the write cache switch is writable; a monitor may write the whole space back.
        let at = config::WRITEBACK_OFFSET.checked_sub(offset);
        if let Some(value) = at.and_then(|at| buf.get(at as usize)) {
            self.set_writeback(*value != 0);
        }
        Ok(())
    }

    fn get_inflight_fd(
        &mut self,
        inflight: &VhostUserInflight,
    ) -> Result<(VhostUserInflight, File)> {
        let file = match self.inflight_file.take() {
            Some(file) => file,
            None => InflightRegion::create().map_err(failed)?,
        };
        let (queues, size) = (inflight.num_queues, inflight.queue_size);
        let info = InflightRegion::begin(&file, queues, size).map_err(failed)?;
        self.inflight_file = Some(file.try_clone().map_err(failed)?);
        let cut = self.common.memory.cut();
        let region = InflightRegion::map(&info, &file, cut).map_err(failed)?;
        // Zero means enabled, so that an unused region allocates no page.
        if !self.writeback {
            region.set_writeback(false);
        }
        self.common.inflight = Some(region);
        Ok((info, file))
    }

    fn set_inflight_fd(&mut self, inflight: &VhostUserInflight, file: File) -> Result<()> {
        let cut = self.common.memory.cut();
        let region = InflightRegion::map(inflight, &file, cut).map_err(failed)?;
        self.writeback = region.writeback();
        self.common.inflight = Some(region);
        self.choose_write_through();
        Ok(())
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(REGIONS_MAX as u64)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        fd: File,
        _postcopy_listening: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        let memory = self.common.memory.with(region, fd).map_err(failed)?;
        self.exchange_memory(memory)?;
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        let memory = self.common.memory.without(region).map_err(failed)?;
        self.exchange_memory(memory)
    }

    fn set_gpu_socket(&mut self, _gpu_backend: GpuBackend) -> Result<()> {
        Err(Error::InvalidOperation("not supported: display"))
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidOperation("not supported: shared objects"))
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _fd: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidOperation(
            "not supported: device state migration",
        ))
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(Error::InvalidOperation(
            "not supported: device state migration",
        ))
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidOperation(
            "not supported: shared memory regions",
        ))
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        Err(Error::InvalidOperation("not supported: dirty logging"))
    }
}
