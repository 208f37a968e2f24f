//! Setup, start and stop of a ring.

use crate::config::{QUEUE_SIZE_MAX, has};
use crate::event::{Bell, EventFd};
use crate::guest::Guest;
use crate::inflight::{InflightRegion, Recovered};
use crate::log::Log;
use crate::memory::Memory;
use crate::parts::{Control, Ended, Parts};
use crate::polling::Choice;
use crate::ring::Ring;
use crate::server::serve;
use crate::volume::Volume;
use reactor::Remote;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use virtio_queue::{Queue, QueueT};

/// Addresses of the parts of a ring, in the monitor's address space.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
}

/// State shared by all rings of a session.
pub(crate) struct Common {
    pub(crate) volume: Arc<Volume>,
    pub(crate) remotes: Vec<Remote>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) features: u64,
    pub(crate) inflight: Option<Arc<InflightRegion>>,
    pub(crate) polling: Arc<Choice>,
    pub(crate) write_through: Arc<AtomicBool>,
    pub(crate) log: Arc<Log>,
    pub(crate) hang_up: Arc<dyn Fn() + Send + Sync>,
}

struct Running {
    control: Arc<Control>,
    ended: Receiver<Ended>,
}

/// A ring.
pub(crate) struct Vring {
    pub(crate) size: u16,
    pub(crate) addresses: Option<Addresses>,
    pub(crate) base: u16,
    pub(crate) kick: Option<Arc<EventFd>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) enabled: bool,
    running: Option<Running>,
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl Vring {
    /// A ring that is not set up.
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self {
            size: 0,
            addresses: None,
            base: 0,
            kick: None,
            bell,
            enabled: false,
            running: None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts it if its setup is complete.
    pub(crate) fn start(&mut self, index: u16, common: &Common) -> io::Result<()> {
        let (Some(kick), Some(addresses)) = (self.kick.clone(), self.addresses) else {
            return Ok(());
        };
        if !self.enabled || self.size == 0 || self.is_running() {
            return Ok(());
        }
        let map = &common.memory.map;
        let mut ring = Ring::new(&self.queue(addresses, common)?, map.clone())?;
        let mut inflight = common
            .inflight
            .as_ref()
            .and_then(|region| region.queue(index, self.size));
        let recovered = match &mut inflight {
            Some(inflight) => inflight.recover(ring.next_used(), self.base),
            None => Recovered {
                heads: Vec::new(),
                next_avail: self.base,
            },
        };
        ring.go_on(recovered.next_avail);
        let control = Arc::new(Control::default());
        let parts = Parts {
            index,
            volume: common.volume.clone(),
            memory: Guest::new(map.clone()),
            ring,
            kick,
            bell: self.bell.clone(),
            control: control.clone(),
            inflight,
            resubmit: recovered.heads,
            polling: common.polling.clone(),
            write_through: common.write_through.clone(),
            cut: common.memory.cut().clone(),
            log: common.log.clone(),
            hang_up: common.hang_up.clone(),
        };
        let (give, ended) = channel();
        let remote = &common.remotes[usize::from(index) % common.remotes.len()];
        if !remote.spawn(move |handle| serve(handle, parts, give)) {
            return Err(io::Error::other("the daemon is stopping"));
        }
        self.running = Some(Running { control, ended });
        Ok(())
    }

    fn queue(&self, addresses: Addresses, common: &Common) -> io::Result<Queue> {
        let place = |user| {
            common
                .memory
                .guest_address(user)
                .ok_or_else(|| invalid("a part of a ring is outside of the shared memory"))
        };
        let build = || -> Result<Queue, virtio_queue::Error> {
            let mut queue = Queue::new(QUEUE_SIZE_MAX)?;
            queue.try_set_size(self.size)?;
            Ok(queue)
        };
        let wrong = |error: virtio_queue::Error| invalid(&error.to_string());
        let mut queue = build().map_err(wrong)?;
        queue
            .try_set_desc_table_address(place(addresses.descriptors)?)
            .map_err(wrong)?;
        queue
            .try_set_avail_ring_address(place(addresses.available)?)
            .map_err(wrong)?;
        queue
            .try_set_used_ring_address(place(addresses.used)?)
            .map_err(wrong)?;
        queue.set_event_idx(has(common.features, VIRTIO_RING_F_EVENT_IDX));
        queue.set_ready(true);
        Ok(queue)
    }

    /// Requests a stop, without waiting.
    pub(crate) fn ask_to_stop(&self) {
        if let Some(running) = &self.running {
            running.control.stop();
        }
    }

    /// Requests a stop of a disconnected monitor's ring, without waiting.
    pub(crate) fn disconnect(&self) {
        if let Some(running) = &self.running {
            running.control.disconnect();
        }
    }

    /// Stops it once its requests have completed. `base` is the index where it resumes.
    pub(crate) fn stop(&mut self, deadline: Instant) -> io::Result<()> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        running.control.stop();
        let left = deadline.saturating_duration_since(Instant::now());
        match running.ended.recv_timeout(left) {
            Ok(ended) => {
                self.base = ended.next_avail;
                Ok(())
            }
            Err(reason) => {
                running.control.abandon();
                Err(match reason {
                    RecvTimeoutError::Timeout => io::Error::new(
                        io::ErrorKind::TimedOut,
                        "requests in flight did not complete in time",
                    ),
                    RecvTimeoutError::Disconnected => io::Error::other("the daemon is stopping"),
                })
            }
        }
    }
}
